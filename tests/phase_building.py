"""Exports with ranges, launches and kernels, and their kernels by phase."""

from pathlib import Path

import polars as pl
from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.results import OUTSIDE, Diff, Phase
from tracekit.analysis.selection import phases_of
from tracekit.trace.reader import Trace
from tracekit.trace.source import open_trace

OWN = "tracekit"
INSTANTIATE = "cudaGraphInstantiate_v12000"
CAPTURE = "cudaStreamBeginCapture_v10000"
GRAPH_LAUNCH = "cudaGraphLaunch_v10000"


def opened(export: Export, folder: Path) -> Trace:
    """The export, written and opened."""
    return open_trace(export.write(folder / "trace.sqlite"), cached=False)


def work(export: Export, launch: int, start: int, time: int = 100, *, tid: int | None = None, pid: int = 1) -> None:
    """A kernel and the call that launches it."""
    correlation = export.launch(launch, launch + 10, pid=pid, tid=tid)
    export.kernel(start, start + time, pid=pid, correlation=correlation)


def kernels_by_phase(trace: Trace, pattern: str | None = None) -> dict[str, list[int]]:
    """Phase (outside included) -> starts of its kernels."""
    phases = phases_of(trace, pattern)
    names = pl.DataFrame({"instance": phases.kernels}).join(
        phases.instances.select("instance", "phase"), on="instance", how="left", maintain_order="left"
    )["phase"]
    found: dict[str, list[int]] = {}
    for name, start in zip(names, trace.kernels["start"], strict=True):
        found.setdefault(name or OUTSIDE, []).append(start)
    return found


def against_itself(export: Export, folder: Path, *, warm_up: int = 1) -> Diff:
    """The comparison of an export with itself."""
    trace = opened(export, folder)
    return compare([trace, trace], warm_up=warm_up)


def phase(answer: Diff, name: str) -> Phase:
    """The one row of a phase."""
    (found,) = (each for each in answer.phases if each.name == name)
    return found
