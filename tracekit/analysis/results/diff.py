"""Answer of ``tracekit diff``."""

from typing import Literal

import msgspec

from tracekit.analysis.results.causes import Explanation, Step
from tracekit.analysis.results.checks import Check
from tracekit.analysis.results.common import Answer, Kernel, Number, Verdict
from tracekit.analysis.results.contention import Contention, OverlapSet
from tracekit.analysis.results.mechanics import Mechanics
from tracekit.analysis.results.what_if import WhatIf

Status = Literal["slower", "faster", "same", "undecided"]


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
    ``waterfall`` adds up from ``time_ns_a`` to ``time_ns_b``; ``explanations`` are all causes, tested.
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
    waterfall: list[Step]
    explanations: list[Explanation]


class ProfilerCost(msgspec.Struct, frozen=True):
    """Median wall time (s) of one arm's blocks with and without the profiler, and how many times as long."""

    arm: str
    blocks: int
    plain_wall_s: float
    profiled_wall_s: float
    ratio: float


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
    what_if: list[WhatIf]
    mechanics: list[Mechanics]
    trust: list[Check]
    overlaps: list[OverlapSet]
    contention: list[Contention]
    by: Literal["launch", "name", "short", "operator"]
