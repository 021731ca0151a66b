"""Who ran at the same time as whom: devices, streams, pairs of streams, pairs of kernels."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from tracekit.analysis.devices import device_lines
from tracekit.analysis.results import Device, DeviceOverlap, Stream, StreamPair
from tracekit.intervals import Ints, arrays, sweep

PAIRS_AT_ONCE = 2_000_000
"""Instance pairs held in memory at a time."""

_STREAM = ["process", "stream"]


def device_overlaps(
    kernels: pl.DataFrame, copies: pl.DataFrame, depths: pl.DataFrame, opaque_devices: frozenset[int]
) -> list[DeviceOverlap]:
    """Device lines with the time at each depth, and what kind of overlap it was.

    A moment with two or more kernels counts as stream overlap when they are on different streams; else as
    graph branches when two of them belong to one graph launch (whether an edge orders them is unknown
    without the graph's shape); else as same-stream overlap (programmatic dependent launch).
    """
    lines = device_lines(kernels, copies, depths, opaque_devices)
    return [
        _with_kinds(line, *(frame.filter(pl.col("device") == line.device) for frame in (kernels, depths)))
        for line in lines
    ]


def _with_kinds(line: Device, kernels: pl.DataFrame, depths: pl.DataFrame) -> DeviceOverlap:
    overlapped = line.overlapped_ns or 0
    across = _streams_at_once(kernels)
    beside_branches = _length_of_union([across, _branches_at_once(kernels)])
    stream_overlap = _length_of_union([across])
    values = {name: getattr(line, name) for name in Device.__struct_fields__}
    return DeviceOverlap(
        **values,
        depth_ns={str(depth): time for depth, time in depths.select("depth", "time").iter_rows()},
        stream_overlap_ns=stream_overlap,
        graph_branch_overlap_ns=beside_branches - stream_overlap,
        same_stream_overlap_ns=overlapped - beside_branches,
        graph_edges_known=False,
    )


def _streams_at_once(kernels: pl.DataFrame) -> pl.DataFrame:
    merged = _merged(kernels.with_columns(stream=_stream_number(kernels)), "stream", 1)
    return _merged(merged.with_columns(all=pl.lit(0)), "all", 2)


def _branches_at_once(kernels: pl.DataFrame) -> pl.DataFrame:
    nodes = kernels.filter(pl.col("graph_node").is_not_null() & (pl.col("overlapped") > 0))
    launch = nodes.select(pl.struct(*_STREAM, "correlation").rank("dense")).to_series()
    return _merged(nodes.with_columns(launch=launch.cast(pl.Int64)), "launch", 2)


def _stream_number(kernels: pl.DataFrame) -> pl.Series:
    return kernels.select(pl.struct(_STREAM).rank("dense")).to_series().cast(pl.Int64)


def _merged(intervals: pl.DataFrame, group: str, least: int) -> pl.DataFrame:
    """Stretches (``group``, ``start``, ``end``) of each group with at least ``least`` of its intervals running."""
    groups = intervals[group].to_numpy()
    moments = sweep(*arrays(intervals), group=groups)
    begin, finish = moments.stretches(least)
    of_moment = np.empty(moments.time.size, np.int64)
    of_moment[moments.first] = groups
    of_moment[moments.last] = groups
    return pl.DataFrame({group: of_moment[begin], "start": moments.time[begin], "end": moments.time[finish]})


def _length_of_union(parts: list[pl.DataFrame]) -> int:
    return sweep(*arrays(pl.concat([part.select("start", "end") for part in parts]))).total(1)


def stream_lines(kernels: pl.DataFrame) -> list[Stream]:
    """One line a stream. Streams of different processes are different, whatever their ids."""
    lines = []
    for (device,), rows in kernels.partition_by("device", as_dict=True).items():
        numbered = rows.with_columns(number=_stream_number(rows))
        busy = (
            _merged(numbered, "number", 1)
            .group_by("number")
            .agg(busy=(pl.col("end") - pl.col("start")).sum())
        )
        beside = (
            numbered.group_by("number")
            .agg(pl.first(*_STREAM), pl.len().alias("rows"))
            .join(busy, on="number", how="left")
            .join(_overlapped_by(numbered), on="number", how="left")
        )
        lines += [
            Stream(
                device=int(device),
                process=_pid(row["process"]),
                stream=row["stream"],
                kernel_rows=row["rows"],
                busy_ns=row["busy"] or 0,
                overlapped_ns=row["overlapped"] or 0,
            )
            for row in beside.sort("number").iter_rows(named=True)
        ]
    return sorted(lines, key=lambda line: line.device)


def _overlapped_by(numbered: pl.DataFrame) -> pl.DataFrame:
    """Per stream, the length of its own busy time during which anything else of the device ran too."""
    running = sweep(*arrays(numbered))
    begin, finish = running.stretches(2)
    deep = pl.DataFrame({"start": running.time[begin], "end": running.time[finish]})
    merged = _merged(numbered, "number", 1)
    pieces = _crossings(merged, deep)
    return pieces.group_by("number").agg(overlapped=pl.col("overlap").sum())


def _crossings(intervals: pl.DataFrame, disjoint: pl.DataFrame) -> pl.DataFrame:
    """Each interval with each of the sorted, disjoint intervals it meets, and the ``overlap`` of the two."""
    start, end = arrays(intervals)
    others_start, others_end = arrays(disjoint)
    low = np.searchsorted(others_end, start, side="right")
    high = np.searchsorted(others_start, end, side="left")
    left, right = _spread(low, np.maximum(high, low))
    overlap = np.minimum(end[left], others_end[right]) - np.maximum(start[left], others_start[right])
    return intervals[left].with_columns(overlap=pl.Series(overlap, dtype=pl.Int64))


def _spread(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All (i, j) with ``low[i]`` <= j < ``high[i]``."""
    counts = high - low
    left = np.repeat(np.arange(low.size), counts)
    right = np.arange(left.size) - np.repeat(np.cumsum(counts) - counts, counts) + low[left]
    return left, right


def _meetings(intervals: pl.DataFrame) -> Iterator[tuple[Ints, Ints, Ints]]:
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
        left, right = _spread(low[block:stop], high[block:stop])
        left = left + block
        yield left, right, np.minimum(end[left], end[right]) - start[right]
        block = stop


def stream_pairs(kernels: pl.DataFrame) -> list[StreamPair]:
    """Pairs of streams of one device and how long kernels ran on both at once, longest first."""
    found = []
    for (device,), rows in kernels.partition_by("device", as_dict=True).items():
        numbered = rows.with_columns(number=_stream_number(rows))
        ids = {
            row["number"]: (row["process"], row["stream"])
            for row in numbered.select("number", *_STREAM).unique().iter_rows(named=True)
        }
        merged = _merged(numbered.filter(pl.col("overlapped") > 0), "number", 1).sort(
            "start", "end", "number"
        )
        number = merged["number"].to_numpy()
        blocks = [
            pl.DataFrame({"a": np.minimum(*n), "b": np.maximum(*n), "overlap": overlap})
            for left, right, overlap in _meetings(merged)
            if (n := (number[left], number[right])) is not None
        ]
        if not blocks:
            continue
        sums = pl.concat(blocks).group_by("a", "b").agg(pl.col("overlap").sum())
        found += [
            StreamPair(
                device=int(device),
                process_a=_pid(ids[a][0]),
                a=ids[a][1],
                process_b=_pid(ids[b][0]),
                b=ids[b][1],
                overlap_ns=overlap,
            )
            for a, b, overlap in sums.sort("a", "b").iter_rows()
        ]
    return sorted(found, key=lambda pair: (-pair.overlap_ns, pair.device))


def kernel_pairs(kernels: pl.DataFrame, group: pl.Series, solo: pl.DataFrame) -> pl.DataFrame:
    """Pairs of kernels that ran side by side on one device.

    ``group`` numbers the kernel of each instance; ``solo`` has ``group`` and ``solo`` (median, ns).
    Returns ``a``, ``b`` (groups, a <= b), ``overlap_ns`` and ``instances`` (both over pairs of instances),
    ``stretch_a``, ``stretch_b`` (median duration / solo of the distinct instances involved), longest first.
    """
    rows = kernels.with_columns(group=group, instance=pl.int_range(pl.len())).filter(pl.col("overlapped") > 0)
    sums: list[pl.DataFrame] = []
    members: list[pl.DataFrame] = []
    for device_rows in rows.partition_by("device"):
        ordered = device_rows.sort("start", "end", "group")
        for left, right, overlap in _meetings(ordered):
            sides = [ordered[side].select("group", "instance") for side in (left, right)]
            first, second = (side["group"] for side in sides)
            swap = first > second
            pairs = pl.DataFrame(
                {
                    "a": first.zip_with(~swap, second),
                    "b": second.zip_with(~swap, first),
                    "overlap_ns": overlap,
                    "a_instance": sides[0]["instance"].zip_with(~swap, sides[1]["instance"]),
                    "b_instance": sides[1]["instance"].zip_with(~swap, sides[0]["instance"]),
                }
            )
            sums.append(
                pairs.group_by("a", "b").agg(
                    pl.col("overlap_ns").sum(), pl.len().cast(pl.Int64).alias("instances")
                )
            )
            members += [
                pairs.select("a", "b", instance=f"{side}_instance", side=pl.lit(side)).unique()
                for side in ("a", "b")
            ]
    if not sums:
        return pl.DataFrame(schema=_PAIRS)
    total = pl.concat(sums).group_by("a", "b").agg(pl.col("overlap_ns", "instances").sum())
    stretch = _stretches(pl.concat(members).unique(), rows, solo)
    for side in ("a", "b"):
        total = total.join(
            stretch.filter(pl.col("side") == side).select(
                "a", "b", pl.col("stretch").alias(f"stretch_{side}")
            ),
            on=["a", "b"],
            how="left",
        )
    return total.select(list(_PAIRS)).sort(["overlap_ns", "a", "b"], descending=[True, False, False])


def _stretches(members: pl.DataFrame, rows: pl.DataFrame, solo: pl.DataFrame) -> pl.DataFrame:
    durations = rows.select("instance", "group", duration=pl.col("end") - pl.col("start"))
    known = durations.join(solo.select("group", "solo"), on="group", how="left")
    return (
        members.join(known, on="instance")
        # Two instances of one kernel are interchangeable: both sides show the same median.
        .with_columns(side=pl.when(pl.col("a") == pl.col("b")).then(pl.lit("both")).otherwise("side"))
        .unique(["a", "b", "side", "instance"])
        .group_by("a", "b", "side")
        .agg(stretch=(pl.col("duration") / pl.col("solo")).median())
        .with_columns(
            side=pl.when(pl.col("side") == "both").then(pl.lit(["a", "b"])).otherwise(pl.concat_list("side"))
        )
        .explode("side")
    )


def _pid(process: int | None) -> int | None:
    return None if process is None else process & 0xFFFFFF


_PAIRS = pl.Schema(
    {
        "a": pl.UInt32,
        "b": pl.UInt32,
        "overlap_ns": pl.Int64,
        "instances": pl.Int64,
        "stretch_a": pl.Float64,
        "stretch_b": pl.Float64,
    }
)
