"""Which launch ``tracekit repro`` takes, and its nodes and edges as they are rebuilt."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nsys_export import Export
from repro_building import BLOCKS, COPY_ALONE, EDGES, GEMM_ALONE, IN_ORDER, LOST, TOGETHER, UNIT, US, plant

from tracekit.errors import UnusableInput, WrongUsage
from tracekit.graph.dag import Dag
from tracekit.graph.dumps import read_dumps
from tracekit.repro.arrange import arranged, child_graphs
from tracekit.repro.kinds import stand_in
from tracekit.repro.model import Repro
from tracekit.repro.planning import plan_repro
from tracekit.trace.source import open_trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"


def plan(
    trace: Path, *dumps: Path, baseline: Path | None = None, launch: int | None = None, phase: str | None = None
) -> Repro:
    with open_trace(str(trace), cached=False) as opened:
        if baseline is None:
            return plan_repro(opened, None, read_dumps([str(dump) for dump in dumps]), launch, phase)
        with open_trace(str(baseline), cached=False) as eager:
            return plan_repro(opened, eager, read_dumps([str(dump) for dump in dumps]), launch, phase)


def test_the_launch_that_lost_most_is_taken_and_its_loss_is_exact(tmp_path: Path) -> None:
    made = plan(*plant(tmp_path))
    assert (made.launch, made.launches, made.slower_launches) == (2, 3, 3)
    assert (made.loss.wall_ns, made.loss.solo_ns) == (TOGETHER + 50 * US, GEMM_ALONE + COPY_ALONE)
    assert made.loss.lost_ns == LOST + 50 * US
    assert made.median_lost_ns == LOST
    assert "lost most" in made.chosen and "200 us" in made.chosen


def test_what_gained_least_is_taken_where_every_launch_gained() -> None:
    on, off = (SAMPLES / f"three-at-once-graphs-{arm}.sqlite" for arm in ("on", "off"))
    made = plan(on, baseline=off)
    lost = made.loss.lost_ns
    assert lost is not None and made.median_lost_ns is not None and made.median_lost_ns < lost < 0
    assert (made.slower_launches, made.known_launches) == (0, 8)
    assert "gained least" in made.chosen


def test_work_on_different_devices_is_not_side_by_side(tmp_path: Path) -> None:
    export = Export()
    for device in range(2):
        export.kernel(1000 * US, 1100 * US, name="k", device=device, node=UNIT + device, correlation=1)
    assert plan(export.write(tmp_path / "two.sqlite")).loss.side_by_side_ns == 0


def test_a_launch_asked_for_is_taken(tmp_path: Path) -> None:
    made = plan(*plant(tmp_path), launch=3)
    assert (made.launch, made.loss.lost_ns) == (3, LOST)
    with pytest.raises(WrongUsage, match="launches 1 to 3"):
        plan(*plant(tmp_path), launch=4)


def test_a_phase_narrows_the_choice() -> None:
    on, off = SAMPLES / "gbx-graphs-on.sqlite", SAMPLES / "gbx-graphs-off.sqlite"
    prefill, decode = (plan(on, baseline=off, phase=phase) for phase in ("prefill", "decode"))
    assert len(prefill.nodes) == 25
    assert len(decode.nodes) < 25
    assert (decode.phase, "in phase decode" in decode.chosen) == ("decode", True)
    with pytest.raises(WrongUsage, match="no phase 'train'"):
        plan(on, phase="train")


def test_where_no_solo_duration_is_known_the_longest_launch_is_taken_and_no_loss_is_claimed() -> None:
    made = plan(SAMPLES / "three-at-once-graphs-on.sqlite")
    assert "took longest" in made.chosen
    assert (made.loss.lost_ns, made.loss.coverage, made.median_lost_ns) == (None, 0.0, None)
    assert made.loss.side_by_side_ns > 0


def test_every_kind_of_node_is_kept_with_the_dumps_edges(tmp_path: Path) -> None:
    made = plan(*plant(tmp_path))
    assert [node.name for node in made.nodes] == IN_ORDER
    assert made.edges == EDGES
    assert [node.kind for node in made.nodes if node.kernel is None] == ["empty", "memcpy", "host", "memset"]
    children = {node.name: node.child for node in made.nodes}
    assert children["softmax_c0"] == children["softmax_c1"] is not None
    assert [name for name, child in children.items() if child is None] == [
        name for name in IN_ORDER if not name.startswith("softmax")
    ]
    assert made.order == "dump"


def test_launch_configurations_registers_and_sizes_are_the_traced_ones(tmp_path: Path) -> None:
    nodes = {node.name: node for node in plan(*plant(tmp_path)).nodes}
    gemm, copy = nodes["gemm_a"].kernel, nodes["copy_b"].kernel
    assert gemm is not None and copy is not None
    assert (gemm.grid, gemm.block, gemm.cluster) == ((48, 1, 1), (128, 1, 1), (2, 1, 1))
    assert (gemm.dynamic_smem, gemm.registers, gemm.static_smem) == (65536, 128, 0)
    assert (copy.cluster, copy.registers, copy.static_smem) == ((1, 1, 1), 20, 4224)
    assert (gemm.body, copy.body) == ("matmul", "copy")
    assert (nodes["memcpy"].bytes, nodes["memcpy"].copy_kind, nodes["memset"].bytes) == (4096, 1, 2048)
    assert [nodes[name].stream for name in ("gemm_a", "copy_b", "add_d")] == [0, 1, 0]
    assert (nodes["copy_b"].solo_ns, nodes["add_d"].solo_ns) == (COPY_ALONE, 40 * US)


def test_without_a_dump_edges_are_inferred_and_it_is_said(tmp_path: Path) -> None:
    made = plan(plant(tmp_path).trace)
    assert made.order == "inferred"
    assert [node.kind for node in made.nodes].count("kernel") == len(BLOCKS)
    number = {node.name: i for i, node in enumerate(made.nodes)}
    assert (number["gemm_a"], number["softmax_c0"]) in made.edges
    assert (number["gemm_a"], number["copy_b"]) not in made.edges
    assert any("inferred" in note and "3 launches" in note for note in made.notes)


def test_registers_that_are_not_recorded_are_unknown_and_not_zero(tmp_path: Path) -> None:
    made = plan(*plant(tmp_path, registers=False))
    assert {node.kernel.registers for node in made.nodes if node.kernel} == {None}
    assert any("registers of 5 kernels are not recorded" in note for note in made.notes)


def test_a_trace_without_graph_nodes_is_refused_with_what_to_record() -> None:
    with pytest.raises(UnusableInput, match="record the run with graphs on"):
        plan(SAMPLES / "gbx-graphs-off.sqlite")
    with pytest.raises(UnusableInput, match="cuda-graph-trace=node"):
        plan(SAMPLES / "granularity-graph.sqlite")


@pytest.mark.parametrize(
    ("grid", "block"), [((0, 1, 1), (32, 1, 1)), ((1, 70_000, 1), (32, 1, 1)), ((1, 1, 1), (64, 32, 1))]
)
def test_a_launch_that_no_gpu_takes_is_refused(
    grid: tuple[int, int, int], block: tuple[int, int, int], tmp_path: Path
) -> None:
    export = Export()
    export.kernel(1000, 2000, name="k", grid=grid, block=block, node=UNIT, correlation=1)
    with pytest.raises(UnusableInput, match="kernel k"):
        plan(export.write(tmp_path / "odd.sqlite"))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("qmm_sm80", "matmul"), ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "matmul"), ("sdpa_full", "matmul"),
        ("qmv", "matvec"), ("sdpa_vector", "matvec"), ("gemv2T_kernel_val", "matvec"), ("copy_gg_nd", "copy"),
        ("rms_norm", "reduce"), ("arg_reduce_general", "reduce"), ("binary_two", "elementwise"), ("", "elementwise"),
    ],
)  # fmt: skip
def test_a_stand_in_is_of_the_kernels_kind(name: str, body: str) -> None:
    assert stand_in(name).body == body


def test_a_child_graph_ordered_by_its_parts_is_put_in_place() -> None:
    # 0 -> 1 -> 2 -> 3 with 1 and 2 in the child; 4 waits for 1 alone, which no node for the whole child can say.
    graphs = [0, 1, 1, 0, 0]
    assert child_graphs(graphs, Dag.of(5, [(0, 1), (1, 2), (2, 3)])) == ([None, 1, 1, None, None], 0)
    assert child_graphs(graphs, Dag.of(5, [(0, 1), (1, 2), (2, 3), (1, 4)])) == ([None] * 5, 1)


@settings(deadline=None)
@given(st.data())
def test_every_edge_leads_onward_and_child_graphs_stay_together(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] < pair[1])
    mixed = data.draw(st.permutations(range(size)))
    edges = [(mixed[one], mixed[other]) for one, other in data.draw(st.lists(pairs, max_size=20))] if size > 1 else []
    dag = Dag.of(size, edges)
    graphs = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    starts = data.draw(st.lists(st.integers(-1, 5), min_size=size, max_size=size))
    children, _ = child_graphs(graphs, dag)
    order = arranged(dag, starts, children)
    place = np.argsort(order)
    assert sorted(order) == list(range(size))
    assert all(place[one] < place[other] for one, other in dag.edges.tolist())
    for child in {child for child in children if child is not None}:
        places = sorted(place[node] for node in range(size) if children[node] == child)
        assert places == list(range(places[0], places[0] + len(places)))
