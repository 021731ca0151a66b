"""What each command answers, as typed values. The JSON output and its schema are made from these.

Times are nanoseconds. A fact that is absent or withheld is null and a warning says why.
"""

from typing import Literal

import msgspec

Number = int | float
Dimensions = tuple[int | None, int | None, int | None]
Status = Literal["slower", "faster", "same", "undecided"]
Granularity = Literal["node", "graph", "none", "unknown"]


ALL, OUTSIDE = "(all)", "(outside)"
"""The one phase of a trace without ranges; the work that no range holds."""


class Warn(msgspec.Struct, frozen=True):
    """Something the reader of the figures has to know; ``count`` is how many rows or cases it concerns."""

    code: str
    message: str
    count: int


class TraceLine(msgspec.Struct, frozen=True):
    """One input."""

    path: str
    nsys_version: str | None
    schema_version: str | None
    granularity: Granularity
    gpus: list[str]
    kernel_rows: int
    graph_kernel_rows: int


class Kernel(msgspec.Struct, frozen=True):
    """What identifies a kernel; null where it was grouped away or not recorded."""

    name: str | None
    mangled_name: str | None
    short_name: str | None
    grid: Dimensions | None
    block: Dimensions | None
    cluster: Dimensions | None
    dynamic_smem: int | None


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


class Verdict(msgspec.Struct, frozen=True):
    """Who won, why, and what to do about it."""

    winner: Literal["a", "b", "tie", "undecided"]
    reason: str
    advice: str


class ArmLine(msgspec.Struct, frozen=True):
    """One side of a comparison and how its kernels were launched."""

    arm: str
    path: str
    role: Literal["graph", "eager", "mixed", "opaque graph", "no kernels"]
    graph_share: float | None
    graph_launches: int
    streams: int
    max_depth: int


class KernelComparison(Kernel, frozen=True):
    """One kernel in two arms. Instances of warm-up are left out of every figure.

    ``per_iteration``: launches in one instance of ``phase``, the phase it spends most time in.
    """

    arm: str
    name_b: str | None
    matched_by: Literal["key", "normalised name"]
    phase: str
    count_a: int
    count_b: int
    per_iteration_a: float | None
    per_iteration_b: float | None
    per_iteration_ns_a: Number | None
    per_iteration_ns_b: Number | None
    total_ns_a: int | None
    total_ns_b: int | None
    mean_ns_a: Number
    mean_ns_b: Number
    median_ns_a: Number
    median_ns_b: Number
    p25_ns_a: Number
    p75_ns_a: Number
    p25_ns_b: Number
    p75_ns_b: Number
    ratio: float | None
    ci95: tuple[float, float] | None
    status: Status
    note: str | None
    overlapped_fraction_a: float | None
    overlapped_fraction_b: float | None
    solo_ns: Number | None
    solo_from: str | None
    stretch_a: float | None
    stretch_b: float | None


class KernelOnOneSide(Kernel, frozen=True):
    """A kernel that only one arm ran."""

    arm: str
    phase: str
    count: int
    total_ns: int | None
    median_ns: Number


class Phase(msgspec.Struct, frozen=True):
    """One phase in two arms. Times are medians over the counted instances.

    ``leaders`` are the arm with the least time and those not set apart from it; ``best`` is the only one.
    """

    name: str
    arm: str
    n_a: int
    n_b: int
    warm_up_a: int
    warm_up_b: int
    time_basis: str | None
    time_ns_a: Number | None
    time_ns_b: Number | None
    ratio: float | None
    ci95: tuple[float, float] | None
    interval_basis: str
    gpu_span_ns_a: Number | None
    gpu_span_ns_b: Number | None
    wall_ns_a: Number | None
    wall_ns_b: Number | None
    busy_ns_a: Number | None
    busy_ns_b: Number | None
    overlapped_ns_a: Number | None
    overlapped_ns_b: Number | None
    idle_ns_a: Number | None
    idle_ns_b: Number | None
    launches_a: Number | None
    launches_b: Number | None
    setup_ns_a: Number | None
    setup_ns_b: Number | None
    overlap_gain_ns_a: Number | None
    overlap_gain_ns_b: Number | None
    what_if_serial_ns_a: Number | None
    what_if_serial_ns_b: Number | None
    what_if_serial_interval_a: tuple[Number, Number] | None
    what_if_serial_interval_b: tuple[Number, Number] | None
    overlap_coverage_a: float | None
    overlap_coverage_b: float | None
    kernel_rows_a: int
    kernel_rows_b: int
    kernel_ns_a: int
    kernel_ns_b: int
    best: str | None
    leaders: list[str]
    verdict: Verdict


class ProfilerCost(msgspec.Struct, frozen=True):
    """Median wall time (s) of one arm's blocks with and without the profiler, and how many times as long."""

    arm: str
    blocks: int
    plain_wall_s: float
    profiled_wall_s: float
    ratio: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every command's output holds."""

    tracekit: str
    command: str
    traces: list[TraceLine]
    warnings: list[Warn]


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
    devices: list[Device]
    recording: Recording


class Overlap(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit overlap``."""

    traced_by: str
    selected: list[str]
    devices: list[DeviceOverlap]
    streams: list[Stream]
    stream_pairs: list[StreamPair]
    kernel_pairs: list[KernelPair]
    episodes: Episodes


class Diff(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit diff``. Rows carry ``arm``, the letter of the arm compared with ``a``."""

    arms: list[ArmLine]
    phases: list[Phase]
    kernels: list[KernelComparison]
    only_a: list[KernelOnOneSide]
    only_b: list[KernelOnOneSide]
    verdict: Verdict
    gate: str | None
    profiler: list[ProfilerCost]


class FoundPhase(msgspec.Struct, frozen=True):
    """A phase of one trace."""

    name: str
    instances: int
    kernel_rows: int
    kernel_ns: int


class InfoProcess(msgspec.Struct, frozen=True):
    """A process that used the GPU or tried to; ``launch_ns`` is host time in its launch calls, each counted once."""

    process: int | None
    kernel_rows: int
    launches: int
    graph_launches: int
    launch_ns: int


class Info(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit info``."""

    platform: str | None
    driver_version: str | None
    cuda_version: str | None
    compute_capabilities: list[str | None]
    first_ns: int | None
    last_ns: int | None
    devices: list[int]
    streams: list[int | None]
    processes: list[InfoProcess]
    rows: dict[str, int]
    not_recorded: list[str]
    phases: list[FoundPhase]
    phases_from: str
