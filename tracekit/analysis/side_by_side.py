"""Answer of ``tracekit overlap``: who ran beside whom in one trace, and what it gained."""

import msgspec
import numpy as np
import polars as pl

import tracekit
from tracekit.analysis.kernels.durations import DURATION, base_name_matches
from tracekit.analysis.kernels.solo import alone, by_name, first_known, of_instances
from tracekit.analysis.kernels.telling_apart import Told, told_apart
from tracekit.analysis.overlap.companions import Companions, companions
from tracekit.analysis.overlap.contention import contention
from tracekit.analysis.overlap.devices import withheld
from tracekit.analysis.overlap.episode_sets import sets_of
from tracekit.analysis.overlap.episodes import Found, find_episodes, total
from tracekit.analysis.overlap.kinds import device_overlaps
from tracekit.analysis.overlap.pairs import kernel_pairs
from tracekit.analysis.overlap.rows import contention_rows, named_kernels, set_rows
from tracekit.analysis.overlap.streams import stream_lines, stream_pairs, streams_by_device
from tracekit.analysis.results import Contention, Granularity, Kernel, KernelPair, Overlap, OverlapSet
from tracekit.analysis.selection import phases_of, select
from tracekit.analysis.statistics.moments import moments
from tracekit.analysis.trust.recording import examine
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
    told = told_apart(traces, wanted.by)
    solo = _solo(traces, told)
    beside = companions(trace.kernels, told[0].group)
    frames = [
        each.kernels.with_columns(*_moments(each), group=of.group, kind=of.kind, solo=of_instances(of.kind, solo))
        for each, of in zip(traces, told, strict=True)
    ]
    selected = select(trace, wanted, frames[0].with_columns(set=beside.of_instances))
    kernels = selected.kernels
    device = kernels["device"].to_numpy().astype(np.int64)
    found = find_episodes(kernels, kernels["group"], solo, device, kernels["kind"])
    streams = streams_by_device(kernels)
    names = named_kernels(told[0].labels)
    shown = _groups_asked_for(told[0].labels, trace, wanted)
    answer = Overlap(
        tracekit=tracekit.__version__,
        command="overlap",
        traces=[trust.line] + ([examine(baseline).line] if baseline is not None else []),
        warnings=[*trust.warnings, *told[0].warnings],
        traced_by=TRACED_BY[trust.line.granularity],
        selected=wanted.spelled(),
        devices=device_overlaps(*selected, streams, trust.opaque_devices),
        streams=stream_lines(streams),
        stream_pairs=stream_pairs(streams),
        kernel_pairs=_pair_rows(kernel_pairs(kernels, kernels["group"], kernels["solo"]), names, shown, wanted.top),
        episodes=total(found.episodes, solo),
        contention=_contention(kernels, frames[1:], beside, names, shown, wanted.top),
        sets=_sets(kernels, found, names, shown, wanted.top),
        by=wanted.by,
    )
    return _withheld(answer) if trust.sums_withheld else answer


def _solo(traces: list[Trace], told: list[Told]) -> pl.DataFrame:
    """Solo durations (SOLO) by kind: of the baseline, if there is one, then of the trace itself."""
    kinds = pl.concat([pl.DataFrame({"group": each.kind, "name": each.launch}) for each in told]).unique()
    sources = []
    for trace, each, source in reversed(list(zip(traces, told, ("same trace", "baseline"), strict=False))):
        sources += [alone(trace.kernels, each.kind, source), by_name(trace.kernels, each.kind, kinds, source)]
        if source == "baseline":
            sources.append(by_name(trace.kernels, each.kind, _names(traces, told)))
    return first_known(*sources)


def _names(traces: list[Trace], told: list[Told]) -> pl.DataFrame:
    """The ``name`` of the kernel of every kind, as its ``group``."""
    named = [
        trace.kernels.select("key", group=each.kind)
        .unique()
        .join(trace.kernel_keys.select("key", name=pl.coalesce("name", "short_name")), on="key")
        for trace, each in zip(traces, told, strict=True)
    ]
    return pl.concat(named).sort("group", "name").unique("group", keep="first", maintain_order=True).drop("key")


