"""Answer of ``tracekit overlap``: who ran beside whom in one trace, and what it gained."""

import msgspec
import numpy as np
import polars as pl

import tracekit
from tracekit.analysis.devices import withheld
from tracekit.analysis.episodes import find_episodes, total
from tracekit.analysis.kernels import base_name_matches, group_of_instances
from tracekit.analysis.matching import matched_labels
from tracekit.analysis.overlap import device_overlaps
from tracekit.analysis.pairs import kernel_pairs
from tracekit.analysis.results import Granularity, Kernel, KernelPair, Overlap
from tracekit.analysis.rows import kernel_of
from tracekit.analysis.selection import select
from tracekit.analysis.solo import alone, by_name, first_known
from tracekit.analysis.streams import stream_lines, stream_pairs, streams_by_device
from tracekit.analysis.trust import examine
from tracekit.analysis.wanted import Selection
from tracekit.trace.reader import Trace

TRACED_BY: dict[Granularity, str] = {
    "node": "graph nodes traced one by one, which can itself change what runs side by side",
    "graph": "graphs traced as a whole: overlap inside them is not seen",
    "none": "no graph was launched",
    "unknown": "how graphs were traced is not recorded",
}
"""Every overlap figure depends on how it was traced."""


def overlaps_of(trace: Trace, baseline: Trace | None, wanted: Selection) -> Overlap:
    """Overlap of one trace; ``baseline``, an eager run of the same work, supplies solo durations."""
    trust = examine(trace)
    traces = [trace] if baseline is None else [trace, baseline]
    labels = matched_labels([each.kernel_keys for each in traces], wanted.by)
    own = labels.filter(pl.col("trace") == 0)
    every_group = group_of_instances(trace.kernels, own)
    sources = [alone(trace.kernels, every_group, "same trace")]
    if baseline is not None:
        other = labels.filter(pl.col("trace") == 1)
        group = group_of_instances(baseline.kernels, other)
        names = labels.select("group", name=pl.coalesce("name", "short_name")).unique(
            "group", keep="first", maintain_order=True
        )
        sources = [
            alone(baseline.kernels, group, "baseline"),
            by_name(baseline.kernels, group, names),
            *sources,
        ]
    solo = first_known(*sources)
    selected = select(trace, wanted)
    kernels = selected.kernels
    group = group_of_instances(kernels, own)
    pairs = kernel_pairs(kernels, group, solo)
    found = find_episodes(kernels, group, solo, kernels["device"].to_numpy().astype(np.int64))
    streams = streams_by_device(kernels)
    answer = Overlap(
        tracekit=tracekit.__version__,
        command="overlap",
        traces=[trust.line] + ([examine(baseline).line] if baseline is not None else []),
        warnings=trust.warnings,
        traced_by=TRACED_BY[trust.line.granularity],
        selected=wanted.spelled(),
        devices=device_overlaps(*selected, streams, trust.opaque_devices),
        streams=stream_lines(streams),
        stream_pairs=stream_pairs(streams),
        kernel_pairs=_pair_rows(pairs, own, trace, wanted),
        episodes=total(found.episodes, solo),
    )
    return _withheld(answer) if trust.sums_withheld else answer


def _withheld(answer: Overlap) -> Overlap:
    """The answer without the sums that lost records spoil: who ran beside whom stays, how long goes."""
    replace = msgspec.structs.replace
    sums = ("wall_ns", "solo_ns", "gain_ns", "gain_low_ns", "gain_high_ns", "covered_wall_ns")
    return replace(
        answer,
        devices=withheld(answer.devices),
        streams=[replace(line, busy_ns=None, overlapped_ns=None) for line in answer.streams],
        stream_pairs=[replace(pair, overlap_ns=None) for pair in answer.stream_pairs],
        kernel_pairs=[replace(pair, overlap_ns=None) for pair in answer.kernel_pairs],
        episodes=replace(answer.episodes, **dict.fromkeys((*sums, "bound_low_ns", "bound_high_ns"))),
    )


def _pair_rows(pairs: pl.DataFrame, labels: pl.DataFrame, trace: Trace, wanted: Selection) -> list[KernelPair]:
    named = {
        row["group"]: Kernel(**kernel_of(row))
        for row in labels.unique("group", keep="first", maintain_order=True).iter_rows(named=True)
    }
    if wanted.kernel is not None:
        keys = base_name_matches(trace.kernel_keys, wanted.kernel)["key"].implode()
        groups = labels.filter(pl.col("key").is_in(keys))["group"].implode()
        pairs = pairs.filter(pl.col("a").is_in(groups) | pl.col("b").is_in(groups))
    if wanted.top is not None:
        pairs = pairs.head(wanted.top)
    return [
        KernelPair(
            a=named[row["a"]],
            b=named[row["b"]],
            overlap_ns=row["overlap_ns"],
            instances=row["instances"],
            stretch_a=row["stretch_a"],
            stretch_b=row["stretch_b"],
        )
        for row in pairs.iter_rows(named=True)
    ]
