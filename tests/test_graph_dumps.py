"""DOT dumps: recorded ones, both forms written out, and what is no dump."""

from pathlib import Path

import pytest
from conftest import SHARED
from dot_dumps import cluster, digraph, kernel, other, plain_dump, verbose_kernel
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.errors import UnusableInput
from tracekit.graph import dumps
from tracekit.graph.dot_syntax import DotError
from tracekit.graph.dumps import dump_files, read_dump, shape_of
from tracekit.graph.shape import Shape


@pytest.fixture
def recorded() -> Path:
    """Dumps that CUDA wrote; skips where they are not beside the repository."""
    folder = SHARED / "dot"
    if not folder.is_dir():
        pytest.skip("the recorded dumps are not beside the repository")
    return folder


def edges(shape: Shape) -> list[list[int]]:
    found: list[list[int]] = shape.dag.edges.tolist()
    return found


def test_a_recorded_dump_with_child_graphs_in_child_graphs(recorded: Path) -> None:
    shape = read_dump(recorded / "mlx_flags0_nested_graph.dot")
    assert [node.kind for node in shape.nodes] == ["kernel"] * 12
    assert shape.nodes[4].name == (
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_1_64x64x128_4x1x1_cga1x1x1_kernel0_0"
    )
    assert [node.graph for node in shape.nodes] == [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    assert edges(shape) == [[i, i + 1] for i in range(1, 7)] + [[7, 8], [7, 9], [8, 10], [9, 10], [10, 11]]
    # Nothing orders node 0, and nodes 8 and 9 are branches.
    assert (shape.dag.width, int(shape.dag.levels.max())) == (3, 9)


def test_a_recorded_verbose_dump_has_launch_configurations(recorded: Path) -> None:
    shape = read_dump(recorded / "torch_verbose_flags_a2000.dot")
    assert [node.kind for node in shape.nodes] == ["kernel", "kernel", "memcpy", "kernel"]
    assert shape.nodes[1][1:5] == ("_k", (1, 1, 1), (128, 1, 1), 0)
    assert edges(shape) == [[0, 1], [1, 2], [2, 3]]


def test_a_recorded_fragment_is_refused_but_its_records_are_read(recorded: Path) -> None:
    file = recorded / "pytorch_126753_verbose_fragment.dot.txt"
    with pytest.raises(UnusableInput, match="no usable DOT dump: it does not begin with 'digraph'"):
        read_dump(file)
    records = file.read_text().split('"];\n')[1:3]
    head = 'digraph dot {\nsubgraph cluster_1 {\nlabel="graph_1" graph[style="dashed"];\n'
    shape = shape_of(head + "".join(f'{record}"];\n' for record in records) + "}\n}\n")
    assert [node[1:5] for node in shape.nodes] == [
        ("ampere_sgemm_128x64_nn", (16, 10, 4), (128, 1, 1), 0),
        (
            "_ZN7cutlass7Kernel2I43cutlass_80_simt_sgemm_256x128_8x4_nt_align1EEvNT_6ParamsE",
            (64, 1, 1),
            (256, 1, 1),
            49152,
        ),
    ]


def test_nodes_that_are_no_kernels_say_what_they_are() -> None:
    words = ["MEMCPY\n(HtoD,4096)", "MEMSET\n(4,1,0)", "EMPTY", "HOST", "EVENT_RECORD", "SOMETHING NEW"]
    plain = digraph(cluster([other(i, word) for i, word in enumerate(words)], []))
    kinds = ["memcpy", "memset", "empty", "host", "event", "other"]
    assert [node.kind for node in shape_of(plain).nodes] == kinds
    records = [f'shape="record" label="{{\n{word.split()[0]}\n| {{ID | {i}}}}}"' for i, word in enumerate(words)]
    assert [node.kind for node in shape_of(digraph(cluster(records, []))).nodes] == kinds


def test_edges_of_a_child_graph_lead_to_its_first_nodes_and_from_its_last() -> None:
    child = cluster([kernel(i, f"c{i}") for i in range(3)], [(0, 2)], graph=2)
    outer = cluster([kernel(0, "a"), other(1, "graph_2"), kernel(2, "b")], [(0, 1), (1, 2)])
    shape = shape_of(digraph(outer, child))
    assert [node.name for node in shape.nodes] == ["a", "c0", "c1", "c2", "b"]
    assert edges(shape) == [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]]


def test_a_child_graph_that_two_nodes_stand_for_is_there_twice() -> None:
    child = cluster([kernel(0, "c")], [], graph=7)
    shape = shape_of(digraph(cluster([other(0, "graph_7"), other(1, "graph_7")], [(0, 1)]), child))
    assert ([node.name for node in shape.nodes], edges(shape)) == (["c", "c"], [[0, 1]])


