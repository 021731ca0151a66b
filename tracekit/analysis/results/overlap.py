"""Answer of ``tracekit overlap``."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Answer, Kernel
from tracekit.analysis.results.contention import Contention, OverlapSet
from tracekit.analysis.results.summary import Device


class DeviceOverlap(Device, frozen=True):
    """The same, with what overlapped and how deep."""

    depth_ns: dict[str, int] | None
    stream_overlap_ns: int | None
    graph_branch_overlap_ns: int | None
    same_stream_overlap_ns: int | None
    graph_edges_known: bool


class Stream(msgspec.Struct, frozen=True):
    """One stream; ``overlapped_ns`` counts time beside any other kernel of the device."""

    device: int
    process: int | None
    stream: int | None
    kernel_rows: int
    busy_ns: int | None
    overlapped_ns: int | None


class StreamPair(msgspec.Struct, frozen=True):
    """How long kernels ran on both streams at once."""

    device: int
    process_a: int | None
    a: int | None
    process_b: int | None
    b: int | None
    overlap_ns: int | None


class KernelPair(msgspec.Struct, frozen=True):
    """Who ran beside whom: time summed over pairs of instances, and each one's median duration / solo."""

    a: Kernel
    b: Kernel
    overlap_ns: int | None
    instances: int
    stretch_a: float | None
    stretch_b: float | None


class Episodes(msgspec.Struct, frozen=True):
    """Stretches of time with two or more kernels at once: W, S and what overlapping saved.

    ``solo_ns`` (S) and ``gain_ns`` (S - W) are over the covered episodes, those whose members all have a
    known solo duration; ``covered_wall_ns`` is their W. ``gain_low_ns``/``gain_high_ns`` carry p25-p75 of
    the solo durations. The ``bound`` figures are over all episodes, unknown durations taken between
    nothing and everything of the overlapped time.
    """

    count: int
    wall_ns: int | None
    solo_ns: int | None
    gain_ns: int | None
    gain_low_ns: int | None
    gain_high_ns: int | None
    coverage: float | None
    covered_count: int
    covered_wall_ns: int | None
    bound_low_ns: int | None
    bound_high_ns: int | None
    solo_from: str


class Overlap(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit overlap``."""

    traced_by: str
    selected: list[str]
    devices: list[DeviceOverlap]
    streams: list[Stream]
    stream_pairs: list[StreamPair]
    kernel_pairs: list[KernelPair]
    episodes: Episodes
    contention: list[Contention]
    sets: list[OverlapSet]
    by: Literal["launch", "name", "short", "operator"]
