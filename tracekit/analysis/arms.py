"""The sides of a comparison: what each ran, and how its kernels were launched."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import polars as pl

from tracekit.analysis.kernels.durations import DURATION, group_of_instances
from tracekit.analysis.kernels.matching import group_names, matched_labels
from tracekit.analysis.kernels.mixtures import Launched
from tracekit.analysis.kernels.solo import of_instances
from tracekit.analysis.kernels.solo_sources import Ran, SoloSources
from tracekit.analysis.overlap.episodes import Found
from tracekit.analysis.phases.assignment import Phases, whole_trace
from tracekit.analysis.phases.call_time import CallTime
from tracekit.analysis.phases.instances import Work, assigned, dependent_gap, instance_episodes, instance_figures
from tracekit.analysis.results import OUTSIDE, ArmLine
from tracekit.analysis.selection import phases_of
from tracekit.analysis.statistics.moments import moments
from tracekit.analysis.trust.recording import Trust, examine
from tracekit.intervals import arrays, device_groups, sweep
from tracekit.together import together
from tracekit.trace.reader import Trace
from tracekit.units import shortened

MOSTLY_GRAPH, PARTLY_GRAPH = 0.5, 0.05
"""Share of GPU time in graph launches from which an arm is a graph arm, and up to which it is eager."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"

Role = Literal["graph", "eager", "mixed", "opaque graph", "no kernels"]


@dataclass(frozen=True)
class Arm:
    """One trace of a comparison with everything that is measured on it. Times are ns."""

    letter: str
    trace: Trace
    trust: Trust
    labels: pl.DataFrame
    phases: Phases
    work: Work
    role: Role
    graph_share: float | None
    solo: pl.DataFrame
    found: Found
    figures: pl.DataFrame

    @property
    def name(self) -> str:
        """How texts call it: the letter and the file's name."""
        return f"{self.letter} ({self.trace.stem})"

    @cached_property
    def counted(self) -> pl.DataFrame:
        """Kernel instances outside of warm-up, with their ``phase`` (null: outside) and ``warm_up`` false.

        ``position`` is the row among all kernels.
        """
        marks = self.figures.select("instance", pl.col("phase").cast(pl.Categorical), "warm_up")
        rows = self.work.kernels.with_row_index("position")
        rows = rows.join(marks, on="instance", how="left", maintain_order="left")
        return rows.filter(~pl.col("warm_up").fill_null(False))

    @cached_property
    def moments(self) -> pl.Series:
        """The moment of the run that each of the ``counted`` kernel instances belongs to."""
        repeated = self.figures.filter(~pl.col("warm_up")).filter(pl.len().over("phase") > 1)["instance"]
        return moments(self.counted, repeated)

    @cached_property
    def kernel_totals(self) -> dict[str, tuple[int, int]]:
        """Phase -> kernel rows and their summed duration, over all its instances, warm-up included."""
        by_instance = self.work.kernels.group_by("instance").agg(rows=pl.len(), time=DURATION.sum())
        rows = (
            by_instance.join(self.figures.select("instance", "phase"), on="instance", how="left")
            .group_by(pl.col("phase").fill_null(OUTSIDE))
            .agg(pl.col("rows", "time").sum())
        )
        return {phase: (count, time) for phase, count, time in rows.select("phase", "rows", "time").iter_rows()}

    @cached_property
    def episodes(self) -> pl.DataFrame:
        """Episodes within counted phase instances (episodes.EPISODES, ``instance``, ``phase``)."""
        marks = self.figures.filter(~pl.col("warm_up")).select("instance", "phase")
        return self.found.episodes.join(marks, on="instance")

    @cached_property
    def kernel_names(self) -> dict[int, str]:
        """Base name by group; with the grid where one name stands for several launch configurations."""
        labels = self.labels.unique("group", keep="first", maintain_order=True)
        labels = labels.select("group", "short_name", "grid", shared=pl.len().over("short_name") > 1)
        return {
            group: shortened(name or "(unnamed)") + (f" {'x'.join(map(str, grid))}" if shared and grid else "")
            for group, name, grid, shared in labels.iter_rows()
        }

    @cached_property
    def gap(self) -> tuple[float, float, float] | None:
        """Measured pause between dependent kernels: median, p25, p75."""
        return dependent_gap(self.work.kernels)

    @cached_property
    def call_time(self) -> CallTime:
        """The CUDA calls of each thread."""
        return CallTime(self.trace.calls, "thread")

    @cached_property
    def max_depth(self) -> int:
        """Most kernels at once on one device."""
        kernels = self.work.kernels
        if kernels.is_empty():
            return 0
        if not (kernels["overlapped"] > 0).any():
            return 1
        return int(sweep(*arrays(kernels), group=device_groups(kernels)).depth.max())

    @property
    def overlapped_share(self) -> float:
        """Share of kernel time that runs beside other kernels."""
        kernels = self.work.kernels
        summed = int((kernels["end"] - kernels["start"]).sum())
        return int(kernels["overlapped"].sum()) / summed if summed else 0.0

    def line(self) -> ArmLine:
        """The arm as a part of the answer."""
        kernels = self.work.kernels
        calls = self.trace.calls.filter((pl.col("role") == "graph launch") & ~pl.col("failed"))
        return ArmLine(
            arm=self.letter,
            path=self.trace.label,
            role=self.role,
            graph_share=self.graph_share,
            graph_launches=calls.select("process", "correlation").n_unique() if calls.height else 0,
            streams=kernels.select("device", "process", "stream").n_unique() if kernels.height else 0,
            max_depth=self.max_depth,
        )


