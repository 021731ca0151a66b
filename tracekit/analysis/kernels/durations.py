"""Durations by kernel: what ran, how often, how long."""

import numpy as np
import polars as pl

from tracekit.analysis.statistics.grouped import Grouped
from tracekit.analysis.wanted import By
from tracekit.numbering import Numbers, numbered

UNKNOWN_OPERATOR = "(unknown)"
"""Operator of a kernel for which it cannot be known: it is marked, not guessed."""

ALONE_FRACTION = 0.01
"""An instance counts as running alone while others overlap at most this share of it."""

MIXED_SPREAD = 1.5
"""p95 / p5 of instances that ran alone, above which one median stands for several kinds of work."""

DURATION = pl.col("end") - pl.col("start")

_GRID, _BLOCK, _CLUSTER = ([f"{what}{axis}" for axis in "XYZ"] for what in ("grid", "block", "cluster"))
LABELS = ["name", "mangled_name", "short_name", "grid", "block", "cluster", "dynamic_smem"]

_NO_CLUSTER = pl.max_horizontal(_CLUSTER).fill_null(0) <= 1


def ran_alone(duration: pl.Expr = DURATION) -> pl.Expr:
    """Whether instances ran alone; one of no length carries no timing."""
    return (duration > 0) & (pl.col("overlapped") <= ALONE_FRACTION * duration)


def number_groups(keys: pl.DataFrame, by: By) -> Numbers:
    """The group that ``by`` puts each kernel key into (schema.KERNEL_KEYS).

    A launch key is the mangled name (demangled where absent) with grid, block, cluster and dynamic shared memory;
    clusters of one block, of none, and not recorded, are all no cluster.
    """
    named = {"launch": pl.coalesce("mangled_name", "name"), "name": pl.col("name"), "short": pl.col("short_name")}[by]
    return numbers_of(keys, by, keys.select(named).to_series())


def numbers_of(keys: pl.DataFrame, by: By, names: pl.Series) -> Numbers:
    """Number kernel keys by these names for them and, where ``by`` is launch, their launch configuration."""
    columns = [names.rank("dense")]
    if by == "launch":
        clusters = (pl.when(~_NO_CLUSTER).then(axis).alias(axis) for axis in _CLUSTER)
        columns += keys.select(*_GRID, *_BLOCK, *clusters, "dynamicSharedMemory").get_columns()
    return numbered(columns)


def label_keys(keys: pl.DataFrame, by: By) -> pl.DataFrame:
    """The labels (LABELS) of kernel keys, null where ``by`` groups them away."""
    labels = keys.select(
        "name",
        "mangled_name",
        "short_name",
        grid=_dimensions(_GRID),
        block=_dimensions(_BLOCK),
        cluster=pl.when(~_NO_CLUSTER).then(_dimensions(_CLUSTER)),
        dynamic_smem="dynamicSharedMemory",
    )
    kept = {"name": ["name"], "short": ["short_name"]}.get(by, LABELS)
    return labels.with_columns(
        pl.lit(None, labels.schema[column]).alias(column) for column in LABELS if column not in kept
    )


def _dimensions(axes: list[str]) -> pl.Expr:
    return pl.when(pl.any_horizontal(pl.col(axes).is_not_null())).then(pl.concat_arr(axes))


def durations_by(kernels: pl.DataFrame, group: pl.Series) -> pl.DataFrame:
    """Statistics of kernel instances (schema.KERNELS) by ``group``, one number for each instance.

    Returns one row a group: counts, ``total_ns``, ``mean_ns``, quantiles (linear interpolation; the median
    of an even count is the mean of the middle two), ``overlapped_fraction`` (overlapped / total) and
    ``mixed``.
    """
    rows = kernels.select(
        "overlapped", duration=DURATION, in_graph=pl.col("graph_node").is_not_null(), group=group.cast(pl.Int64)
    )
    alone = rows.filter(ran_alone(pl.col("duration")))
    all_of, alone_of = (Grouped.of(part["group"], part["duration"]) for part in (rows, alone))
    numbers = int(all_of.group.max(initial=-1)) + 1
    mixed = np.zeros(numbers, np.bool_)
    mixed[alone_of.group] = alone_of.spread_beyond(MIXED_SPREAD)
    beside = np.zeros(numbers, np.int64)
    overlapping = rows.filter(pl.col("overlapped") > 0)
    np.add.at(beside, overlapping["group"].to_numpy(), overlapping["overlapped"].to_numpy())
    in_graphs = np.bincount(rows.filter("in_graph")["group"].to_numpy(), minlength=numbers)
    total = all_of.total()
    return pl.DataFrame(
        {
            "group": pl.Series(all_of.group, dtype=pl.UInt32),
            "count": all_of.count,
            "graph_count": in_graphs[all_of.group],
            "total_ns": total,
            "mean_ns": total / all_of.count,
            **{f"p{q * 100:.0f}_ns": all_of.quantile(q) for q in (0.25, 0.75, 0.95)},
            "median_ns": all_of.quantile(0.5),
            "min_ns": all_of.least(),
            "max_ns": all_of.most(),
            "overlapped_ns": beside[all_of.group],
            "mixed": mixed[all_of.group],
        }
    ).with_columns(
        overlapped_fraction=pl.when(pl.col("total_ns") > 0).then(pl.col("overlapped_ns") / pl.col("total_ns"))
    )


def group_of_instances(kernels: pl.DataFrame, groups: pl.DataFrame) -> pl.Series:
    """The group of each kernel instance; ``groups`` gives that of every ``key``."""
    by_key = groups.sort("key")["group"]
    return by_key.gather(kernels["key"]) if kernels.height else pl.Series("group", [], pl.UInt32)


def summarise(kernels: pl.DataFrame, keys: pl.DataFrame, by: By) -> pl.DataFrame:
    """Statistics of every kernel with its ``title`` (its name); ``key`` is one whose labels are its labels."""
    groups = number_groups(keys, by)
    stats = durations_by(kernels, pl.Series(groups.of_rows[kernels["key"].to_numpy()]))
    key = pl.Series(groups.first(), dtype=pl.UInt32).gather(stats["group"])
    return stats.with_columns(key=key, title=keys["short_name" if by == "short" else "name"].gather(key))


def summarise_operators(kernels: pl.DataFrame, operators: pl.Series) -> pl.DataFrame:
    """Statistics of every operator; ``operators`` names that of each instance or is null."""
    names = operators.fill_null(UNKNOWN_OPERATOR)
    titles = pl.DataFrame({"title": names.unique().sort()}).with_row_index("group")
    return durations_by(kernels, names.rank("dense") - 1).join(titles, on="group", maintain_order="left")


def base_name_matches(keys: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """The keys whose base name matches a regular expression.

    The base name is the short name, so that a template argument never matches; a pattern that
    contains ``::`` or ``<`` is meant for the whole demangled name.
    """
    column = "name" if "::" in pattern or "<" in pattern else "short_name"
    return keys.filter(pl.col(column).str.contains(pattern))
