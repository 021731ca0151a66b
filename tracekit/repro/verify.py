"""Whether what the program measured is what the trace shows."""

from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from tracekit.analysis.kernels.solo import SOLO
from tracekit.analysis.overlap.episodes import find_episodes
from tracekit.errors import UnusableInput
from tracekit.repro.bundle import Expected
from tracekit.repro.choice import NOTHING, losses_by_place
from tracekit.repro.model import Loss, ReproNode
from tracekit.units import duration

REPRODUCES = 0.5
"""Share of the traced loss from which on a run reproduces it."""

CLOSE = 0.05
"""Within this a kernel alone takes as long as the traced one: what calibration aims at."""

UNLIKE = 0.25
"""From this relative difference on a kernel's stretch is told."""

Bounds = tuple[float | None, float | None, float | None]
"""Median and its 95 % interval."""


class MeasuredNode(msgspec.Struct, frozen=True):
    """A kernel in one mode: over all runs, and in the run of median span."""

    node: int
    took_us: Bounds
    start_us: float | None
    took_there_us: float | None


class MeasuredMode(msgspec.Struct, frozen=True):
    """One mode."""

    runs: int
    event_us: Bounds
    span_us: Bounds
    nodes: list[MeasuredNode]


class MeasuredKernel(msgspec.Struct, frozen=True):
    """The footprint of a stand-in, and how calibration ended."""

    node: int
    registers: int
    blocks_per_sm: int
    traced_blocks_per_sm: float | None
    target_us: float | None = None
    fitted_us: float | None = None
    fitted: bool | None = None


class Results(msgspec.Struct, frozen=True):
    """What ``repro --json`` writes, as far as it is compared."""

    repro: int
    graph: str
    gpu: str
    compute_capability: str
    calibration: str
    threshold: float
    weights_bytes: int
    weights_bytes_held: int
    nodes: list[MeasuredKernel]
    modes: dict[str, MeasuredMode]
    graph_over_serial: Bounds | None = None
    reproduced: bool | None = None


class NodeCheck(NamedTuple):
    """One kernel, traced and measured; stretch is its time in the graph over its time alone."""

    node: int
    name: str
    solo_ns: float | None
    measured_solo_ns: float
    stretch: float | None
    measured_stretch: float


class Verified(NamedTuple):
    """The comparison. ``share`` is the measured loss over the traced one, None where the trace lost nothing."""

    loss: Loss
    measured: Loss
    share: float | None
    nodes: list[NodeCheck]
    differences: list[str]

    @property
    def reproduces(self) -> bool | None:
        """Whether the loss is reproduced; None where there is none."""
        return None if self.share is None else self.share >= REPRODUCES


def read_results(text: bytes, what: str) -> Results:
    """Results of a run. Raises UnusableInput."""
    try:
        return msgspec.json.decode(text, type=Results)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{what}: holds no results of a repro ({error}): write them with ./repro --json") from error


def verify(expected: Expected, results: Results) -> Verified:
    """Compare. Raises UnusableInput for results of another graph, or without the modes that are compared."""
    launch = expected.launch
    if results.graph != expected.graph:
        raise UnusableInput(
            f"the results are of graph {results.graph}, the bundle is of {expected.graph}: run this one"
        )
    missing = {"graph", "alone"} - results.modes.keys()
    if missing:
        raise UnusableInput(f"the results lack mode {', '.join(sorted(missing))}: run ./repro with all modes")
    alone = {node.node: node for node in results.modes["alone"].nodes}
    graph = {node.node: node for node in results.modes["graph"].nodes}
    both = sorted(alone.keys() & graph.keys() & set(launch.kernels))
    if not both:
        raise UnusableInput("the results hold no kernel of the bundle: run ./repro without --only and --drop")
    nodes = [_node(i, launch.nodes[i], alone[i], graph[i]) for i in both]
    measured = _measured_loss([graph[i] for i in both], [alone[i] for i in both])
    lost, again = launch.loss.lost_ns, measured.lost_ns
    share = (again or 0.0) / lost if lost is not None and lost > 0 else None
    differences = _differences(expected, results, nodes, measured)
    return Verified(launch.loss, measured, share, nodes, differences)


