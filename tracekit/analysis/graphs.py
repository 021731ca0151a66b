"""Answer of ``tracekit graph``: the shapes of a trace's graphs and how much of their concurrency was used."""

from collections.abc import Sequence

import numpy as np
import polars as pl

import tracekit
from tracekit.analysis.kernels.durations import DURATION, LABELS, group_of_instances
from tracekit.analysis.kernels.matching import group_names, matched_labels
from tracekit.analysis.kernels.solo import alone, by_name, first_known
from tracekit.analysis.results import Granularity, GraphAnswer, GraphDetail, GraphNode, GraphShape, LevelRun, Warn
from tracekit.analysis.rows import kernel_of, known_number, number, process_id, rounded
from tracekit.analysis.trust.recording import RECORD_NODES, examine
from tracekit.analysis.what_if.graph_figures import GraphFigures
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.graph.dag import Floats
from tracekit.graph.dumps import Dump
from tracekit.graph.matching import KernelName
from tracekit.graph.ordering import Ordered, order_graphs
from tracekit.graph.outline import outline
from tracekit.graph.replays import COPY, Replays, find_replays
from tracekit.trace.reader import Trace

WHY_NONE: dict[Granularity, str] = {
    "node": "no node of a graph is recorded",
    "graph": f"its graphs were traced as a whole: {RECORD_NODES}",
    "none": "no graph was launched: record the run with graphs on",
    "unknown": f"no kernel belongs to a graph: where graphs were on, {RECORD_NODES}",
}
"""Why a trace has no nodes, by how its graphs were traced."""


def graphs_of(trace: Trace, baseline: Trace | None, dumps: Sequence[Dump], launch: int | None = None) -> GraphAnswer:
    """The graphs of a trace and one of them in detail: that of the ``launch`` of this number, else the one that
    takes most time. ``baseline``, another run of the same work, supplies solo durations.

    Raises UnusableInput where the trace has no graph nodes, WrongUsage where there is no such launch.
    """
    trust = examine(trace)
    replays, orders = ordered_graphs(trace, dumps)
    if not replays:
        raise UnusableInput(f"{trace.label}: {WHY_NONE[trust.line.granularity]}")
    labels = matched_labels([each.kernel_keys for each in (trace, *([baseline] if baseline else []))])
    own = labels.filter(pl.col("trace") == 0)
    solo = by_key(own, solo_durations(trace, baseline, labels), "solo")
    figures = [GraphFigures(graph, order.dag, solo) for graph, order in zip(replays, orders, strict=True)]
    ranked = sorted(range(len(figures)), key=lambda i: (-figures[i].summed, i))
    kernel_time = None if trust.sums_withheld else int(trace.kernels.select(DURATION.sum()).item())
    shown, row = _shown([replays[i] for i in ranked], [figures[i] for i in ranked], launch)
    used = {order.file for order in orders if order.file is not None}
    shapes = [_shape(at, figures[i], orders[i], kernel_time) for at, i in enumerate(ranked, start=1)]
    return GraphAnswer(
        tracekit=tracekit.__version__,
        command="graph",
        traces=[trust.line] + ([examine(baseline).line] if baseline is not None else []),
        warnings=[*trust.warnings, *_warnings(shapes)],
        dumps=len(dumps),
        dumps_used=len(used),
        graphs=shapes,
        detail=_detail(shown + 1, figures[ranked[shown]], row, own),
    )


def ordered_graphs(trace: Trace, dumps: Sequence[Dump]) -> tuple[list[Replays], list[Ordered]]:
    """The graphs of a trace, in order of their first launch, and what orders the nodes of each."""
    keys = trace.kernel_keys
    replays = find_replays(trace.kernels, trace.copies, keys.select(pl.coalesce("mangled_name", "name")).to_series())
    names: list[KernelName] = list(keys.select("mangled_name", "short_name").iter_rows())
    return replays, order_graphs(replays, names, dumps)


def solo_durations(trace: Trace, baseline: Trace | None, labels: pl.DataFrame) -> pl.DataFrame:
    """Solo durations (solo.SOLO), those of the baseline first."""
    own, others = (labels.filter(pl.col("trace") == i) for i in (0, 1))
    here = alone(trace.kernels, group_of_instances(trace.kernels, own), "same trace")
    if baseline is None:
        return here
    group = group_of_instances(baseline.kernels, others)
    other_launches = by_name(baseline.kernels, group, group_names(labels))
    return first_known(alone(baseline.kernels, group, "baseline"), other_launches, here)


def by_key(labels: pl.DataFrame, solo: pl.DataFrame, column: str) -> Floats:
    """A column of solo durations (solo.SOLO) as one value for each kernel key, nan where unknown."""
    known = labels.select("key", "group").join(solo, on="group", how="left").sort("key")
    return known[column].fill_null(float("nan")).to_numpy()


