"""Whether a trace holds what its arm is called."""

from pathlib import Path

import polars as pl

from tracekit.capture.arms import Arm
from tracekit.capture.outcome import Finding
from tracekit.capture.phase import DOMAIN
from tracekit.trace.reader import Trace
from tracekit.trace.source import open_trace

MOSTLY = 0.5
"""Share of GPU time in graph launches from which on a trace is one of graphs; without them a few may remain."""


def mislabelled(trace: Path, arm: Arm) -> Finding | None:
    """What speaks against the arm's name; None for arms of the user's own and where no kernel was recorded."""
    with open_trace(trace, cached=False) as opened:
        doubt = _doubt(opened, arm)
    return Finding("mislabelled", f"arm {arm.name} {doubt}") if doubt else None


def _doubt(trace: Trace, arm: Arm) -> str | None:
    if (phase := arm.phase_without_graphs) is not None:
        return _doubt_of_phase(trace, phase)
    if arm.role == "own":
        return None
    share = _graph_share(trace.kernels, trace.graph_executions)
    if arm.role == "off":
        return f"launched graphs ({share:.0%} of its GPU time): graphs were not off" if share >= MOSTLY else None
    recorded = trace.kernels.height + trace.graph_executions.height
    return "launched no graph: this workload uses none, or they were off" if recorded and not share else None


def _doubt_of_phase(trace: Trace, phase: str) -> str | None:
    ranges = trace.ranges.filter(pl.col("domain") == DOMAIN, pl.col("name") == phase)
    if ranges.is_empty():
        return f"had no phase {phase!r}: its graphs were never off"
    calls = _made_in(ranges, trace.calls)
    share = _graph_share(*(_launched_by(calls, work) for work in (trace.kernels, trace.graph_executions)))
    return f"launched graphs in {phase!r} ({share:.0%} of its GPU time): they were not off" if share >= MOSTLY else None


def _made_in(ranges: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """``process`` and ``correlation`` of the calls made in ranges of their own thread."""
    opened = ranges.select("thread", "start", until="end").sort("start")
    found = calls.sort("start").join_asof(opened, on="start", by="thread", check_sortedness=False)
    return found.filter(pl.col("start") <= pl.col("until")).select("process", "correlation").unique()


def _launched_by(calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    return work.join(calls, on=["process", "correlation"], how="semi")


def _graph_share(kernels: pl.DataFrame, executions: pl.DataFrame) -> float:
    """Share of the time of kernels and of graphs recorded as a whole that was launched by graphs."""

    def time(rows: pl.DataFrame) -> int:
        return int((rows["end"] - rows["start"]).sum())

    whole = time(executions)
    total = time(kernels) + whole
    return (time(kernels.drop_nulls("graph_node")) + whole) / total if total else 0.0
