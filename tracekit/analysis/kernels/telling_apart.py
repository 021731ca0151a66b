"""What makes two kernel instances of several traces the same: launch configuration, name, or operator."""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.kernels.durations import UNKNOWN_OPERATOR, group_of_instances
from tracekit.analysis.kernels.matching import matched_labels
from tracekit.analysis.kernels.operators import Operators, operator_warnings, operators_of
from tracekit.analysis.results import Warn
from tracekit.analysis.wanted import By
from tracekit.trace.reader import Trace


class Told(NamedTuple):
    """The kernel instances of one trace, told apart alike in all traces.

    ``group`` is what makes two of them one row, called by ``labels`` (as ``matched_labels`` gives them). ``launch`` is
    the launch configuration, ``kind`` what a solo duration is known of: that configuration, among operators under
    the same one.
    """

    labels: pl.DataFrame
    group: pl.Series
    kind: pl.Series
    launch: pl.Series
    warnings: list[Warn]


def told_apart(traces: list[Trace], by: By) -> list[Told]:
    """The kernel instances of each trace."""
    launches = _labelled(traces, "launch")
    if by == "operator":
        return _by_operator(traces, [group for _, group in launches])
    grouped = launches if by == "launch" else _labelled(traces, by)
    return [
        Told(labels, group, launch, launch, []) for (labels, group), (_, launch) in zip(grouped, launches, strict=True)
    ]


def _labelled(traces: list[Trace], by: By) -> list[tuple[pl.DataFrame, pl.Series]]:
    """The labels of each trace's groups, and the group of each of its instances."""
    labels = matched_labels([trace.kernel_keys for trace in traces], by)
    own = [labels.filter(trace=i) for i in range(len(traces))]
    return [(mine, group_of_instances(trace.kernels, mine)) for trace, mine in zip(traces, own, strict=True)]


def _by_operator(traces: list[Trace], launches: list[pl.Series]) -> list[Told]:
    operators = [operators_of(trace, trace.kernels) for trace in traces]
    every = pl.concat(
        [
            trace.kernels.select("key", trace=pl.lit(i, pl.UInt32), name=each.of_kernels, launch=launch)
            for i, (trace, each, launch) in enumerate(zip(traces, operators, launches, strict=True))
        ]
    ).with_columns(pl.col("name").fill_null(UNKNOWN_OPERATOR))
    every = every.with_columns(group=pl.col("name").rank("dense").cast(pl.UInt32) - 1)
    every = every.with_columns(kind=pl.struct("launch", "group").rank("dense").cast(pl.UInt32) - 1)
    labels = every.select("trace", "key", "group", "name").unique().sort("trace", "key", "group")
    labels = pl.concat([matched_labels([trace.kernel_keys for trace in traces]).clear(), labels], how="diagonal")
    labels = labels.with_columns(normalised=pl.lit(False))
    return [
        Told(labels.filter(trace=i), own["group"], own["kind"], own["launch"], _warnings(own["name"], operators[i]))
        for i, own in enumerate(every.filter(trace=i) for i in range(len(traces)))
    ]


def _warnings(names: pl.Series, operators: Operators) -> list[Warn]:
    unknown = int((names == UNKNOWN_OPERATOR).sum())
    message = f"{unknown} of {names.len()} kernels have no operator that can be known"
    return [*operator_warnings(operators), *([Warn("operator_unknown", message, unknown)] if unknown else [])]
