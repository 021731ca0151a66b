"""Durations by kernel: what ran, how often, how long."""

import polars as pl

from tracekit.analysis.wanted import By

UNKNOWN_OPERATOR = "(unknown)"
"""Operator of a kernel for which it cannot be known: it is marked, not guessed."""

ALONE_FRACTION = 0.01
"""An instance counts as running alone while others overlap at most this share of it."""

MIXED_SPREAD = 1.5
"""p95 / p5 of instances that ran alone, above which one median stands for several kinds of work."""

DURATION = pl.col("end") - pl.col("start")

_GRID, _BLOCK, _CLUSTER = ([f"{what}{axis}" for axis in "XYZ"] for what in ("grid", "block", "cluster"))
LABELS = ["name", "mangled_name", "short_name", "grid", "block", "cluster", "dynamic_smem"]


def label_groups(keys: pl.DataFrame, by: By) -> pl.DataFrame:
    """Number the groups that ``by`` makes of the kernel keys (schema.KERNEL_KEYS).

    Returns one row a key: ``key``, ``group``, and the group's labels, null where grouped away. A launch key
    is the mangled name (demangled where absent) with grid, block, cluster and dynamic shared memory; clusters of
    one block, of none, and not recorded, are all no cluster.
    """
    labels = keys.select(
        "key",
        "name",
        "mangled_name",
        "short_name",
        grid=_dimensions(_GRID),
        block=_dimensions(_BLOCK),
        cluster=pl.when(pl.max_horizontal(_CLUSTER) > 1).then(_dimensions(_CLUSTER)),
        dynamic_smem="dynamicSharedMemory",
    )
    kept = {"name": ["name"], "short": ["short_name"]}.get(by, LABELS)
    labels = labels.with_columns(
        pl.lit(None).cast(labels.schema[column]).alias(column) for column in LABELS if column not in kept
    )
    if kept is LABELS:
        identity = [pl.coalesce("mangled_name", "name").alias("_id"), *(pl.col(c) for c in LABELS[3:])]
        labels = labels.with_columns(group=pl.struct(identity).rank("dense").cast(pl.UInt32) - 1)
    else:
        labels = labels.with_columns(group=pl.col(kept[0]).rank("dense").cast(pl.UInt32) - 1)
    return labels.select("key", "group", *LABELS)


def _dimensions(axes: list[str]) -> pl.Expr:
    return (
        pl.when(pl.any_horizontal(pl.col(axes).is_not_null()))
        .then(pl.concat_list(axes))
        .otherwise(pl.lit(None, pl.List(pl.Int64)))
    )


def durations_by(kernels: pl.DataFrame, group: pl.Series) -> pl.DataFrame:
    """Statistics of kernel instances (schema.KERNELS) by ``group``, one number for each instance.

    Returns one row a group: counts, ``total_ns``, ``mean_ns``, quantiles (linear interpolation; the median
    of an even count is the mean of the middle two), ``overlapped_fraction`` (overlapped / total) and
    ``mixed``.
    """
    rows = kernels.select(
        duration=DURATION, overlapped="overlapped", in_graph=pl.col("graph_node").is_not_null(), group=group
    )
    duration = pl.col("duration")
    alone = duration.filter((duration > 0) & (pl.col("overlapped") <= ALONE_FRACTION * duration))
    return (
        rows.group_by("group")
        .agg(
            pl.len().alias("count"),
            pl.col("in_graph").sum().alias("graph_count"),
            duration.sum().alias("total_ns"),
            *(duration.quantile(q, "linear").alias(f"p{q * 100:.0f}_ns") for q in (0.25, 0.75, 0.95)),
            duration.median().alias("median_ns"),
            duration.min().alias("min_ns"),
            duration.max().alias("max_ns"),
            pl.col("overlapped").sum().alias("overlapped_ns"),
            (alone.quantile(0.95, "linear") > MIXED_SPREAD * alone.quantile(0.05, "linear"))
            .fill_null(False)
            .alias("mixed"),
        )
        .with_columns(
            mean_ns=pl.col("total_ns") / pl.col("count"),
            overlapped_fraction=pl.when(pl.col("total_ns") > 0).then(pl.col("overlapped_ns") / pl.col("total_ns")),
        )
        .sort("group")
    )


def group_of_instances(kernels: pl.DataFrame, groups: pl.DataFrame) -> pl.Series:
    """The group of each kernel instance, from ``label_groups``."""
    by_key = groups.sort("key")["group"]
    return by_key.gather(kernels["key"]) if kernels.height else pl.Series("group", [], pl.UInt32)


def summarise(kernels: pl.DataFrame, keys: pl.DataFrame, by: By) -> pl.DataFrame:
    """Labels and statistics of every kernel, longest total first, then by name and shape."""
    groups = label_groups(keys, by)
    stats = durations_by(kernels, group_of_instances(kernels, groups))
    labels = groups.unique("group", keep="first", maintain_order=True)
    return stats.join(labels.drop("key"), on="group").sort(["total_ns", "group"], descending=[True, False])


def summarise_operators(kernels: pl.DataFrame, keys: pl.DataFrame, operators: pl.Series) -> pl.DataFrame:
    """The same by operator, whose name stands as ``name``; ``operators`` names that of each instance or is null."""
    names = operators.fill_null(UNKNOWN_OPERATOR)
    labels = pl.DataFrame({"name": names.unique().sort()}).with_row_index("group")
    group = pl.DataFrame({"name": names}).join(labels, on="name", how="left", maintain_order="left")["group"]
    empty = label_groups(keys, "name").clear().select(LABELS[1:])
    stats = durations_by(kernels, group).join(labels, on="group")
    stats = pl.concat([stats, empty], how="diagonal")
    return stats.sort(["total_ns", "group"], descending=[True, False])


def base_name_matches(keys: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """The keys whose base name matches a regular expression.

    The base name is the short name, so that a template argument never matches; a pattern that
    contains ``::`` or ``<`` is meant for the whole demangled name.
    """
    column = "name" if "::" in pattern or "<" in pattern else "short_name"
    return keys.filter(pl.col(column).str.contains(pattern))
