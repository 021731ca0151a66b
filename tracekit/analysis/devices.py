"""Time of each device: span, busy, copy, idle, depth, pauses."""

import numpy as np
import polars as pl

from tracekit.analysis.results import Device, GapBucket
from tracekit.intervals import Sweep, arrays, sweep

GAP_EDGES = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Lower edges (ns) of the histogram of pauses."""


def device_lines(kernels: pl.DataFrame, copies: pl.DataFrame, opaque_devices: set[int]) -> list[Device]:
    """One line a device that did anything.

    ``kernels`` and ``copies`` have ``start``, ``end``, ``device``. On ``opaque_devices`` whole graphs ran
    whose kernels are hidden, so the device was busy at times that look idle: no idle time is given.
    """
    devices = sorted({*kernels["device"].unique(), *copies["device"].unique()})
    return [
        _line(
            device,
            kernels.filter(pl.col("device") == device),
            copies.filter(pl.col("device") == device),
            device in opaque_devices,
        )
        for device in devices
    ]


def _line(device: int, kernels: pl.DataFrame, copies: pl.DataFrame, opaque: bool) -> Device:
    running = sweep(*arrays(kernels))
    copying = sweep(*arrays(copies))
    active = sweep(*arrays(pl.concat([kernels.select("start", "end"), copies.select("start", "end")])))
    span = int(active.time[-1] - active.time[0])
    return Device(
        device=device,
        kernel_rows=kernels.height,
        span_ns=span,
        busy_ns=running.total(1),
        idle_ns=None if opaque else span - active.total(1),
        copy_ns=copying.total(1),
        summed_ns=int((kernels["end"] - kernels["start"]).sum()),
        overlapped_ns=running.total(2),
        max_depth=int(running.depth.max(initial=0)),
        gaps=None if opaque else _gaps(active),
    )


def _gaps(active: Sweep) -> list[GapBucket]:
    length = active.length[:-1][active.depth[:-1] == 0]
    bucket = np.searchsorted(np.array(GAP_EDGES), length, side="right") - 1
    return [
        GapBucket(
            from_ns=edge,
            to_ns=GAP_EDGES[i + 1] if i + 1 < len(GAP_EDGES) else None,
            count=int((bucket == i).sum()),
            total_ns=int(length[bucket == i].sum()),
        )
        for i, edge in enumerate(GAP_EDGES)
    ]
