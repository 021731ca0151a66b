"""What a trace can answer: what was recorded, what was lost, what must not be said."""

from typing import NamedTuple

import msgspec
import polars as pl

from tracekit.analysis.results import Granularity, Recording, TraceLine, Warn
from tracekit.analysis.rows import process_id
from tracekit.analysis.statistics.thresholds import COVERAGE_LIMIT, OPAQUE_LIMIT
from tracekit.trace.launches import launch_calls
from tracekit.trace.reader import Trace
from tracekit.trace.schema import EXECUTABLE_UNIT
from tracekit.units import percent

RECORD_NODES = "record again with: nsys profile --cuda-graph-trace=node"


class Trust(msgspec.Struct, frozen=True):
    """What one trace can answer."""

    line: TraceLine
    recording: Recording
    warnings: list[Warn]
    opaque_devices: frozenset[int]

    @property
    def ranking_withheld(self) -> bool:
        """Most GPU time is hidden inside graphs: an order of kernels by time would mislead."""
        return "kernel ranking" in self.recording.withheld

    @property
    def sums_withheld(self) -> bool:
        """Records were lost: medians hold, sums do not."""
        return "sums" in self.recording.withheld


class _Finding(NamedTuple):
    share: float | None
    withheld: tuple[str, ...] = ()
    warnings: tuple[Warn, ...] = ()


def examine(trace: Trace) -> Trust:
    """Look at what a trace holds and what it must not be asked; kept with the trace's frames."""
    trust = trace.kept("trust", Trust, lambda: _examine(trace))
    line = msgspec.structs.replace(trust.line, path=trace.label)
    return msgspec.structs.replace(trust, line=line)


def _examine(trace: Trace) -> Trust:
    kernels, executions = trace.kernels, trace.graph_executions
    launches = _launches(trace.calls)
    granularity = _granularity(trace, launches)
    opaque = _opaque_share(kernels, executions, granularity)
    coverage = _launch_coverage(kernels, trace.copies, executions, launches, granularity)
    invalid = trace.unbelievable
    warnings = [
        *opaque.warnings,
        *coverage.warnings,
        *_nothing_recorded(trace, granularity),
        *_processes_without_kernels(kernels, executions, launches),
        *_row_warnings(trace, invalid),
        *_merged_processes(kernels),
    ]
    return Trust(
        line=TraceLine(
            path=trace.label,
            nsys_version=trace.facts.nsys_version,
            schema_version=trace.facts.schema_version,
            granularity=granularity,
            gpus=[gpu.name for gpu in trace.facts.gpus],
            kernel_rows=kernels.height,
            graph_kernel_rows=int(kernels["graph_node"].is_not_null().sum()),
        ),
        recording=Recording(
            recorded=list(trace.facts.recorded),
            opaque_share=opaque.share,
            launch_coverage=coverage.share,
            invalid_rows=invalid,
            withheld=[*opaque.withheld, *coverage.withheld],
        ),
        warnings=warnings,
        opaque_devices=frozenset(executions["device"].unique()),
    )