Blocks = list[Arm]
"""One side of a comparison: a trace, or several blocks of one arm."""


def build_arms(traces: list[Trace], pattern: str | None, warm_up: int, letters: list[str] | None = None) -> list[Arm]:
    """Measure every trace under its arm's letter; traces of one letter are blocks of one arm."""
    trusts = together(*(partial(examine, trace) for trace in traces))
    labels = matched_labels([trace.kernel_keys for trace in traces])
    own = [labels.filter(pl.col("trace") == i) for i in range(len(traces))]
    groups = [group_of_instances(trace.kernels, mine) for trace, mine in zip(traces, own, strict=True)]
    shares = [_graph_share(trace) for trace in traces]
    roles = [_role(trace, share) for trace, share in zip(traces, shares, strict=True)]
    names = letters or list(LETTERS[: len(traces)])
    phases = comparable_phases(traces, pattern)
    works = [
        assigned(trace.kernels, trace.copies, trace.graph_executions, of_trace, group)
        for trace, of_trace, group in zip(traces, phases, groups, strict=True)
    ]
    ran = [
        Ran(letter, role == "eager", Launched(work.kernels, of_trace.instances))
        for letter, role, work, of_trace in zip(names, roles, works, phases, strict=True)
    ]
    sources = SoloSources(ran, group_names(labels))

    def arm(i: int) -> Arm:
        trace, solo = traces[i], sources.of(i)
        kernels = works[i].kernels.with_columns(of_instances(solo.kind, solo.by_kind), kind=solo.kind)
        work = works[i]._replace(kernels=kernels)
        found = instance_episodes(kernels, solo.by_kind)
        return Arm(
            letter=names[i],
            trace=trace,
            trust=trusts[i],
            labels=own[i],
            phases=phases[i],
            work=work,
            role=roles[i],
            graph_share=shares[i],
            solo=solo.by_group,
            found=found,
            figures=instance_figures(phases[i], work, found.episodes, warm_up),
        )

    return together(*(partial(arm, i) for i in range(len(traces))))


def comparable_phases(traces: list[Trace], pattern: str | None) -> list[Phases]:
    """The phases of each trace; where no phase is in all of them, each trace as a whole."""
    found = together(*(partial(phases_of, trace, pattern) for trace in traces))
    names = [set(phases.instances["phase"]) for phases in found if phases.instances.height]
    if not names or set.intersection(*names):
        return found
    return [
        whole_trace(
            trace.kernels,
            trace.copies,
            trace.graph_executions,
            trace.calls,
            "no phase is in every arm: the whole trace",
        )
        for trace in traces
    ]


def _graph_share(trace: Trace) -> float | None:
    """Share of GPU time in graph launches; None when there is no GPU time."""
    in_graphs = trace.kernels.filter(pl.col("graph_node").is_not_null())
    times = [int(frame.select(DURATION.sum()).item()) for frame in (in_graphs, trace.graph_executions, trace.kernels)]
    whole = times[1] + times[2]
    return (times[0] + times[1]) / whole if whole else None


def _role(trace: Trace, share: float | None) -> Role:
    if share is None:
        return "no kernels"
    if trace.graph_executions.height and share >= MOSTLY_GRAPH:
        return "opaque graph"
    return "graph" if share >= MOSTLY_GRAPH else "mixed" if share > PARTLY_GRAPH else "eager"
