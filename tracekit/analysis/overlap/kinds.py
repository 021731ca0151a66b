"""How much of each device's time kernels ran side by side, and what kind of overlap it was."""

import polars as pl

from tracekit.analysis.overlap.devices import device_lines
from tracekit.analysis.overlap.streams import STREAM, Streams, merged
from tracekit.analysis.results import Device, DeviceOverlap
from tracekit.intervals import arrays, sweep


def device_overlaps(
    kernels: pl.DataFrame,
    copies: pl.DataFrame,
    depths: pl.DataFrame,
    streams: list[Streams],
    opaque_devices: frozenset[int],
) -> list[DeviceOverlap]:
    """Device lines with the time at each depth, and what kind of overlap it was.

    A moment with two or more kernels counts as stream overlap when they are on different streams; else as
    graph branches when two of them belong to one graph launch (whether an edge orders them is unknown
    without the graph's shape); else as same-stream overlap (programmatic dependent launch).
    """
    by_device = {each.device: each for each in streams}
    return [
        _with_kinds(
            line,
            kernels.filter(pl.col("device") == line.device),
            depths.filter(pl.col("device") == line.device),
            by_device.get(line.device),
        )
        for line in device_lines(kernels, copies, depths, opaque_devices)
    ]


def _with_kinds(line: Device, kernels: pl.DataFrame, depths: pl.DataFrame, streams: Streams | None) -> DeviceOverlap:
    if kernels.height and kernels["stream"].null_count() == kernels.height:
        return _as_overlap(line, depths, None)
    across = _streams_at_once(streams)
    stream_overlap = _length_of_union([across])
    with_branches = _length_of_union([across, _branches_at_once(kernels)])
    overlapped = int(depths.filter(pl.col("depth") >= 2)["time"].sum())
    return _as_overlap(line, depths, (stream_overlap, with_branches - stream_overlap, overlapped - with_branches))


def _as_overlap(line: Device, depths: pl.DataFrame, kinds: tuple[int, int, int] | None) -> DeviceOverlap:
    """The line with its depths; ``kinds`` are unknown where streams are not recorded."""
    values = {name: getattr(line, name) for name in Device.__struct_fields__}
    across, branches, same = kinds or (None, None, None)
    return DeviceOverlap(
        **values,
        depth_ns={str(depth): time for depth, time in depths.select("depth", "time").iter_rows()},
        stream_overlap_ns=across,
        graph_branch_overlap_ns=branches,
        same_stream_overlap_ns=same,
        graph_edges_known=False,
    )


def _streams_at_once(streams: Streams | None) -> pl.DataFrame:
    """Stretches in which two or more streams run."""
    if streams is None:
        return pl.DataFrame(schema={"start": pl.Int64, "end": pl.Int64})
    return merged(streams.busy.with_columns(device=pl.lit(0, pl.Int64)), "device", 2)


def _branches_at_once(kernels: pl.DataFrame) -> pl.DataFrame:
    """Stretches in which two or more nodes of one graph launch run on one stream."""
    launched = pl.col("graph_node").is_not_null() & pl.col("correlation").is_not_null()
    nodes = kernels.filter(launched & (pl.col("overlapped") > 0))
    launch = nodes.select(pl.struct(*STREAM, "correlation").rank("dense")).to_series()
    return merged(nodes.with_columns(launch=launch.cast(pl.Int64)), "launch", 2)


def _length_of_union(parts: list[pl.DataFrame]) -> int:
    return sweep(*arrays(pl.concat([part.select("start", "end") for part in parts]))).total(1)
