"""Answer of ``tracekit summary``."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Answer, Kernel, Number


class KernelSummary(Kernel, frozen=True):
    """Durations of one kernel key. ``mixed``: p95/p5 > 1.5 among instances that ran alone."""

    count: int
    graph_count: int
    total_ns: int | None
    share: float | None
    mean_ns: Number
    median_ns: Number
    p25_ns: Number
    p75_ns: Number
    p95_ns: Number
    min_ns: int
    max_ns: int
    overlapped_fraction: float | None
    mixed: bool


class GapBucket(msgspec.Struct, frozen=True):
    """Pauses of a device with neither kernel nor copy, of at least ``from_ns`` and less than ``to_ns``."""

    from_ns: int
    to_ns: int | None
    count: int
    total_ns: int


class Device(msgspec.Struct, frozen=True):
    """Time of one device: see docs/concepts.md for each word."""

    device: int
    kernel_rows: int
    span_ns: int
    busy_ns: int | None
    idle_ns: int | None
    copy_ns: int
    summed_ns: int | None
    overlapped_ns: int | None
    max_depth: int | None
    gaps: list[GapBucket] | None


class Recording(msgspec.Struct, frozen=True):
    """What was recorded and what could not be."""

    recorded: list[str]
    opaque_share: float | None
    launch_coverage: float | None
    invalid_rows: dict[str, int]
    withheld: list[str]


class Summary(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit summary``."""

    by: Literal["launch", "name", "short", "operator"]
    selected: list[str]
    kernels: list[KernelSummary]
    kernels_left_out: int
    devices: list[Device]
    recording: Recording
