"""What a person is shown of graphs."""

from collections import Counter, defaultdict

from tracekit.analysis.results import GraphAnswer, GraphDetail, GraphNode, GraphShape, LevelRun
from tracekit.report.document import Document, Section
from tracekit.report.views.names import dimensions, kernel_names, trace_notes, warning_lines
from tracekit.units import duration, percent, shortened

MOST_GRAPHS, MOST_LEVELS, MOST_NODES = 20, 40, 15
"""Graphs, levels and nodes shown to a person; every one is in the JSON."""

COPY = "copy or set"
"""A node that is no kernel: which of the two it is, is not kept."""


def document(answer: GraphAnswer) -> Document:
    """The graphs, then one of them level by level, then its longest nodes."""
    dumps = [f"{answer.dumps_used} of {answer.dumps} dumps show a graph of this trace"] if answer.dumps else []
    return Document(
        f"graphs in {answer.traces[0].path}",
        [
            Section("", notes=[*trace_notes(answer.traces), *dumps]),
            _graphs(answer.graphs),
            _serial_pairs(answer.graphs),
            _levels(answer.detail),
            _nodes(answer.detail),
        ],
        warning_lines(answer.warnings),
    )


def _graphs(graphs: list[GraphShape]) -> Section:
    shown = graphs[:MOST_GRAPHS]
    rows = [
        [
            str(graph.graph),
            _order(graph),
            str(graph.launches),
            str(graph.nodes),
            _count(graph.edges),
            _count(graph.chain),
            _count(graph.width),
            str(graph.max_depth),
            duration(graph.span_ns),
            duration(graph.critical_ns),
            duration(graph.ideal_ns),
            _mean(graph.concurrency),
            _mean(graph.possible_concurrency),
            percent(graph.share),
        ]
        for graph in shown
    ]
    columns = ["graph", "order", "launches", "nodes", "edges", "chain", "width", "max depth"]
    columns += ["span", "critical path", "at solo speed", "concurrency", "possible", "kernel time"]
    notes = [
        "chain: most nodes on one path; width: most nodes that no path orders; max depth: most that ran at once",
        "critical path: by median durations as they ran; at solo speed: were every node as fast as alone",
        "concurrency: summed time of nodes / time in which any ran; it rises when nodes slow each other down",
        *(f"graph {graph.graph}: {graph.note}" for graph in shown if graph.note),
    ]
    if len(graphs) > MOST_GRAPHS:
        notes.append(f"{len(graphs) - MOST_GRAPHS} more graphs: --format csv or json lists all")
    return Section("Graphs", columns, rows, text_columns=2, notes=notes)


def _order(graph: GraphShape) -> str:
    if graph.order == "dump":
        return shortened((graph.dump or "").rsplit("/", 1)[-1])
    if graph.order == "unknown":
        return "unknown"
    return f"inferred from {graph.launches} replay{'s' if graph.launches > 1 else ''}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _mean(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _serial_pairs(graphs: list[GraphShape]) -> Section:
    rows = [
        [
            str(graph.graph),
            str(graph.serial_pairs.by_edge),
            str(graph.serial_pairs.by_path),
            str(graph.serial_pairs.by_neither),
        ]
        for graph in graphs[:MOST_GRAPHS]
        if graph.serial_pairs
    ]
    columns = ["graph", "ordered by an edge", "ordered by a path", "no path: could run at once"]
    return Section("Nodes that ran one right after the other, in all launches", columns, rows)


def _levels(detail: GraphDetail) -> Section:
    """The graph drawn in text: from top to bottom what waits for what is above."""
    share = defaultdict[int, float](float)
    for node in detail.nodes:
        if node.level is not None:
            share[node.level] += node.share or 0
    rows = []
    for run in detail.outline:
        for offset, numbers in enumerate(run.levels):
            nodes = [detail.nodes[number] for number in numbers]
            step = len(run.levels)
            of_time = sum(share[run.first + offset + step * i] for i in range(run.times))
            longest = max(node.median_ns for node in nodes)
            rows.append([_level(run, offset), _kernels(nodes), str(len(nodes)), duration(longest), percent(of_time)])
    notes = ["a level holds the nodes with as many nodes on the longest path to them"] if rows else []
    if len(rows) > MOST_LEVELS:
        notes.append(f"{len(rows) - MOST_LEVELS} more lines: --svg draws all, --format json lists all")
    title = f"Graph {detail.graph} by level; launch {detail.launch}, {duration(detail.span_ns)}"
    columns = ["level", "nodes", "at once", "longest", "of its time"]
    return Section(title, columns, rows[:MOST_LEVELS], text_columns=2, notes=notes)


def _level(run: LevelRun, offset: int) -> str:
    """``3``; ``3-14`` for levels alike; ``3, 15, ... (30x)`` for one of several that repeat."""
    first, step = run.first + offset, len(run.levels)
    if run.times == 1:
        return str(first)
    if step == 1:
        return f"{first}-{first + run.times - 1}"
    return f"{first}, {first + step}, ... ({run.times}x)" if run.times > 2 else f"{first}, {first + step}"


def _kernels(nodes: list[GraphNode]) -> str:
    counts = Counter(_name(node) for node in nodes)
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def _name(node: GraphNode) -> str:
    if node.kind == "copy":
        return COPY
    name = shortened(node.short_name or node.name or "(unnamed)")
    return name if node.grid is None else f"{name} {dimensions(node.grid)}"


def _nodes(detail: GraphDetail) -> Section:
    shown = sorted(detail.nodes, key=lambda node: (-(node.share or 0), node.node))[:MOST_NODES]
    kernels = list({node.name: node for node in shown if node.kind == "kernel"}.values())
    names = {kernel.name: name for kernel, name in zip(kernels, kernel_names(kernels), strict=True)}
    rows = [
        [
            names.get(node.name, COPY),
            dimensions(node.grid),
            str(node.node),
            _count(node.level),
            duration(node.median_ns),
            f"{duration(node.p25_ns)} - {duration(node.p75_ns)}",
            duration(node.solo_ns),
            percent(node.overlapped_fraction, 0),
            percent(node.share),
            duration(node.start_ns),
            duration(node.duration_ns),
        ]
        for node in shown
    ]
    columns = ["kernel", "grid", "node", "level", "median", "p25-p75", "solo", "overlapped", "of its time"]
    columns += ["from", "took"]
    more = len(detail.nodes) - len(shown)
    notes = [f"from, took: in launch {detail.launch}, from its first start"]
    if more:
        notes.append(f"{more} more nodes: --format json lists all")
    return Section(f"Nodes of graph {detail.graph} with most time", columns, rows, text_columns=2, notes=notes)
