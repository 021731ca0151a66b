"""Answers of ``tracekit repro``: what was written, and what a run of it shows."""

import msgspec

from tracekit.analysis.results.common import Answer, Number


class ReproRow(msgspec.Struct, frozen=True):
    """One node of the launch and, for a kernel, what takes its place. Times are as traced."""

    node: int
    name: str
    kind: str
    stand_in: str | None
    registers: int | None
    static_smem: int | None
    start_ns: int | None
    duration_ns: int | None
    solo_ns: Number | None


class Repro(Answer, frozen=True, kw_only=True):
    """The launch that was chosen and why, and the bundle's files.

    Of ``known_launches`` of the graph it is known what running side by side cost, ``slower_launches`` lost time.
    ``lost_ns`` is what running side by side cost over ``coverage`` of the side-by-side time, null where unknown;
    ``edges_from`` is ``dump`` or ``inferred``. ``stand_ins`` counts kernels by what takes their place.
    """

    folder: str
    archive: str
    files: list[str]
    launch: int
    launches: int
    known_launches: int
    slower_launches: int
    chosen: str
    edges_from: str
    nodes: int
    kinds: dict[str, int]
    edges: int
    span_ns: int
    side_by_side_ns: int
    solo_ns: Number | None
    lost_ns: Number | None
    coverage: float | None
    stand_ins: dict[str, int]
    notes: list[str]
    rows: list[ReproRow]


class ReproNodeCheck(msgspec.Struct, frozen=True):
    """One kernel: how long it takes alone and how much it was stretched in the graph, traced and measured."""

    node: int
    name: str
    solo_ns: Number | None
    measured_solo_ns: Number
    stretch: float | None
    measured_stretch: float | None


class ReproVerify(Answer, frozen=True, kw_only=True):
    """What a run measured against the trace. ``share`` of the loss is reproduced, null where the trace lost nothing."""

    gpu: str
    measured_gpu: str
    share: float | None
    reproduces: bool | None
    side_by_side_ns: int
    measured_side_by_side_ns: int
    lost_ns: Number | None
    measured_lost_ns: Number | None
    graph_over_serial: tuple[float | None, float | None, float | None] | None
    differences: list[str]
    nodes: list[ReproNodeCheck]