def _node(i: int, node: ReproNode, alone: MeasuredNode, graph: MeasuredNode) -> NodeCheck:
    solo, took = (alone.took_us[0] or 0.0) * 1e3, (graph.took_us[0] or 0.0) * 1e3
    stretch = (node.duration_ns or 0) / node.solo_ns if node.solo_ns else None
    return NodeCheck(i, node.name, node.solo_ns, solo, stretch, took / solo if solo else float("nan"))


def _measured_loss(graph: list[MeasuredNode], alone: list[MeasuredNode]) -> Loss:
    """The loss of the typical run in mode ``graph``, its kernels' solo durations those of mode ``alone``."""
    start = np.rint([(node.start_us or 0.0) * 1e3 for node in graph]).astype(np.int64)
    end = start + np.rint([(node.took_there_us or 0.0) * 1e3 for node in graph]).astype(np.int64)
    group = pl.Series("group", range(len(graph)), dtype=pl.UInt32)
    solo = pl.DataFrame(
        {
            "group": group,
            "solo": [(node.took_us[0] or 0.0) * 1e3 for node in alone],
            "solo_low": [(node.took_us[1] or 0.0) * 1e3 for node in alone],
            "solo_high": [(node.took_us[2] or 0.0) * 1e3 for node in alone],
            "solo_count": [1] * len(alone),
            "solo_from": ["mode alone"] * len(alone),
        },
        schema=SOLO,
    )
    kernels = pl.DataFrame({"start": start, "end": end})
    found = find_episodes(kernels, group, solo, np.zeros(len(graph), np.int64)).episodes
    return losses_by_place(found).get(0, NOTHING)


def _differences(expected: Expected, results: Results, nodes: list[NodeCheck], measured: Loss) -> list[str]:
    """What is not as traced, that which explains most first."""
    launch = expected.launch
    found = []
    if results.gpu != launch.gpu.name:
        found.append(f"another GPU: {results.gpu}, traced was {launch.gpu.name}")
    if results.calibration == "none":
        found.append("the kernels were not calibrated: run ./repro --calibrate")
    if len(nodes) < len(launch.kernels):
        found.append(f"{len(launch.kernels) - len(nodes)} of {len(launch.kernels)} kernels were left out of the run")
    if results.weights_bytes_held < results.weights_bytes:
        found.append("the GPU had too little memory for weights of every node's own: nodes shared them")
    occupied = [k for k in results.nodes if k.traced_blocks_per_sm not in (None, k.blocks_per_sm)]
    if occupied:
        found.append(f"{len(occupied)} kernels fit another number of blocks on an SM than the traced ones")
    off = [n for n in nodes if n.solo_ns and abs(n.measured_solo_ns / n.solo_ns - 1) > CLOSE]
    if off:
        found.append(f"{len(off)} of {len(nodes)} kernels take another time alone than the traced ones (beyond 5 %)")
    if measured.side_by_side_ns < (1 - UNLIKE) * launch.loss.side_by_side_ns:
        here, there = duration(measured.side_by_side_ns), duration(launch.loss.side_by_side_ns)
        found.append(f"kernels ran side by side for {here}, in the trace for {there}")
    unlike = [n for n in nodes if n.stretch and abs(n.measured_stretch / n.stretch - 1) > UNLIKE]
    for n in sorted(unlike, key=lambda n: -abs((n.stretch or 0) - n.measured_stretch) * (n.solo_ns or 0))[:5]:
        found.append(
            f"node {n.node} {n.name}: {n.measured_stretch:.2f} times its time alone, in the trace {n.stretch:.2f}"
        )
    return found
