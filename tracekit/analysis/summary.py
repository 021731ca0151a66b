"""Answer of ``tracekit summary``: every kernel of one trace, and the time of its devices."""

from typing import Any

import polars as pl

import tracekit
from tracekit.analysis.kernels.durations import base_name_matches, label_keys, summarise, summarise_operators
from tracekit.analysis.kernels.operators import operator_warnings, operators_of
from tracekit.analysis.overlap.devices import device_lines, withheld
from tracekit.analysis.results import KernelSummary, Summary
from tracekit.analysis.rows import kernel_of, number
from tracekit.analysis.selection import select
from tracekit.analysis.trust.recording import Trust, examine
from tracekit.analysis.wanted import Selection
from tracekit.trace.reader import Trace

SORTS = {
    "total": "total_ns",
    "count": "count",
    "median": "median_ns",
    "mean": "mean_ns",
    "max": "max_ns",
    "overlapped": "overlapped_ns",
    "name": "title",
}
"""``--sort`` words and the columns they stand for, largest first but for names."""


def summarise_trace(trace: Trace, wanted: Selection) -> Summary:
    """Answer of ``tracekit summary``."""
    trust = examine(trace)
    warnings = list(trust.warnings)
    selected = select(trace, wanted)
    kernels = selected.kernels
    kernel_ns = int((kernels["end"] - kernels["start"]).sum())
    if wanted.kernel is not None:
        keys = base_name_matches(trace.kernel_keys, wanted.kernel)["key"].implode()
        kernels = kernels.filter(pl.col("key").is_in(keys))
    if wanted.by == "operator":
        found = operators_of(trace, kernels)
        warnings += operator_warnings(found)
        table = summarise_operators(kernels, found.of_kernels)
    else:
        table = summarise(kernels, trace.kernel_keys, wanted.by)
    order = _order(table, "name" if trust.ranking_withheld else wanted.sort)
    rows = table[order if wanted.top is None else order.head(wanted.top)]
    if wanted.by == "operator":
        labelled = rows.rename({"title": "name"})
    else:
        labelled = pl.concat([rows, label_keys(trace.kernel_keys[rows["key"]], wanted.by)], how="horizontal")
    devices = device_lines(*selected, trust.opaque_devices)
    return Summary(
        tracekit=tracekit.__version__,
        command="summary",
        traces=[trust.line],
        warnings=warnings,
        by=wanted.by,
        selected=wanted.spelled(),
        kernels=[_kernel_row(row, kernel_ns, trust) for row in labelled.iter_rows(named=True)],
        kernels_left_out=table.height - rows.height,
        devices=withheld(devices) if trust.sums_withheld else devices,
        recording=trust.recording,
    )


def _order(table: pl.DataFrame, sort: str) -> pl.Series:
    """The positions of the table's rows in the order asked for."""
    column = SORTS[sort]
    return table.select(pl.arg_sort_by(column, "group", descending=[column != "title", False])).to_series()


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
