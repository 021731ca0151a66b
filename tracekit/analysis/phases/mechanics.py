"""How each arm launched its work: the calls and graph nodes of a phase, and the time that no call and no GPU took."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.phases.comparison import Side
from tracekit.analysis.phases.idle import CAUSES
from tracekit.analysis.results import OUTSIDE, Mechanics, Number
from tracekit.analysis.rows import number
from tracekit.trace.schema import EXECUTABLE_UNIT, LAUNCH

COUNTED_ROLES = {
    "graph_launches": "graph launch",
    "launches": "launch",
    "instantiations": "instantiate",
    "updates": "graph update",
    "captures": "capture",
}
"""Field -> the kind of call it counts."""


@dataclass
class _Launching:
    """One phase in one arm, its blocks added up; ``executables`` is the most of any block."""

    calls: Counter[str] = field(default_factory=Counter)
    api_ns: Counter[str] = field(default_factory=Counter)
    nodes: Counter[int] = field(default_factory=Counter)
    executables: int = 0


def mechanics_of(arms: Sequence[Sequence[Arm]], phases: Mapping[str, Sequence[Side]]) -> list[Mechanics]:
    """Every phase in every arm, an arm being a list of blocks; ``phases`` has each phase's sides, one an arm."""
    rows = []
    for i, blocks in enumerate(arms):
        sides = {name: of_arms[i] for name, of_arms in phases.items() if name != OUTSIDE}
        launching = _launching(blocks, sides)
        rows += [_row(name, blocks, side, launching[name]) for name, side in sides.items() if side.count]
    return rows


def _launching(blocks: Sequence[Arm], sides: Mapping[str, Side]) -> dict[str, _Launching]:
    found = {name: _Launching() for name in sides}
    for place, block in enumerate(blocks if sides else ()):
        marks = pl.concat(
            [side.works[place].instances.select("instance", phase=pl.lit(name)) for name, side in sides.items()]
        )
        for phase, role, count, time in (
            _calls(block)
            .join(marks, on="instance")
            .group_by("phase", "role")
            .agg(pl.col("count", "time").sum())
            .iter_rows()
        ):
            found[phase].calls[role] += count
            found[phase].api_ns[role] += time
        graphs = _graph_launches(block).join(marks, on="instance")
        for phase, nodes, launches in graphs.group_by("phase", "nodes").len().iter_rows():
            found[phase].nodes[nodes] += launches
        for phase, executables in (
            graphs.group_by("phase").agg(pl.struct("process", "executable").n_unique()).iter_rows()
        ):
            found[phase].executables = max(found[phase].executables, executables)
    return found


def _calls(block: Arm) -> pl.DataFrame:
    """``count`` and ``time`` (ns) of the calls of each ``role`` made in each ``instance``."""
    time = block.call_time
    rows = block.trace.calls.select("role", "failed", instance=block.phases.calls)[time.row]
    return (
        rows.with_columns(time=pl.Series(time.length, dtype=pl.Int64))
        .drop_nulls("instance")
        .group_by("instance", "role")
        .agg(count=(~pl.col("failed")).sum().cast(pl.Int64), time=pl.col("time").sum())
    )


def _graph_launches(block: Arm) -> pl.DataFrame:
    """``instance``, ``process``, ``executable`` of each graph launch, and its ``nodes``: null where hidden."""
    launch = ["instance", *LAUNCH]
    seen = pl.concat([frame.select(*launch, "graph_node") for frame in (block.work.kernels, block.work.copies)])
    seen = (
        seen.filter(pl.col("graph_node").is_not_null() & pl.col("instance").is_not_null())
        .group_by(launch)
        .agg(nodes=pl.len().cast(pl.Int64), executable=pl.col("graph_node").min() // EXECUTABLE_UNIT)
    )
    whole = block.work.graph_executions.select(*launch, nodes=pl.lit(None, pl.Int64), executable="executable")
    return pl.concat([seen, whole.drop_nulls("instance")])


def _row(phase: str, blocks: Sequence[Arm], side: Side, launching: _Launching) -> Mechanics:
    instances = pl.concat([work.instances for work in side.works])
    called = all("calls" in block.trace.facts.recorded for block in blocks)
    lost = any(block.trust.sums_withheld for block in blocks)
    hidden = lost or any("idle" in block.trust.recording.withheld for block in blocks)

    def mean(total: float) -> Number:
        return number(total / instances.height)

    calls, times = launching.calls, launching.api_ns
    counted: dict[str, Any] = {name: mean(calls[role]) if called else None for name, role in COUNTED_ROLES.items()}
    sums = instances.select(pl.col("time", *CAUSES, "unattributed", "no_call").sum()).row(0, named=True)
    idle = {f"{cause}_ns": None if hidden or not called else mean(sums[cause]) for cause in (*CAUSES, "unattributed")}
    whole = sum(sums[cause] for cause in (*CAUSES, "unattributed"))
    return Mechanics(
        arm=blocks[0].letter,
        phase=phase,
        instances=instances.height,
        time_ns=mean(sums["time"]),
        **counted,
        executables=None if lost else launching.executables,
        nodes_per_launch=None if lost or None in launching.nodes else _histogram(launching.nodes),
        api_calls={role: mean(calls[role]) for role in sorted(calls)} if called else None,
        api_ns={role: mean(times[role]) for role in sorted(times)} if called else None,
        host_ns=None if lost or not called else mean(sums["no_call"]),
        idle_ns=None if hidden else mean(whole),
        **idle,
    )


def _histogram(nodes: Counter[int]) -> dict[str, int]:
    return {str(count): nodes[count] for count in sorted(nodes)}
