"""What a trace shows of the loops that were timed: the kernel they spend most time in, and how much overlaps."""

import msgspec

from tracekit.analysis.results import Bench, Warn
from tracekit.analysis.results.bench import InTrace
from tracekit.analysis.selection import phases_of
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.bench.naming import phase_name
from tracekit.trace.reader import Trace


def with_trace(answer: Bench, trace: Trace) -> Bench:
    """The answer, each row with its phase of the trace; rows without one are counted in a warning."""
    known = set(phases_of(trace, None).instances["phase"])
    rows = [
        msgspec.structs.replace(row, in_trace=_of_phase(trace, phase_name(row)) if phase_name(row) in known else None)
        for row in answer.rows
    ]
    missing = sum(row.in_trace is None for row in rows)
    message = f"{missing} of {len(rows)} rows have no kernels in the trace: only CUDA has them, in at most 50 phases"
    warnings = [Warn("not_in_trace", message, missing)] if missing else []
    return msgspec.structs.replace(answer, rows=rows, warnings=[*answer.warnings, *warnings])


def _of_phase(trace: Trace, phase: str) -> InTrace | None:
    summary = summarise_trace(trace, Selection(phase=phase))
    if not summary.kernels:
        return None
    longest = summary.kernels[0]
    busy = [device.busy_ns for device in summary.devices if device.busy_ns]
    overlapped = [device.overlapped_ns for device in summary.devices if device.overlapped_ns is not None]
    return InTrace(
        kernel=longest.short_name or longest.name,
        median_ns=longest.median_ns,
        kernels=sum(kernel.count for kernel in summary.kernels),
        overlapped_share=sum(overlapped) / sum(busy) if busy and overlapped else None,
    )
