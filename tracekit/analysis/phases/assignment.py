"""Phases: which NVTX range each piece of GPU work belongs to."""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.kernels.durations import DURATION
from tracekit.analysis.phases.open_ranges import levels, open_range, range_of_calls
from tracekit.analysis.results import ALL
from tracekit.frameworks import FRAMEWORK_RANGES, LIBRARY_DOMAINS
from tracekit.trace.calls import COSTLY_SETUP_ROLES
from tracekit.trace.launches import launch_calls

DOMAIN = "tracekit"
"""Ranges in this NVTX domain are phases before any others."""

MOST_PHASES = 50
"""Phases kept, by GPU time; work of the others is outside."""

INSTANCES = pl.Schema(
    [
        ("instance", pl.UInt32()),
        ("phase", pl.String()),
        ("process", pl.Int64()),
        ("thread", pl.Int64()),
        ("start", pl.Int64()),
        ("end", pl.Int64()),
    ]
)
"""Phase instances: ranges that launched GPU work, by start."""


class Phases(NamedTuple):
    """The phases of one trace.

    ``kernels``, ``copies``, ``graph_executions`` and ``calls`` give the instance of each row of the trace's frames
    (null: outside). ``basis`` says which ranges made the phases, ``unmatched`` that none matched the pattern.
    ``by_process`` counts pieces of work that belong to a range of another thread of their process,
    ``unlaunched`` those whose launch call is not recorded, which are outside.
    """

    instances: pl.DataFrame
    kernels: pl.Series
    copies: pl.Series
    graph_executions: pl.Series
    calls: pl.Series
    setup: pl.DataFrame
    basis: str
    unmatched: bool
    by_process: int
    unlaunched: int


def find_phases(
    kernels: pl.DataFrame,
    copies: pl.DataFrame,
    graph_executions: pl.DataFrame,
    calls: pl.DataFrame,
    ranges: pl.DataFrame,
    pattern: str | None = None,
) -> Phases:
    """Assign GPU work to ranges by the range open where and when its launch call began.

    Frames follow ``tracekit.trace.schema``. With a ``pattern`` the ranges it matches are phases; else
    those in NVTX domain ``tracekit``; else the outermost push/pop ranges of threads that launch work,
    framework and library ranges left out. Names that differ in a number only are one phase.
    """
    chosen, basis, innermost = _choose(ranges, calls, pattern)
    if chosen.is_empty():
        missing = "no ranges" if pattern is None else f"no {basis}"
        return whole_trace(
            kernels, copies, graph_executions, calls, f"{missing}: the whole trace", unmatched=pattern is not None
        )
    called = calls.select("process", "thread", call="start").with_row_index("row")
    called = range_of_calls(called, chosen, innermost).sort("row")
    placed = [_place(frame, called, launch_calls(frame, calls)) for frame in (kernels, copies, graph_executions)]
    everything = pl.concat(placed)
    chosen = _keep_longest(chosen, everything)
    used = everything["range"].drop_nulls().unique()
    instances = (
        chosen.filter(pl.col("range").is_in(used.implode()))
        .sort("start", "end", "process", "thread", "phase", nulls_last=True)
        .with_row_index("instance")
    )
    of_range = instances.select("range", "instance")
    of_kernels, of_copies, of_executions, of_calls = (
        frame.join(of_range, on="range", how="left", maintain_order="left")["instance"] for frame in (*placed, called)
    )
    return Phases(
        instances.select(list(INSTANCES)).cast(INSTANCES),
        kernels=of_kernels,
        copies=of_copies,
        graph_executions=of_executions,
        calls=of_calls,
        setup=_setup(calls, chosen, innermost, of_range),
        basis=basis,
        unmatched=False,
        by_process=int(everything["by_process"].sum()),
        unlaunched=int(everything["unlaunched"].sum()),
    )


def normalised(name: pl.Expr) -> pl.Expr:
    """Numbers that stand by themselves, or count steps, layers and tokens, become ``#``."""
    alone = r"(^|[^\pL\d.])\d+(?:\.\d+)?($|[^\pL\d])"
    # Twice, since what follows one number may come before the next.
    name = name.str.replace_all(alone, "${1}#${2}").str.replace_all(alone, "${1}#${2}")
    counted = r"(?i)\b(step|iter|iteration|batch|layer|token|epoch|decode|prefill|request|req|seq)\d+\b"
    return name.str.replace_all(counted, "${1}#")


