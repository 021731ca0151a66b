"""Answers of ``tracekit bench``."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Answer, Number
from tracekit.analysis.results.diff import Status

Method = Literal["chain", "batched", "per-call"]
Residency = Literal["hot", "cold"]
Block = Literal["bare", "norm-residual"]
Mark = Literal[
    "above-roofline",
    "at-floor",
    "batching-hides",
    "host-bound",
    "unsettled",
    "unsteady",
    "outliers",
    "merged",
    "unbounded",
]
Interval = tuple[Number, Number]


class Cell(msgspec.Struct, frozen=True):
    """What was timed how: one operation at one M."""

    candidate: str
    m: int
    block: Block
    weights: Residency
    method: Method


class InTrace(msgspec.Struct, frozen=True):
    """What a trace of the same loop shows: its longest kernel, and how much of the busy time two or more ran."""

    kernel: str | None
    median_ns: Number | None
    kernels: int
    overlapped_share: float | None


class BenchRow(Cell, frozen=True, kw_only=True):
    """Time of one operation. Null where it was withheld: ``marks`` say why.

    ``of_first`` is its ratio to the smallest M. ``bytes`` is what one operation has to read and write.
    ``overhead_ns`` is what starting and waiting for a loop took beside its operations, ``length`` how many those were,
    and ``needed_length`` from how many on a loop divided by its length is within 2 % of ``time_ns``.
    ``build_ns`` is what building the graph took for one operation, which is not in ``time_ns``.
    """

    n: int
    time_ns: float | None
    ci95: Interval | None
    of_first: float | None
    bytes: int | None
    bytes_per_s: float | None
    roofline_share: float | None
    build_ns: float | None
    overhead_ns: float | None
    length: int | None
    needed_length: int | None
    marks: list[Mark]
    unsteady: str | None
    in_trace: InTrace | None = None


class Contrast(msgspec.Struct, frozen=True):
    """Two cells that differ in one thing. ``ratio`` is b / a; ``decided``: its interval does not hold 1."""

    kind: Literal["method", "weights", "block", "candidate"]
    a: Cell
    b: Cell
    ratio: float
    ci95: Interval | None
    decided: bool


class Flip(msgspec.Struct, frozen=True):
    """One comparison (b / a) that two methods decide in opposite ways: of candidates at one M, or of M for one."""

    between: Literal["candidates", "sizes"]
    a: Cell
    b: Cell
    chain_ratio: float
    other: Method
    other_ratio: float


class SizeStep(msgspec.Struct, frozen=True):
    """A jump of one candidate's time from an M to the next that was measured."""

    a: Cell
    b: Cell
    ratio: float
    ci95: Interval | None


class Crossover(msgspec.Struct, frozen=True):
    """Where the faster of two candidates changes, by interpolation over the logarithm of M.

    ``low`` and ``high`` are where the interval's ends cross; null beyond what was measured.
    """

    block: Block
    weights: Residency
    method: Method
    faster_below: str
    faster_above: str
    m: float
    low: float | None
    high: float | None


class OutputCheck(msgspec.Struct, frozen=True):
    """Output against a float32 reference, both as root mean squares, and an exact chain.

    ``exact_chain``: a chain of permutations gave each value back to the bit; null where the format has none.
    """

    candidate: str
    m: int
    error: float | None
    allowed: float | None
    exact_chain: bool | None


class Surroundings(msgspec.Struct, frozen=True):
    """Where it ran. ``clocks_mhz`` are those before and after; empty where they cannot be read."""

    device: str
    versions: dict[str, str]
    cache_bytes: int
    cache_basis: str
    bandwidth: float
    bandwidth_basis: str
    floor_ns: float
    clocks_mhz: list[list[float | None]]
    temperatures_c: list[list[float | None]]
    throttled: list[str]


class Bench(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit bench OPERATION``. ``shape`` is what was asked for; ratios are b / a."""

    operation: str
    shape: dict[str, int | str]
    link: Literal["pair", "projection", "none"]
    surroundings: Surroundings
    rows: list[BenchRow]
    contrasts: list[Contrast]
    flips: list[Flip]
    steps: list[SizeStep]
    crossovers: list[Crossover]
    checks: list[OutputCheck]


class SpeedRow(msgspec.Struct, frozen=True):
    """One workload in one arm: time of a step, a prefill or a forward pass of some width.

    ``n`` runs were counted; ``warm_up_ns`` is the first one of each process, which was not.
    """

    workload: str
    arm: str
    tokens: int
    n: int
    time_ns: float | None
    ci95: Interval | None
    tokens_per_s: float | None
    ratio: float | None
    ratio_ci95: Interval | None
    warm_up_ns: float | None
    unsteady: str | None


class BenchModel(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit bench decode`` and ``prefill``. Ratios are to the first arm."""

    phase: Literal["decode", "prefill"]
    model: str
    device: str
    versions: dict[str, str]
    arms: dict[str, str]
    rows: list[SpeedRow]


class Change(msgspec.Struct, frozen=True):
    """One cell in two results; ``ratio`` is new / old. Null where only one has it."""

    name: str
    old_ns: float | None
    new_ns: float | None
    ratio: float | None
    ci95: Interval | None
    status: Status


class BenchCompare(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit bench --compare OLD NEW``. ``differences``: what else is not the same in the two."""

    old: str
    new: str
    differences: list[str]
    rows: list[Change]
