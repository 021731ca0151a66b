"""Graphs of traces: which launches are one, what a dump or their replays say of their order, and what they took."""

from pathlib import Path

import pytest
from dot_dumps import cluster, digraph, kernel, other, plain_dump
from nsys_export import Export
from planted_dumps import planted_dump, planted_edges, write_dumps
from sample_models import MODELS
from sample_plan import Together, Train

from tracekit.analysis.graphs import graphs_of
from tracekit.analysis.results import GraphAnswer, GraphShape
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.graph.dumps import Dump, dump_files, read_dumps, shape_of
from tracekit.trace.source import open_trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
MS = 1_000_000
UNIT = 1 << 32

Rows = list[tuple[str, int, int]]
"""The nodes of one launch, in the order of their ids: kernel, start, end."""


def launched(export: Export, correlation: int, rows: Rows, executable: int = 2, pid: int = 1) -> None:
    for i, (name, start, end) in enumerate(rows):
        export.kernel(MS + start, MS + end, name=name, correlation=correlation, node=executable * UNIT + i, pid=pid)


def answered(export: Export, folder: Path, *dumps: str, launch: int | None = None) -> GraphAnswer:
    with open_trace(export.write(folder / "trace.sqlite"), cached=False) as trace:
        shapes = [Dump(f"{i}.dot", shape_of(text)) for i, text in enumerate(dumps)]
        return graphs_of(trace, None, shapes, launch)


def sample(name: str, dumps: Path | None = None, baseline: str | None = None) -> GraphAnswer:
    read = read_dumps(dump_files([str(dumps)])) if dumps else []
    with open_trace(SAMPLES / name, cached=False) as trace:
        if baseline is None:
            return graphs_of(trace, None, read)
        with open_trace(SAMPLES / baseline, cached=False) as other:
            return graphs_of(trace, other, read)


def only(answer: GraphAnswer) -> GraphShape:
    (graph,) = answer.graphs
    return graph


def test_replays_of_planted_graphs_show_the_edges_that_were_planted() -> None:
    answer = sample("gbx-graphs-on.sqlite")
    assert [graph.launches for graph in answer.graphs] == [24, 12, 50, 50, 56]
    assert {graph.order for graph in answer.graphs} == {"inferred"}
    planted = planted_edges(MODELS["gbx"].prefill[0])
    assert answer.graphs[0].edges == len(planted)
    found = {(before, node.node) for node in answer.detail.nodes for before in node.after}
    assert found == set(planted)


@pytest.mark.parametrize("model", ["gbx", "stock", "moe"])
def test_planted_dumps_match_the_graphs_they_show(model: str, tmp_path: Path) -> None:
    answer = sample(f"{model}-graphs-on.sqlite", write_dumps(model, tmp_path))
    assert (answer.dumps, answer.dumps_used) == (5, 5)
    assert {graph.order for graph in answer.graphs} == {"dump"}
    assert [graph.note for graph in answer.graphs] == [None] * 5
    assert [graph.width for graph in answer.graphs] == [graph.max_depth for graph in answer.graphs]


def test_nodes_without_a_path_that_ran_in_a_row_could_have_run_at_once(tmp_path: Path) -> None:
    answer = sample("gbx-graphs-serial.sqlite", write_dumps("gbx", tmp_path))
    longest = answer.graphs[0]
    layer = MODELS["gbx"].prefill[0]
    # In a row: each pair within a group that runs at once, and the long kernel of a train before its first short one.
    apart = sum(isinstance(group, Together | Train) for group in layer)
    assert longest.serial_pairs is not None
    assert longest.serial_pairs.by_neither == apart * longest.launches
    assert longest.serial_pairs.by_path == 0
    assert longest.serial_pairs.by_edge == (longest.nodes - 1 - apart) * longest.launches
    assert (longest.width, longest.max_depth, longest.concurrency) == (2, 1, 1.0)
    assert longest.possible_concurrency == pytest.approx(1.47, abs=0.01)


def test_a_dump_holds_for_all_that_an_updated_executable_runs(tmp_path: Path) -> None:
    """Attention and gated-delta layers share an executable: only the first one's graph is dumped."""
    first = tmp_path / "graph_1.dot"
    first.write_text(planted_dump(MODELS["gbx"].prefill[0]))
    answer = sample("gbx-graphs-on.sqlite", tmp_path)
    assert [graph.dump for graph in answer.graphs] == [str(first)] * 2 + [None] * 3
    assert answer.dumps_used == 1