def _launches(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls that launch kernels or graphs and did not fail."""
    return calls.filter(pl.col("role").is_in(["launch", "graph launch"]) & ~pl.col("failed"))


def _granularity(trace: Trace, launches: pl.DataFrame) -> Granularity:
    if trace.graph_executions.height:
        return "graph"
    if trace.kernels["graph_node"].is_not_null().any():
        return "node"
    if (launches["role"] == "graph launch").any():
        return {"Graph": "graph", "Node": "node"}.get(trace.facts.graph_trace_mode or "", "unknown")  # type: ignore[return-value]
    return "none" if "calls" in trace.facts.recorded else "unknown"


def _opaque_share(kernels: pl.DataFrame, executions: pl.DataFrame, granularity: Granularity) -> _Finding:
    hidden = int((executions["end"] - executions["start"]).sum())
    seen = int((kernels["end"] - kernels["start"]).sum())
    if not hidden:
        return _Finding(0.0 if granularity in ("none", "node") else None)
    share = hidden / (hidden + seen)
    warning = Warn(
        "opaque_graphs",
        f"{percent(share)} of GPU time is inside {executions.height} graph launches recorded as a whole: "
        f"their kernels are not in this trace; {RECORD_NODES}",
        executions.height,
    )
    withheld = ("idle", "kernel ranking") if share > OPAQUE_LIMIT else ("idle",)
    return _Finding(share, withheld, (warning,))


def _launch_coverage(
    kernels: pl.DataFrame,
    copies: pl.DataFrame,
    executions: pl.DataFrame,
    launches: pl.DataFrame,
    granularity: Granularity,
) -> _Finding:
    """Graph launches of one executable should own the same number of records each.

    A launch that owns none tells nothing of its executable: it should own as many as the average launch.
    """
    asked = launches.filter(pl.col("role") == "graph launch").select("process", "correlation").unique()
    whole = executions.select("process", "correlation").unique()
    asked = asked.join(whole, on=["process", "correlation"], how="anti", nulls_equal=True)
    if asked.is_empty() or granularity == "graph":
        return _Finding(None)
    records = (
        pl.concat([frame.select("process", "correlation", "graph_node") for frame in (kernels, copies)])
        .filter(pl.col("graph_node").is_not_null())
        .group_by("process", "correlation")
        .agg(records=pl.len().cast(pl.Int64), executable=pl.col("graph_node").min() // EXECUTABLE_UNIT)
    )
    owned = asked.join(records, on=["process", "correlation"], how="left", nulls_equal=True)
    expected = pl.col("records").max().over("process", "executable")
    owned = owned.with_columns(expected=pl.when(pl.col("records").is_not_null()).then(expected))
    usual = owned["expected"].mean()
    if usual is None:
        return _Finding(0.0, _LOST, (_lost_warning(0.0, owned.height, owned.height),))
    expected_sum = float(owned["expected"].fill_null(usual).sum())
    share = float(owned["records"].fill_null(0).sum()) / expected_sum
    short = owned.filter(pl.col("records").fill_null(0) < pl.col("expected").fill_null(usual)).height
    if share >= COVERAGE_LIMIT:
        return _Finding(share)
    return _Finding(share, _LOST, (_lost_warning(share, short, owned.height),))


_LOST = ("sums", "idle", "overlap")


def _lost_warning(share: float, short: int, launches: int) -> Warn:
    return Warn(
        "lost_records",
        f"{short} of {launches} graph launches own fewer kernels than their graph has ({percent(share, 0)} of the "
        "records are there): medians are usable, sums, idle and overlap are withheld; record for a "
        "shorter time, or with --cuda-flush-interval",
        short,
    )


def _nothing_recorded(trace: Trace, granularity: Granularity) -> list[Warn]:
    if trace.kernels.height:
        return []
    if granularity == "graph":
        if trace.graph_executions.height:
            return []
        message = f"graphs were recorded as a whole and no kernel is in this trace; {RECORD_NODES}"
        return [Warn("opaque_graphs", message, 0)]
    if "kernels" not in trace.facts.recorded and "calls" not in trace.facts.recorded:
        why = "no CUDA activity was recorded: was the trace taken with --trace=cuda, on a machine with a driver?"
    else:
        why = "no kernel was recorded"
    return [Warn("no_kernels", why, 0)]


def _processes_without_kernels(kernels: pl.DataFrame, executions: pl.DataFrame, launches: pl.DataFrame) -> list[Warn]:
    working = {*kernels["process"].unique(), *executions["process"].unique()}
    if not working and not launches.height:
        return []
    silent = launches.filter(pl.col("process").is_not_null()).group_by("process").len().sort("process")
    return [
        Warn(
            "process_without_kernels",
            f"process {process_id(process)} made {count} launch calls and has no kernel in this trace: its GPU "
            "records were lost, or its launches failed or were only captured into a graph",
            count,
        )
        for process, count in silent.iter_rows()
        if process not in working
    ]


def _row_warnings(trace: Trace, invalid: dict[str, int]) -> list[Warn]:
    kernels, calls = trace.kernels, trace.calls
    warnings = [
        Warn("invalid_rows", f"{count} kernel rows left out: {reason}", count) for reason, count in invalid.items()
    ]
    zero_length = int((kernels["start"] == kernels["end"]).sum())
    if zero_length:
        warnings.append(
            Warn("zero_length", f"{zero_length} kernel rows of no length: no timing, not fast", zero_length)
        )
    early = early_kernels(kernels, calls)
    if early:
        message = f"{early} kernels start before the call that launches them: not assigned to a phase"
        warnings.append(Warn("before_launch", message, early))
    inside = _inside_predecessor(kernels)
    if inside:
        message = (
            f"{inside} kernels start inside their predecessor on the same stream (programmatic dependent launch): "
            "their durations hold waiting time"
        )
        warnings.append(Warn("same_stream_overlap", message, inside))
    for (table, column), count in sorted(trace.unreadable.items()):
        if count:
            message = f"{count} values of {table}.{column} have another type than the column's and were left out"
            warnings.append(Warn("unreadable_values", message, count))
    for base, name in trace.facts.renamed.items():
        warnings.append(Warn("renamed_table", f"{base} is read from {name}", 1))
    if kernels.height and kernels["stream"].null_count() == kernels.height:
        warnings.append(Warn("no_streams", "streams are not recorded: kinds of overlap cannot be told", 0))
    return warnings


def early_kernels(kernels: pl.DataFrame, calls: pl.DataFrame) -> int:
    """Kernels that start before every call of their process and correlation id."""
    launched = calls["start"].gather(launch_calls(kernels, calls))
    return int((kernels["start"] < launched).sum())


def _inside_predecessor(kernels: pl.DataFrame) -> int:
    """Kernels outside of graphs that start before the one before them on their stream has ended."""
    rows = kernels.filter((pl.col("overlapped") > 0) & pl.col("graph_node").is_null())
    before = pl.col("end").shift(1).over("device", "process", "stream")
    return int(rows.select((pl.col("start") < before).sum()).item())


def _merged_processes(kernels: pl.DataFrame) -> list[Warn]:
    shared = kernels.group_by("device").agg(pl.col("process").n_unique()).filter(pl.col("process") > 1).sort("device")
    return [
        Warn(
            "processes_merged",
            f"device {device} was used by {count} processes: they are measured together",
            count,
        )
        for device, count in shared.iter_rows()
    ]
