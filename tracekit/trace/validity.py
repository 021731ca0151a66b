"""Rows of GPU work whose times cannot be true."""

from collections.abc import Callable

import polars as pl

LONGEST = 1 << 56
"""Times are believed up to this many ns (over two years) from the clock's zero."""

REASONS = ("no time", "zero start", "negative duration", "time out of range")


def believable(
    rows: pl.DataFrame, launched_before_zero: Callable[[], pl.DataFrame]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Split off rows (columns ``start``, ``end``, ``correlation``) whose times cannot be true.

    CUPTI writes zero where it has no timestamp, so a zero start is believed only when its launch call
    (``launched_before_zero``: a frame of ``correlation``) is recorded at or before zero.
    Returns the believable rows and reason -> count for the others.
    """
    reason = (
        pl.when(pl.col("start").is_null() | pl.col("end").is_null())
        .then(pl.lit("no time"))
        .when((pl.col("start") == 0) & ~pl.col("_real_zero"))
        .then(pl.lit("zero start"))
        .when(pl.col("end") < pl.col("start"))
        .then(pl.lit("negative duration"))
        .when((pl.col("start").abs() > LONGEST) | (pl.col("end").abs() > LONGEST))
        .then(pl.lit("time out of range"))
    )
    starts_at_zero = pl.col("start") == 0
    if rows.select((starts_at_zero & (pl.col("end") > 0)).any()).item():
        launched = launched_before_zero()["correlation"]
        rows = rows.with_columns(
            _real_zero=starts_at_zero & (pl.col("end") > 0) & pl.col("correlation").is_in(launched.implode())
        )
    else:
        rows = rows.with_columns(_real_zero=pl.lit(False))
    rows = rows.with_columns(_reason=reason)
    counts = rows.filter(pl.col("_reason").is_not_null()).group_by("_reason").len()
    found = dict(zip(counts["_reason"], counts["len"], strict=True))
    kept = rows.filter(pl.col("_reason").is_null()).drop("_reason", "_real_zero")
    return kept, {reason: found[reason] for reason in REASONS if reason in found}