def test_possible_concurrency_needs_solo_durations_which_an_eager_run_has() -> None:
    alone = sample("gbx-graphs-on.sqlite")
    assert (alone.graphs[0].ideal_ns, alone.graphs[0].possible_concurrency) == (None, None)
    assert "solo_unknown" in {warning.code for warning in alone.warnings}
    known = sample("gbx-graphs-on.sqlite", baseline="gbx-graphs-off.sqlite")
    solo = sum(node.solo_ns or 0 for node in known.detail.nodes)
    assert known.graphs[0].possible_concurrency == pytest.approx(solo / (known.graphs[0].ideal_ns or 0), rel=1e-5)


def test_figures_of_two_branches(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 10, 40), ("c", 12, 22), ("d", 40, 50)])
    launched(export, 2, [("a", 100, 110), ("b", 110, 150), ("c", 114, 124), ("d", 150, 160)])
    graph = only(answered(export, tmp_path))
    assert (graph.launches, graph.nodes, graph.edges, graph.chain, graph.width, graph.max_depth) == (2, 4, 4, 3, 2, 2)
    assert (graph.span_ns, graph.busy_ns, graph.summed_ns) == (55, 55, 65)
    assert (graph.critical_ns, graph.concurrency) == (55, round(65 / 55, 6))
    assert (graph.share, graph.order, graph.serial_pairs) == (1, "inferred", None)


def test_detail_is_of_the_launch_asked_for_else_of_the_longest(tmp_path: Path) -> None:
    export = Export()
    launched(export, 7, [("a", 0, 10), ("b", 10, 40)])
    launched(export, 5, [("a", 100, 110), ("b", 120, 160)])
    launched(export, 6, [("z", 200, 201)], executable=3)
    longest = answered(export, tmp_path).detail
    assert (longest.graph, longest.launch, longest.span_ns) == (1, 2, 60)
    assert [(node.start_ns, node.duration_ns, node.median_ns) for node in longest.nodes] == [(0, 10, 10), (20, 40, 35)]
    asked = answered(export, tmp_path, launch=3).detail
    assert (asked.graph, asked.launch, [node.name for node in asked.nodes]) == (2, 3, ["z"])
    with pytest.raises(WrongUsage, match="launches 1 to 3"):
        answered(export, tmp_path, launch=4)


def test_an_updated_executable_runs_several_graphs_and_a_graph_may_have_several_executables(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10)], executable=2)
    launched(export, 2, [("b", 20, 30)], executable=2)
    launched(export, 3, [("a", 40, 50)], executable=9)
    answer = answered(export, tmp_path)
    assert sorted((graph.launches, graph.executables) for graph in answer.graphs) == [(1, 1), (2, 2)]


def test_launches_of_two_processes_with_one_correlation_id_are_two(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 10, 20)], pid=1)
    launched(export, 1, [("a", 5, 15), ("b", 15, 25)], pid=2)
    assert [(graph.process, graph.launches, graph.max_depth) for graph in answered(export, tmp_path).graphs] == [
        (1, 1, 1),
        (2, 1, 1),
    ]


def test_copies_of_a_launch_are_nodes(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 20, 30)])
    export.memcpy(MS + 10, MS + 20, correlation=1, node=2 * UNIT + 2)
    dump = digraph(cluster([kernel(0, "a"), kernel(1, "b"), other(2, "MEMCPY")], [(0, 2), (2, 1)]))
    answer = answered(export, tmp_path, dump)
    assert (only(answer).kinds, only(answer).order) == ({"kernel": 2, "copy": 1}, "dump")
    assert [(node.kind, node.level, node.after) for node in answer.detail.nodes] == [
        ("kernel", 0, []),
        ("kernel", 2, [2]),
        ("copy", 1, [0]),
    ]


def test_a_dump_with_copies_shows_a_trace_without(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 20, 30)])
    dump = digraph(cluster([kernel(0, "a"), kernel(1, "b"), other(2, "MEMCPY")], [(0, 2), (2, 1)]))
    answer = answered(export, tmp_path, dump)
    assert (only(answer).order, only(answer).edges, only(answer).chain) == ("dump", 1, 2)