def test_an_empty_child_graph_still_orders_what_is_round_it() -> None:
    outer = cluster([kernel(0, "a"), other(1, "graph_2"), kernel(2, "b")], [(0, 1), (1, 2)])
    shape = shape_of(digraph(outer, cluster([], [], graph=2)))
    assert [node.kind for node in shape.nodes] == ["kernel", "child", "kernel"]
    assert edges(shape.recorded(copies=True, in_place=True)) == [[0, 1]]


def test_what_leaves_no_rows_in_a_trace_orders_what_does() -> None:
    nodes = [kernel(0, "a"), kernel(1, "b"), other(2, "EMPTY"), other(3, "HOST"), other(4, "MEMCPY"), kernel(5, "c")]
    shape = shape_of(digraph(cluster(nodes, [(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5)])))
    assert edges(shape.recorded(copies=True, in_place=True)) == [[0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert edges(shape.recorded(copies=False, in_place=True)) == [[0, 2], [1, 2]]


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(blacklist_characters='"\\\n\r', blacklist_categories=["Cs"]), min_size=1), max_size=5
    )
)
def test_names_of_any_characters_come_through(names: list[str]) -> None:
    shape = shape_of(plain_dump(names, []))
    assert [node.name for node in shape.nodes] == names


def test_verbose_and_plain_dumps_of_one_graph_have_one_shape() -> None:
    names, links = ["_Z1av", "_Z1bv", "_Z1cv"], [(0, 1), (0, 2)]
    verbose = shape_of(digraph(cluster([verbose_kernel(i, name) for i, name in enumerate(names)], links)))
    plain = shape_of(plain_dump(names, links))
    assert [node.name for node in verbose.nodes] == [node.name for node in plain.nodes]
    assert edges(verbose) == edges(plain)
    assert verbose.nodes[0].grid == (16, 10, 4)


WHOLE = plain_dump(["a", "b"], [(0, 1)])


@pytest.mark.parametrize("length", range(len(WHOLE.rstrip())))
def test_a_dump_that_is_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(DotError):
        shape_of(WHOLE[:length])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not begin with 'digraph'"),
        ("graph g { a -- b }", "does not begin with 'digraph'"),
        ("SQLite format 3\0", "does not begin with 'digraph'"),
        ("digraph g { a -> b; a; b }", "not named as cudaGraphDebugDotPrint names them"),
        ("digraph g { }", "not named as cudaGraphDebugDotPrint names them"),
        (WHOLE + WHOLE, "unexpected 'digraph'"),
        (WHOLE.replace("];", "", 1), "unexpected"),
        (WHOLE.replace("octagon", 'octagon"', 1), "unexpected|it ends before"),
        (plain_dump(["a", "b"], [(0, 1), (1, 0)]), "lead in a circle"),
        (plain_dump(["a"], [(0, 5)]), "graph_1_node_5, which is no node of graph_1"),
        (digraph(cluster([other(0, "graph_9")], [])), "child graph graph_9 is not in it"),
        (digraph(cluster([other(0, "graph_1")], [])), "child graph graph_1 lies inside of itself"),
        (digraph(cluster(['shape="record" label="{KERNEL | {ID | 3}}"'], [])), "does not say its name"),
        (
            digraph(
                *(cluster([other(0, f"graph_{i + 1}"), other(1, f"graph_{i + 1}")], [], graph=i) for i in range(1, 30)),
                cluster([kernel(0, "a")], [], graph=30),
            ),
            "more than 100000 nodes",
        ),
    ],
)
def test_what_is_no_dump_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(DotError, match=said):
        shape_of(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*WHOLE.split(), "{", "}", "[", "]", '"', "->", "=", ";", "subgraph"]), max_size=40))
def test_shuffled_parts_of_a_dump_are_read_or_refused(parts: list[str]) -> None:
    try:
        shape_of("digraph dot {" + " ".join(parts))
    except DotError as error:
        assert "\n" not in str(error)


def test_a_file_that_is_too_big_or_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnusableInput, match="No such file"):
        read_dump(tmp_path / "none.dot")
    file = tmp_path / "big.dot"
    file.write_text(WHOLE)
    monkeypatch.setattr(dumps, "MOST_BYTES", 10)
    with pytest.raises(UnusableInput, match="too big"):
        read_dump(file)


def test_a_folder_stands_for_its_dumps_by_their_numbers(tmp_path: Path) -> None:
    for name in ("graph_10.dot", "graph_9.dot", "notes.txt"):
        (tmp_path / name).write_text(WHOLE)
    assert [Path(file).name for file in dump_files([str(tmp_path)])] == ["graph_9.dot", "graph_10.dot"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnusableInput, match=r"holds no \.dot files"):
        dump_files([str(tmp_path / "empty")])


def test_a_dump_of_ten_thousand_nodes_is_read() -> None:
    size = 10_000
    shape = shape_of(plain_dump(["_Z1kv"] * size, [(i, i + 1) for i in range(size - 1)]))
    assert (len(shape.nodes), len(shape.dag.edges), shape.dag.width) == (size, size - 1, 1)