def _shape(at: int, figures: GraphFigures, order: Ordered, kernel_time: int | None) -> GraphShape:
    graph, dag = figures.graph, order.dag
    copies = int((graph.key[0] == COPY).sum())
    kernels_time = int(figures.duration[:, graph.key[0] != COPY].sum())
    critical, ideal = figures.critical(figures.median), figures.critical(figures.solo)
    launches = len(graph.launch)
    return GraphShape(
        graph=at,
        process=process_id(graph.process),
        executables=len(set(graph.executable.tolist())),
        launches=launches,
        first_launch=int(graph.launch[0]),
        nodes=graph.size,
        kinds={"kernel": graph.size - copies, "copy": copies},
        order=order.source,
        dump=order.file,
        edges=None if dag is None else len(dag.edges),
        width=None if dag is None else dag.width,
        max_depth=figures.max_depth,
        chain=None if dag is None else int(dag.levels.max()) + 1,
        span_ns=number(float(np.median(figures.span))),
        busy_ns=number(figures.busy / launches),
        summed_ns=number(figures.summed / launches),
        share=round(kernels_time / kernel_time, 6) if kernel_time else None,
        critical_ns=known_number(critical),
        ideal_ns=known_number(ideal),
        concurrency=rounded(figures.concurrency),
        possible_concurrency=rounded(figures.possible_concurrency),
        serial_pairs=figures.serial_pairs() if order.source == "dump" else None,
        note=order.note,
    )


def _shown(replays: list[Replays], figures: list[GraphFigures], launch: int | None) -> tuple[int, int]:
    """The graph and the row of its launch that are shown in detail."""
    if launch is None:
        return 0, int(np.argmax(figures[0].span))
    for at, graph in enumerate(replays):
        found = np.flatnonzero(graph.launch == launch)
        if found.size:
            return at, int(found[0])
    last = max(int(graph.launch.max()) for graph in replays)
    raise WrongUsage(f"no graph launch {launch}: the trace has launches 1 to {last}")


def _detail(at: int, figures: GraphFigures, row: int, labels: pl.DataFrame) -> GraphDetail:
    graph, dag = figures.graph, figures.dag
    kernels = {line["key"]: kernel_of(line) for line in labels.iter_rows(named=True)}
    nothing = kernel_of(dict.fromkeys(LABELS))
    low, high = np.quantile(figures.duration, [0.25, 0.75], axis=0)
    total = figures.duration.sum(axis=0)
    after: list[list[int]] = [[] for _ in range(graph.size)]
    for one, other in dag.edges.tolist() if dag else []:
        after[other].append(one)
    first = int(graph.start[row].min())
    nodes = [
        GraphNode(
            **kernels.get(key, nothing),
            node=i,
            kind="copy" if key == COPY else "kernel",
            level=None if dag is None else int(dag.levels[i]),
            after=after[i],
            start_ns=int(graph.start[row, i]) - first,
            duration_ns=int(figures.duration[row, i]),
            median_ns=number(float(figures.median[i])),
            p25_ns=number(float(low[i])),
            p75_ns=number(float(high[i])),
            share=round(int(total[i]) / figures.summed, 6) if figures.summed else None,
            solo_ns=None if np.isnan(figures.solo[i]) else number(float(figures.solo[i])),
            overlapped_fraction=round(int(figures.beside_others[i]) / int(total[i]), 6) if total[i] else None,
        )
        for i, key in enumerate(graph.key[row].tolist())
    ]
    return GraphDetail(at, int(graph.launch[row]), int(figures.span[row]), nodes, _outline(nodes))


def _outline(nodes: list[GraphNode]) -> list[LevelRun]:
    """The nodes by level, levels that run the same kernels as often and in the same turn told once."""
    levels: list[list[GraphNode]] = [[] for _ in nodes]
    for node in nodes:
        if node.level is not None:
            levels[node.level].append(node)
    levels = [level for level in levels if level]
    alike = [tuple(sorted(f"{node.name} {node.grid}" for node in level)) for level in levels]
    return [
        LevelRun(run.first, run.times, [[node.node for node in level] for level in levels[run.first :][: run.length]])
        for run in outline(alike)
    ]


def _warnings(shapes: list[GraphShape]) -> list[Warn]:
    warnings = []
    inferred = sum(shape.order == "inferred" for shape in shapes)
    if inferred:
        message = (
            f"the order of {inferred} of {len(shapes)} graphs is inferred from their replays: nodes that always ran in "
            "turn count as ordered, so they may be wider than shown; a dump (--dot) has the edges"
        )
        warnings.append(Warn("order_inferred", message, inferred))
    alone_unknown = sum(shape.ideal_ns is None and shape.width is not None for shape in shapes)
    if alone_unknown:
        message = (
            f"{alone_unknown} graphs have kernels that never ran alone: what concurrency was possible is unknown; "
            "an eager run of the same work (--baseline) tells"
        )
        warnings.append(Warn("solo_unknown", message, alone_unknown))
    return warnings
