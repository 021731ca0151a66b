"""Pairs of intervals that run at the same time, and pairs of kernels that did."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from tracekit.intervals import Ints, arrays, distinct

PAIRS_AT_ONCE = 500_000
"""Instance pairs held in memory at a time."""

PAIRS = pl.Schema(
    {
        "a": pl.UInt32,
        "b": pl.UInt32,
        "overlap_ns": pl.Int64,
        "instances": pl.Int64,
        "stretch_a": pl.Float64,
        "stretch_b": pl.Float64,
    }
)
"""Pairs of kernels (groups, a <= b): time at once and how many pairs of instances, and the median
duration / solo of the distinct instances on each side."""


def spread(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All (i, j) with ``low[i]`` <= j < ``high[i]``."""
    counts = high - low
    left = np.repeat(np.arange(low.size), counts)
    right = np.arange(left.size) - np.repeat(np.cumsum(counts) - counts, counts) + low[left]
    return left, right


def meetings(intervals: pl.DataFrame) -> Iterator[tuple[Ints, Ints, Ints]]:
    """All pairs of intervals that run at the same time: (earlier, later, length), in bounded blocks.

    ``intervals`` are sorted by start and have no empty ones. An interval meets exactly those later ones
    that start before it ends: a range search over the sorted starts.
    """
    start, end = arrays(intervals)
    low = np.arange(1, start.size + 1)
    high = np.searchsorted(start, end, side="left")
    total = np.cumsum(high - low)
    block = 0
    while block < start.size:
        done = total[block - 1] if block else 0
        stop = max(block + 1, int(np.searchsorted(total, done + PAIRS_AT_ONCE, side="right")))
        left, right = spread(low[block:stop], high[block:stop])
        left = left + block
        yield left, right, np.minimum(end[left], end[right]) - start[right]
        block = stop


def crossings(intervals: pl.DataFrame, disjoint: pl.DataFrame) -> pl.DataFrame:
    """Each interval with each of the sorted, disjoint intervals it meets, and the ``overlap`` of the two."""
    start, end = arrays(intervals)
    others_start, others_end = arrays(disjoint)
    low = np.searchsorted(others_end, start, side="right")
    high = np.searchsorted(others_start, end, side="left")
    left, right = spread(low, np.maximum(high, low))
    overlap = np.minimum(end[left], others_end[right]) - np.maximum(start[left], others_start[right])
    return intervals[left].with_columns(overlap=pl.Series(overlap, dtype=pl.Int64))


def kernel_pairs(kernels: pl.DataFrame, group: pl.Series, solo: pl.Series) -> pl.DataFrame:
    """Pairs of kernels that ran side by side on one device, longest first: PAIRS.

    ``group`` numbers the kernel of each instance, ``solo`` is its solo duration (ns; null: unknown).
    """
    rows = kernels.select("start", "end", "device", group=group, solo=solo).filter(kernels["overlapped"] > 0)
    rows = rows.sort("device", "start", "end", "group")
    size = int(rows["group"].max() or 0) + 1  # type: ignore[arg-type]
    sums = [pl.DataFrame(schema={"pair": pl.Int64, "overlap_ns": pl.Int64, "instances": pl.UInt32})]
    involved: dict[str, list[Ints]] = {"a": [], "b": []}
    before = 0
    for device_rows in rows.partition_by("device", maintain_order=True):
        number = device_rows["group"].to_numpy().astype(np.int64)
        for left, right, overlap in meetings(device_rows):
            swap = number[left] > number[right]
            first, second = np.where(swap, right, left), np.where(swap, left, right)
            pair = number[first] * size + number[second]
            met = pl.DataFrame({"pair": pair, "overlap_ns": overlap})
            sums.append(met.group_by("pair").agg(pl.col("overlap_ns").sum(), pl.len().alias("instances")))
            own = number[first] == number[second]
            # Two instances of one kernel are interchangeable: both sides of such a pair have the same median.
            for side, positions, others in (("a", first, second), ("b", second, first)):
                both = np.concatenate([positions, others[own]]) + before
                involved[side].append(distinct(np.concatenate([pair, pair[own]]) * rows.height + both))
        before += device_rows.height
    total = pl.concat(sums).group_by("pair").agg(pl.col("overlap_ns", "instances").sum())
    for side, members in involved.items():
        total = total.join(_median_stretch(members, rows, f"stretch_{side}"), on="pair", how="left")
    return (
        total.with_columns(a=pl.col("pair") // size, b=pl.col("pair") % size)
        .select(list(PAIRS))
        .cast(PAIRS)
        .sort(["overlap_ns", "a", "b"], descending=[True, False, False])
    )


def _median_stretch(members: list[Ints], rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Median of duration / solo over the instances of each pair; ``members`` number pairs and instances."""
    stretch = rows.select(stretch=(pl.col("end") - pl.col("start")) / pl.col("solo"))["stretch"]
    numbers = distinct(np.concatenate([*members, np.empty(0, np.int64)]))
    count = max(rows.height, 1)
    frame = pl.DataFrame({"pair": numbers // count, name: stretch.gather(numbers % count)})
    return frame.group_by("pair").agg(pl.col(name).median())