def _groups_asked_for(labels: pl.DataFrame, trace: Trace, wanted: Selection) -> frozenset[int] | None:
    """The groups of kernels that ``--kernel`` matches; None for all."""
    if wanted.kernel is None:
        return None
    keys = base_name_matches(trace.kernel_keys, wanted.kernel)["key"].implode()
    return frozenset(labels.filter(pl.col("key").is_in(keys))["group"])


def _moments(trace: Trace) -> pl.DataFrame:
    """The ``moment`` of the run that each kernel instance belongs to, and its ``phase``, as a number."""
    phases = phases_of(trace)
    numbered = phases.instances.select(
        "instance", phase=pl.col("phase").rank("dense"), several=pl.len().over("phase") > 1
    )
    rows = trace.kernels.with_columns(instance=phases.kernels)
    moment = moments(rows, numbered.filter("several")["instance"])
    return pl.DataFrame({"moment": moment, "phase": numbered["phase"].gather(rows["instance"]).fill_null(0)})


def _contention(
    kernels: pl.DataFrame,
    baseline: list[pl.DataFrame],
    beside: Companions,
    names: dict[int, Kernel],
    shown: frozenset[int] | None,
    top: int | None,
) -> list[Contention]:
    """Contention in the whole selection."""
    own, *theirs = (
        frame.select("group", "overlapped", "solo", "moment", duration=DURATION, phase=pl.lit(0, pl.Int64))
        for frame in (kernels, *baseline)
    )
    rows = contention(own.with_columns(kernels["set"]), beside.members, [*theirs, own])
    if shown is not None:
        rows = rows.filter(pl.col("group").is_in(list(shown)))
    return contention_rows(rows if top is None else rows.head(top), beside.members, names)


def _sets(
    kernels: pl.DataFrame, found: Found, names: dict[int, Kernel], shown: frozenset[int] | None, top: int | None
) -> list[OverlapSet]:
    """What overlap gained or lost by set in the whole selection."""
    # An episode begins with the start of one of its kernels.
    begun = kernels.select(pl.col("device").cast(pl.Int64).alias("place"), "start", block="moment", stratum="phase")
    begun = begun.unique(["place", "start"], keep="first", maintain_order=True)
    episodes = found.episodes.join(begun, on=["place", "start"], how="left", maintain_order="left")
    rows = set_rows(sets_of(episodes, found.kernels, episodes["block"], None), names, {})
    if shown is not None:
        asked = {names[group] for group in shown if group in names}
        rows = [row for row in rows if not asked.isdisjoint(row.members)]
    return rows[:top]


def _withheld(answer: Overlap) -> Overlap:
    """The answer without the sums that lost records spoil: pairs that ran side by side stay, how long goes."""
    replace = msgspec.structs.replace
    sums = ("wall_ns", "solo_ns", "gain_ns", "gain_low_ns", "gain_high_ns", "covered_wall_ns")
    return replace(
        answer,
        devices=withheld(answer.devices),
        streams=[replace(line, busy_ns=None, overlapped_ns=None) for line in answer.streams],
        stream_pairs=[replace(pair, overlap_ns=None) for pair in answer.stream_pairs],
        kernel_pairs=[replace(pair, overlap_ns=None) for pair in answer.kernel_pairs],
        episodes=replace(answer.episodes, **dict.fromkeys((*sums, "bound_low_ns", "bound_high_ns"))),
        contention=[],
        sets=[],
    )


def _pair_rows(
    pairs: pl.DataFrame, names: dict[int, Kernel], shown: frozenset[int] | None, top: int | None
) -> list[KernelPair]:
    if shown is not None:
        pairs = pairs.filter(pl.col("a").is_in(list(shown)) | pl.col("b").is_in(list(shown)))
    return [
        KernelPair(
            a=names[row["a"]],
            b=names[row["b"]],
            overlap_ns=row["overlap_ns"],
            instances=row["instances"],
            stretch_a=row["stretch_a"],
            stretch_b=row["stretch_b"],
        )
        for row in (pairs if top is None else pairs.head(top)).iter_rows(named=True)
    ]
