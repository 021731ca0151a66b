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
    start, end = pl.col("start"), pl.col("end")
    zero_start = start == 0
    if rows.select((zero_start & (end > 0)).any()).item():
        launched = launched_before_zero()["correlation"].implode()
        zero_start &= ~((end > 0) & pl.col("correlation").is_in(launched).fill_null(False))
    out_of_range = ~start.is_between(-LONGEST, LONGEST) | ~end.is_between(-LONGEST, LONGEST)
    faults = (start.is_null() | end.is_null(), zero_start, end < start, out_of_range)
    if not rows.select(pl.any_horizontal(*faults).any()).item():
        return rows, {}
    reason = pl.coalesce(pl.when(fault).then(pl.lit(reason)) for fault, reason in zip(faults, REASONS, strict=True))
    found = rows.select(reason=reason)["reason"]
    counts = dict(found.drop_nulls().value_counts().iter_rows())
    return rows.filter(found.is_null()), {each: counts[each] for each in REASONS if each in counts}
