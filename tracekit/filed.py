"""What the results database keeps and ``tracekit history`` answers, as typed values. Times are nanoseconds."""

from datetime import datetime
from typing import Literal

import msgspec

from tracekit.analysis.results import Answer, Kernel, Number, Status


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What is filed of a recorded run. ``wall_ns``: unprofiled wall times by arm, one a block."""

    time: datetime
    workload: str
    folder: str
    command: list[str]
    arms: list[str]
    gpu: str | None
    versions: dict[str, str | None]
    wall_ns: dict[str, list[int]]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A run or a comparison. A run has ``folder``, ``command`` and ``wall_ns``, a comparison the rest:
    ``roles`` and ``traces`` (one a block) by arm."""

    time: str
    kind: Literal["run", "diff"]
    workload: str
    arms: list[str]
    gpus: list[str]
    versions: dict[str, str | None]
    folder: str | None = None
    command: list[str] | None = None
    wall_ns: dict[str, list[int]] | None = None
    roles: dict[str, str] | None = None
    traces: dict[str, list[str]] | None = None
    winner: str | None = None
    reason: str | None = None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One arm (b) against the first (a) in one comparison; ratios are b / a. ``traces``: one a block."""

    time: str
    workload: str
    gpus: list[str]
    role_a: str
    traces_a: list[str]
    role_b: str | None
    traces_b: list[str] | None
    ratio: float | None
    ci95: tuple[float, float] | None


class PhasePoint(Point, frozen=True, kw_only=True):
    """A phase in one comparison: medians over counted instances."""

    name: str
    n_a: int
    n_b: int
    time_basis: str | None
    time_ns_a: Number | None
    time_ns_b: Number | None
    winner: str


class KernelPoint(Point, frozen=True, kw_only=True):
    """A kernel in one comparison. A side that did not run it is null, and so is the status then."""

    kernel: Kernel
    phase: str
    count_a: int | None
    count_b: int | None
    median_ns_a: Number | None
    median_ns_b: Number | None
    p25_ns_a: Number | None
    p75_ns_a: Number | None
    p25_ns_b: Number | None
    p75_ns_b: Number | None
    status: Status | None
    overlapped_fraction_a: float | None
    overlapped_fraction_b: float | None
    solo_ns: Number | None


class History(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit history``, newest first. Null: not asked for."""

    entries: list[Entry]
    phases: list[PhasePoint] | None
    kernels: list[KernelPoint] | None
