"""Answer of ``tracekit summary``: every kernel of one trace, and the time of its devices."""

from typing import Any

import polars as pl

import tracekit
from tracekit.analysis.devices import device_lines, withheld
from tracekit.analysis.kernels import base_name_matches, summarise, summarise_operators
from tracekit.analysis.operators import Operators, find_operators
from tracekit.analysis.results import Device, KernelSummary, Summary, Warn
from tracekit.analysis.rows import kernel_of, number
from tracekit.analysis.selection import Selected, select
from tracekit.analysis.trust import Trust, examine
from tracekit.analysis.wanted import Selection
from tracekit.trace.reader import Trace

SORTS = {
    "total": "total_ns",
    "count": "count",
    "median": "median_ns",
    "mean": "mean_ns",
    "max": "max_ns",
    "overlapped": "overlapped_ns",
    "name": "name",
}
"""``--sort`` words and the columns they stand for, largest first but for names."""


def summarise_trace(trace: Trace, wanted: Selection) -> Summary:
    """Answer of ``tracekit summary``."""
    trust = examine(trace)
    warnings = list(trust.warnings)
    selected = select(trace, wanted)
    kernels = selected.kernels
    whole = int((kernels["end"] - kernels["start"]).sum())
    if wanted.kernel is not None:
        keys = base_name_matches(trace.kernel_keys, wanted.kernel)["key"].implode()
        kernels = kernels.filter(pl.col("key").is_in(keys))
    if wanted.by == "operator":
        found = operators_of(trace, kernels)
        warnings += operator_warnings(found)
        table = summarise_operators(kernels, trace.kernel_keys, found.of_kernels)
    else:
        table = summarise(kernels, trace.kernel_keys, wanted.by)
    rows = _ordered(table, "name" if trust.ranking_withheld else wanted.sort)
    if wanted.top is not None:
        rows = rows.head(wanted.top)
    return Summary(
        tracekit=tracekit.__version__,
        command="summary",
        traces=[trust.line],
        warnings=warnings,
        by=wanted.by,
        selected=wanted.spelled(),
        kernels=[_kernel_row(row, whole, trust) for row in rows.iter_rows(named=True)],
        devices=_devices(selected, trust),
        recording=trust.recording,
    )


def operators_of(trace: Trace, kernels: pl.DataFrame) -> Operators:
    """The operators of some of a trace's kernels."""
    return find_operators(kernels, trace.copies, trace.calls, trace.ranges, trace.node_events)


def operator_warnings(found: Operators) -> list[Warn]:
    """Say what keeps operators from being known."""
    if not found.looping:
        return []
    message = f"{found.looping} graph nodes are recorded as copies of each other in a loop: their operator is unknown"
    return [Warn("node_loop", message, found.looping)]


def _ordered(table: pl.DataFrame, sort: str) -> pl.DataFrame:
    column = SORTS[sort]
    if column == "name":
        return table.sort(pl.coalesce("name", "short_name"), "group")
    return table.sort([column, "group"], descending=[True, False])


def _devices(selected: Selected, trust: Trust) -> list[Device]:
    lines = device_lines(*selected, trust.opaque_devices)
    return withheld(lines) if trust.sums_withheld else lines


def _kernel_row(row: dict[str, Any], whole: int, trust: Trust) -> KernelSummary:
    total = None if trust.sums_withheld else row["total_ns"]
    fraction = None if trust.sums_withheld else row["overlapped_fraction"]
    share = row["total_ns"] / whole if whole and not trust.sums_withheld and not trust.ranking_withheld else None
    quantiles: dict[str, Any] = {name: number(row[name]) for name in _MEASURED}
    return KernelSummary(
        **kernel_of(row),
        count=row["count"],
        graph_count=row["graph_count"],
        total_ns=total,
        share=share,
        **quantiles,
        min_ns=row["min_ns"],
        max_ns=row["max_ns"],
        overlapped_fraction=fraction,
        mixed=row["mixed"],
    )


_MEASURED = ("mean_ns", "median_ns", "p25_ns", "p75_ns", "p95_ns")