@pytest.mark.parametrize("order", [["a", "c", "b"], ["a", "b", "c"]])
def test_nodes_of_a_child_graph_are_found_in_place_or_after_the_others(order: list[str], tmp_path: Path) -> None:
    export = Export()
    times = {"a": (0, 10), "c": (10, 20), "b": (20, 30)}
    launched(export, 1, [(name, *times[name]) for name in order])
    outer = cluster([kernel(0, "a"), other(1, "graph_2"), kernel(2, "b")], [(0, 1), (1, 2)])
    answer = answered(export, tmp_path, digraph(outer, cluster([kernel(0, "c")], [], graph=2)))
    levels = {node.name: node.level for node in answer.detail.nodes}
    assert (only(answer).order, levels) == ("dump", {"a": 0, "c": 1, "b": 2})


def test_dumps_that_fit_and_differ_in_their_edges_are_not_used(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 10, 20)])
    ordered, free = plain_dump(["a", "b"], [(0, 1)]), plain_dump(["a", "b"], [])
    answer = answered(export, tmp_path, ordered, free)
    assert (only(answer).order, answer.dumps_used) == ("inferred", 0)
    assert only(answer).note == "dumps fit it in 2 ways that differ in their edges: none is used"
    assert only(answered(export, tmp_path, ordered, ordered)).order == "dump"


def test_dumps_of_other_kernels_are_not_used(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 10, 20)])
    answer = answered(export, tmp_path, plain_dump(["b", "a"], []), plain_dump(["a"], []), plain_dump(["a", "x"], []))
    assert (only(answer).order, only(answer).note, answer.dumps, answer.dumps_used) == ("inferred", None, 3, 0)


def test_edges_that_did_not_hold_in_the_trace_are_counted(tmp_path: Path) -> None:
    export = Export()
    launched(export, 1, [("a", 0, 10), ("b", 5, 20), ("c", 20, 30)])
    graph = only(answered(export, tmp_path, plain_dump(["a", "b", "c"], [(0, 1), (1, 2)])))
    assert graph.note == "1 of the dump's edges did not hold in every replay"


def test_a_mangled_dump_shows_a_trace_without_mangled_names(tmp_path: Path) -> None:
    export = Export()
    export.kernel(MS, MS + 10, name="void ns::copy_g<int>(int)", mangled="", correlation=1, node=2 * UNIT)
    assert only(answered(export, tmp_path, plain_dump(["_ZN2ns6copy_gIiEEvi"], []))).order == "dump"
    assert only(answered(export, tmp_path, plain_dump(["_ZN2ns7xcopy_gIiEEvi"], []))).order == "inferred"


def test_a_replayed_graph_of_real_kernels_that_ran_in_turn(real_traces: list[Path]) -> None:
    (path,) = (path for path in real_traces if path.stem == "graph-nodes-v100-a")
    with open_trace(path, cached=False) as trace:
        graph = only(graphs_of(trace, None, []))
    assert (graph.launches, graph.nodes, graph.edges, graph.width, graph.max_depth) == (1, 266, 265, 1, 1)
    assert graph.summed_ns == graph.busy_ns == graph.critical_ns


@pytest.mark.parametrize(
    ("mode", "said"),
    [("Graph", "--cuda-graph-trace=node"), ("Node", "no graph was launched|no kernel belongs to a graph")],
)
def test_a_trace_without_graph_nodes_says_why_and_what_to_record(mode: str, said: str, tmp_path: Path) -> None:
    export = Export(graph_mode=mode)
    export.kernel(MS, MS + 10, correlation=export.launch(1000, 1010))
    if mode == "Graph":
        export.graph_trace(MS + 20, MS + 1000, export.launch(2000, 2010, "cudaGraphLaunch_v10000"))
    with pytest.raises(UnusableInput, match=said):
        answered(export, tmp_path)


def test_the_order_of_rows_means_nothing(tmp_path: Path) -> None:
    export = Export()
    for i in range(5):
        launched(
            export,
            10 - i,
            [("a", 100 * i, 100 * i + 10), ("b", 100 * i + 5, 100 * i + 20), ("a", 100 * i + 20, 100 * i + 30)],
        )
    answers = []
    for seed in (None, 1, 2):
        with open_trace(export.write(tmp_path / "trace.sqlite", shuffle=seed), cached=False) as trace:
            answers.append(graphs_of(trace, None, []))
    assert answers[0] == answers[1] == answers[2]
