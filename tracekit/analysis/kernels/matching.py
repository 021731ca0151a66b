"""Which kernel of one trace is which of another."""

import polars as pl

from tracekit.analysis.kernels.durations import LABELS, label_keys, number_groups, numbers_of
from tracekit.analysis.wanted import By

_JIT_TAILS = (
    (r"_?\d{12,}", "_#"),
    (r"_0[dc]e?(?:[1-9]\d?(?:[dc]e?)?)*$", ""),
    (r"\$jit\$[\w$]*", ""),
    (r"\.jit\.\d+", ""),
    (r"_[0-9a-f]{16,}", "_#"),
)
"""What compilers put into names that differs between builds of the same kernel: constant hashes (MLX),
argument specialisations (Triton), counters."""


def normalised_name(name: pl.Expr) -> pl.Expr:
    """A kernel's name without what a compiler varies."""
    for pattern, replacement in _JIT_TAILS:
        name = name.str.replace_all(pattern, replacement)
    return name


def _normalised(names: pl.Series) -> pl.Series:
    """The same of many names, few of them different."""
    spelt = pl.DataFrame({"name": names.unique()}).with_columns(normalised=normalised_name(pl.col("name")))
    return pl.DataFrame({"name": names}).join(spelt, on="name", how="left", maintain_order="left")["normalised"]


def group_names(labels: pl.DataFrame) -> pl.DataFrame:
    """``group`` and ``name`` of every kernel of any trace, by ``matched_labels``."""
    names = labels.select("group", name=pl.coalesce("name", "short_name"))
    return names.unique("group", keep="first", maintain_order=True)


def matched_labels(keys: list[pl.DataFrame], by: By = "launch") -> pl.DataFrame:
    """Give the kernels of several traces common group numbers.

    ``keys`` are the traces' schema.KERNEL_KEYS. Returns one row a trace and key: ``trace``, ``key``, ``group``,
    ``normalised`` (matched by name without what a compiler varies) and the labels, with original names. Names
    are normalised only between kernels that not every trace has, and only where no trace has two candidates.
    """
    every = pl.concat([frame.with_columns(trace=pl.lit(i, pl.UInt32)) for i, frame in enumerate(keys)])
    whole_name = every.select(name=pl.coalesce("name", "mangled_name", "short_name"))["name"]
    labels = label_keys(every, by).with_columns(
        every["trace", "key"],
        exact=pl.Series(number_groups(every, by).of_rows),
        loose=pl.Series(numbers_of(every, by, _normalised(whole_name)).of_rows),
    )
    traces, exact = pl.col("trace").n_unique(), pl.col("exact").n_unique()
    labels = labels.with_columns(unmatched=traces.over("exact") < len(keys))
    one_each = (
        labels.filter("unmatched")
        .group_by("loose")
        .agg(one_each=(traces > 1) & (exact > 1) & (pl.struct("trace", "exact").n_unique() == traces))
    )
    labels = labels.join(one_each, on="loose", how="left").with_columns(
        normalised=pl.col("unmatched") & pl.col("one_each").fill_null(False)
    )
    identity = pl.struct("normalised", pl.when("normalised").then("loose").otherwise("exact").alias("number"))
    ordered = labels.with_columns(
        order=pl.when("normalised").then(pl.col("exact").min().over("loose")).otherwise("exact")
    )
    ordered = ordered.with_columns(group=pl.struct("order", identity.alias("identity")).rank("dense") - 1)
    return ordered.select("trace", "key", pl.col("group").cast(pl.UInt32), "normalised", *LABELS)
