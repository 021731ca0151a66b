"""What a phase would take were the nodes of its graphs ordered another way: predictions, held against measured arms."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.graphs import ordered_graphs
from tracekit.analysis.phases.comparison import Side, What, timed_of
from tracekit.analysis.results import OUTSIDE, WhatIf
from tracekit.analysis.results.what_if import CRITICAL_PATH, NO_OVERLAP_OF, SERIAL
from tracekit.analysis.rows import number
from tracekit.analysis.what_if.basis import SCENARIOS, Change, Unpredictable
from tracekit.analysis.what_if.critical_path import critical_paths
from tracekit.analysis.what_if.isolation import isolated
from tracekit.graph.dumps import Dump
from tracekit.graph.ordering import Ordered
from tracekit.graph.replays import Replays

Graphs = list[tuple[Replays, Ordered]]


class _Phase(NamedTuple):
    """One phase of one arm."""

    name: str
    basis: str | None
    blocks: Sequence[Arm]
    side: Side
    serial_arm: tuple[str, float] | None


def what_if(
    sides: Sequence[Sequence[Arm]],
    measured: Mapping[str, tuple[str | None, list[Side]]],
    serial_arms: Mapping[str, tuple[str, float] | None],
    options: Sequence[str],
    dumps: Sequence[Dump],
) -> list[WhatIf]:
    """Predictions for each phase of each arm that ran graph nodes in it.

    ``measured`` has each phase's time basis and its sides, in the order of the arms; ``serial_arms`` the letter and
    phase time of a measured arm of graphs without overlap, where there is one.
    """
    phases = [
        _Phase(name, basis, blocks, side, serial_arms[name])
        for name, (basis, of_phase) in measured.items()
        if name != OUTSIDE
        for blocks, side in zip(sides, of_phase, strict=True)
        if side.count and any(_runs_nodes(block, name) for block in blocks)
    ]
    graphs: dict[str, Graphs] = {}
    if CRITICAL_PATH in options:
        traces = {block.trace.label: block.trace for phase in phases for block in phase.blocks}
        graphs = {label: list(zip(*ordered_graphs(trace, dumps), strict=True)) for label, trace in traces.items()}
    return [_answer(phase, option, graphs) for phase in phases for option in options]


def _runs_nodes(arm: Arm, phase: str) -> bool:
    instances = arm.figures.filter(pl.col("phase") == phase)["instance"].implode()
    nodes = pl.col("graph_node").is_not_null() & pl.col("instance").is_in(instances)
    return bool(arm.work.kernels.select(nodes.any()).item())


def _answer(phase: _Phase, option: str, graphs: Mapping[str, Graphs]) -> WhatIf:
    letter = phase.blocks[0].letter
    predicted: What | None = None
    try:
        predicted, why = _predicted(phase, option, graphs)
    except Unpredictable as reason:
        why = str(reason)
    other = phase.serial_arm if option == SERIAL and phase.serial_arm and phase.serial_arm[0] != letter else None
    return WhatIf(
        arm=letter,
        phase=phase.name,
        option=option,
        predicted_ns=None if predicted is None else number(predicted.value),
        low_ns=None if predicted is None else number(predicted.low),
        high_ns=None if predicted is None else number(predicted.high),
        measured_arm=other and other[0],
        measured_ns=None if other is None else number(other[1]),
        error=round(predicted.value / other[1] - 1, 6) if predicted and other and other[1] else None,
        basis=why,
    )


def _predicted(phase: _Phase, option: str, graphs: Mapping[str, Graphs]) -> tuple[What, str]:
    """The prediction and what it rests on; over blocks the median of theirs. Raises Unpredictable."""
    if any(block.trust.recording.withheld for block in phase.blocks):
        raise Unpredictable("kernels are hidden or records were lost")
    if option == SERIAL:
        if phase.side.serial is None:
            raise Unpredictable("too much of its overlap is of kernels without a known solo duration")
        return phase.side.serial, "what overlapping gained or lost, and a pause before each kernel set free"
    predictions, basis = [], ""
    for block in phase.blocks:
        rows = timed_of(block, phase.name, phase.basis)
        if rows.height:
            changes, basis = _change(block, rows, option, graphs)
            predictions.append(_median(rows, changes))
    return What(*(float(np.median(values)) for values in zip(*predictions, strict=True))), basis


def _change(arm: Arm, rows: pl.DataFrame, option: str, graphs: Mapping[str, Graphs]) -> Change:
    if option == CRITICAL_PATH:
        return critical_paths(arm, rows, graphs[arm.trace.label])
    return isolated(arm, rows, option.removeprefix(NO_OVERLAP_OF).strip())


def _median(rows: pl.DataFrame, changes: pl.DataFrame) -> What:
    """Median phase time with the changes; an instance without any stays as it is."""
    changed = rows.select("instance", "time").join(changes, on="instance", how="left").fill_null(0)
    return What(*(float(np.median((changed["time"] + changed[scenario]).to_numpy())) for scenario in SCENARIOS))
