"""Answer of ``tracekit info``: what a trace is and what it holds."""

import polars as pl

import tracekit
from tracekit.analysis.kernels.durations import DURATION
from tracekit.analysis.results import OUTSIDE, FoundPhase, Info, InfoProcess
from tracekit.analysis.rows import process_id
from tracekit.analysis.selection import phases_of
from tracekit.analysis.trust.recording import examine
from tracekit.trace.reader import Trace


def inventory(trace: Trace, pattern: str | None = None) -> Info:
    """Versions, devices, processes, row counts and phases of one trace; ``pattern`` chooses the phases."""
    trust = examine(trace)
    facts = trace.facts
    frames = {
        "kernels": trace.kernels,
        "copies": trace.copies,
        "graph executions": trace.graph_executions,
        "calls": trace.calls,
        "ranges": trace.ranges,
    }
    work = pl.concat([frames[name].select("start", "end", "device", "stream") for name in list(frames)[:3]])
    bounds = work.select(pl.col("start").min(), pl.col("end").max()).row(0)
    phases, basis = _phases(trace, pattern)
    known = {"copies": {"copies", "sets"}}
    return Info(
        tracekit=tracekit.__version__,
        command="info",
        traces=[trust.line],
        warnings=trust.warnings,
        platform=facts.platform,
        driver_version=facts.driver_version,
        cuda_version=facts.cuda_version,
        compute_capabilities=[gpu.compute_capability for gpu in facts.gpus],
        first_ns=bounds[0],
        last_ns=bounds[1],
        devices=work["device"].unique().sort().to_list(),
        streams=work["stream"].unique().sort().to_list(),
        processes=_processes(trace),
        rows={name: frame.height for name, frame in frames.items()},
        not_recorded=[name for name in frames if not known.get(name, {name}) & set(facts.recorded)],
        phases=phases,
        phases_from=basis,
    )


def _processes(trace: Trace) -> list[InfoProcess]:
    kernels = trace.kernels.group_by("process").agg(kernel_rows=pl.len())
    role = pl.col("role")
    calls = trace.calls.group_by("process").agg(
        launches=(role == "launch").sum(),
        graph_launches=(role == "graph launch").sum(),
        launch_time=DURATION.filter(role.is_in(["launch", "graph launch"])).sum(),
    )
    both = kernels.join(calls, on="process", how="full", coalesce=True, nulls_equal=True).sort("process")
    return [
        InfoProcess(
            process=process_id(process),
            kernel_rows=rows or 0,
            launches=launches or 0,
            graph_launches=graph_launches or 0,
            launch_ns=time or 0,
        )
        for process, rows, launches, graph_launches, time in both.iter_rows()
    ]


def _phases(trace: Trace, pattern: str | None) -> tuple[list[FoundPhase], str]:
    phases = phases_of(trace, pattern)
    times = (
        trace.kernels.select(duration=DURATION, instance=phases.kernels)
        .join(phases.instances, on="instance", how="left")
        .group_by(pl.col("phase").fill_null(OUTSIDE))
        .agg(rows=pl.len(), time=pl.col("duration").sum())
    )
    counts = phases.instances.group_by("phase").agg(instances=pl.len())
    table = counts.join(times, on="phase", how="full", coalesce=True)
    table = table.sort(
        pl.col("phase") == OUTSIDE, pl.col("time").fill_null(0), "phase", descending=[False, True, False]
    )
    found = [
        FoundPhase(name=name, instances=instances or 0, kernel_rows=rows or 0, kernel_ns=time or 0)
        for name, instances, rows, time in table.select("phase", "instances", "rows", "time").iter_rows()
    ]
    return found, phases.basis
