"""Time of each device: span, busy, copy, idle, depth, pauses."""

from typing import TypeVar

import msgspec
import numpy as np
import polars as pl

from tracekit.analysis.results import Device, GapBucket
from tracekit.intervals import Ints, arrays

GAP_EDGES = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Lower edges (ns) of the histogram of pauses."""


def device_lines(
    kernels: pl.DataFrame, copies: pl.DataFrame, depths: pl.DataFrame, opaque_devices: frozenset[int]
) -> list[Device]:
    """One line a device that did anything.

    ``kernels`` and ``copies`` have ``start``, ``end``, ``device``; ``depths`` is the kernels' time by depth
    (``device``, ``depth``, ``time``). On ``opaque_devices`` whole graphs ran whose kernels are hidden, so
    the device was busy at times that look idle: no idle time is given.
    """
    devices = sorted({*kernels["device"].unique(), *copies["device"].unique()})
    return [
        _line(
            device,
            kernels.filter(pl.col("device") == device).select("start", "end"),
            copies.filter(pl.col("device") == device).select("start", "end"),
            depths.filter(pl.col("device") == device),
            device in opaque_devices,
        )
        for device in devices
    ]


def _line(device: int, kernels: pl.DataFrame, copies: pl.DataFrame, depths: pl.DataFrame, opaque: bool) -> Device:
    active = pl.concat([kernels, copies])
    pauses = _pauses(active)
    begin, finish = active.select(pl.col("start").min(), pl.col("end").max()).row(0)
    copying = copies.select(pl.col("end").max() - pl.col("start").min()).item() or 0
    return Device(
        device=device,
        kernel_rows=kernels.height,
        span_ns=finish - begin,
        busy_ns=int(depths["time"].sum()),
        idle_ns=None if opaque else int(pauses.sum()),
        copy_ns=copying - int(_pauses(copies).sum()),
        summed_ns=int((depths["time"] * depths["depth"]).sum()),
        overlapped_ns=int(depths.filter(pl.col("depth") >= 2)["time"].sum()),
        max_depth=int(depths["depth"].max() or 0),  # type: ignore[arg-type]
        gaps=None if opaque else _gaps(pauses),
    )


def _pauses(intervals: pl.DataFrame) -> Ints:
    """Lengths (ns) of the pauses in which none of the intervals runs."""
    start, end = arrays(intervals)
    order = np.argsort(start)
    pause = start[order][1:] - np.maximum.accumulate(end[order])[:-1]
    return pause[pause > 0]


def _gaps(pauses: Ints) -> list[GapBucket]:
    bucket = np.searchsorted(np.array(GAP_EDGES), pauses, side="right") - 1
    return [
        GapBucket(
            from_ns=edge,
            to_ns=GAP_EDGES[i + 1] if i + 1 < len(GAP_EDGES) else None,
            count=int((bucket == i).sum()),
            total_ns=int(pauses[bucket == i].sum()),
        )
        for i, edge in enumerate(GAP_EDGES)
    ]


AnyDevice = TypeVar("AnyDevice", bound=Device)


def withheld(lines: list[AnyDevice]) -> list[AnyDevice]:
    """The lines without what lost records spoil: every sum over kernels, and what is between them."""
    spoilt = ["busy", "idle", "summed", "overlapped", "depth"]
    spoilt += ["stream_overlap", "graph_branch_overlap", "same_stream_overlap"]
    return [
        msgspec.structs.replace(
            line,
            max_depth=None,
            gaps=None,
            **{f"{name}_ns": None for name in spoilt if hasattr(line, f"{name}_ns")},
        )
        for line in lines
    ]