def _choose(ranges: pl.DataFrame, calls: pl.DataFrame, pattern: str | None) -> tuple[pl.DataFrame, str, bool]:
    """Ranges that make phases (``range``, ``phase`` added), what they are, whether the innermost counts."""
    named = ranges.with_columns(phase=normalised(pl.col("name"))).with_row_index("range")
    if pattern is not None:
        matching = named.filter(pl.col("name").str.contains(pattern))
        return matching, f"NVTX ranges matching {pattern!r}", True
    own = named.filter(pl.col("domain") == DOMAIN)
    if own.height:
        return own, f"NVTX domain {DOMAIN!r}", True
    launching = calls.filter(pl.col("correlation").is_not_null())["thread"].unique()
    foreign = pl.col("name").str.contains(f"(?i){FRAMEWORK_RANGES.pattern}") | pl.col("domain").fill_null(
        ""
    ).str.contains(f"(?i){LIBRARY_DOMAINS.pattern}")
    candidates = named.filter(pl.col("nested") & ~foreign & pl.col("thread").is_in(launching.implode()))
    outermost = levels(candidates, "thread")
    return outermost.filter(pl.col("level") == 0).drop("level"), "outermost NVTX ranges", False


def _place(work: pl.DataFrame, called: pl.DataFrame, launch: pl.Series) -> pl.DataFrame:
    """Add ``range`` to GPU work through its launch call; impossible and unknown calls leave it null."""
    of_call = called.select(pl.col("call", "range", "by_process").gather(launch))
    early = (pl.col("start") < pl.col("call")).fill_null(False)
    return pl.concat([work.select("start", "end"), of_call], how="horizontal").select(
        range=pl.when(~early).then("range"),
        duration=DURATION,
        by_process=pl.col("by_process").fill_null(False) & ~early,
        unlaunched=pl.col("call").is_null(),
    )


def _keep_longest(chosen: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    times = work.drop_nulls("range").group_by("range").agg(pl.col("duration").sum())
    phases = (
        chosen.join(times, on="range")
        .group_by("phase")
        .agg(pl.col("duration").sum())
        .sort(["duration", "phase"], descending=[True, False])
        .head(MOST_PHASES)
    )
    return chosen.filter(pl.col("phase").is_in(phases["phase"].implode()))


def _setup(calls: pl.DataFrame, chosen: pl.DataFrame, innermost: bool, of_range: pl.DataFrame) -> pl.DataFrame:
    """Host time per instance in calls that set up: instantiate, capture, load modules. ``instance``, ``setup``."""
    setups = calls.filter(pl.col("role").is_in(COSTLY_SETUP_ROLES)).select(
        "process", "thread", call="start", duration=DURATION
    )
    inside = open_range(setups, chosen, "thread", innermost).drop_nulls("range")
    return inside.join(of_range, on="range").group_by("instance").agg(setup=pl.col("duration").sum()).sort("instance")


def whole_trace(
    kernels: pl.DataFrame,
    copies: pl.DataFrame,
    graph_executions: pl.DataFrame,
    calls: pl.DataFrame,
    basis: str,
    *,
    unmatched: bool = False,
) -> Phases:
    """One phase, ``(all)``, with one instance that holds everything."""
    frames = (kernels, copies, graph_executions)
    everything = pl.concat([frame.select("start", "end") for frame in frames])
    first, last = everything.select(pl.col("start").min(), pl.col("end").max()).row(0)
    instances = pl.DataFrame(
        {
            "instance": [0],
            "phase": [ALL],
            "process": [None],
            "thread": [None],
            "start": [first],
            "end": [last],
        },
        schema=INSTANCES,
    )
    of_kernels, of_copies, of_executions, of_calls = (
        pl.repeat(0, frame.height, dtype=pl.UInt32, eager=True) for frame in (*frames, calls)
    )
    return Phases(
        instances if everything.height else instances.clear(),
        kernels=of_kernels,
        copies=of_copies,
        graph_executions=of_executions,
        calls=of_calls,
        setup=pl.DataFrame(schema={"instance": pl.UInt32, "setup": pl.Int64}),
        basis=basis,
        unmatched=unmatched,
        by_process=0,
        unlaunched=0,
    )
