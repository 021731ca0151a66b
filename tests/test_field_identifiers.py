"""Ids that repeat: correlation ids of several processes and reports, node ids of a graph and its copies."""

from pathlib import Path

import pytest
from conftest import Run
from field_notation import LEAD, MS, Kernel, codes, diff_of, eager, graph, info_of, overlap_of, shown, steps, summary_of
from nsys_export import Export


def two_processes(device_of_second: int) -> Export:
    export = Export()
    for pid, device in ((1, 0), (2, device_of_second)):
        export.api(MS, MS + 10, "cudaLaunchKernel_v7000", 5, pid=pid)
        export.kernel(MS + 100 * pid, MS + 100 * pid + 50, device=device, correlation=5, pid=pid)
        export.range(MS - 10, MS + 20, f"work of {'one' if pid == 1 else 'the other'}", pid=pid)
    return export


@pytest.mark.parametrize("device", [0, 1])
def test_correlation_ids_belong_to_their_process(tmp_path: Path, device: int) -> None:
    export = two_processes(device)
    (kernel,) = summary_of(export, tmp_path).kernels
    assert (kernel.count, kernel.total_ns) == (2, 100)
    answer = info_of(export, tmp_path)
    assert [(each.process, each.kernel_rows, each.launches) for each in answer.processes] == [(1, 1, 1), (2, 1, 1)]
    assert {(each.name, each.kernel_rows) for each in answer.phases} == {("work of one", 1), ("work of the other", 1)}
    assert [phase.launches_a for phase in diff_of(export, export, tmp_path, warm_up=0).phases] == [1, 1]


def test_a_graph_launch_in_one_process_owns_no_kernels_of_another(tmp_path: Path) -> None:
    export = Export()
    for pid in (1, 2):
        export.api(MS, MS + 10, "cudaGraphLaunch_v10000", 5, pid=pid)
        for node in range(3):
            start = 2 * MS + node * 100
            export.kernel(start, start + 50, device=pid - 1, correlation=5, node=2 << 32 | node, pid=pid)
    answer = diff_of(export, export, tmp_path)
    assert answer.arms[0].graph_launches == 2
    assert summary_of(export, tmp_path).recording.launch_coverage == 1


def moved(by: int, correlations: int) -> Export:
    """Nine steps of two kernels; the same work at another time of day and with other ids."""
    export = Export()
    for index in range(9):
        at = MS + by + index * 100_000
        for part in range(2):
            correlation = correlations + 2 * index + part
            export.api(at + part, at + part + 1, "cudaLaunchKernel_v7000", correlation)
            start = at + 1000 + part * 10_000
            export.kernel(start, start + 9_000 + index, name=f"k{part}", correlation=correlation)
        export.range(at, at + 50_000, "step", domain="tracekit")
    return export


@pytest.mark.parametrize(("by", "correlations"), [(0, 1), (10**15, 1), (0, 900), (10**15, 3), (3_000_000, 7)])
def test_two_traces_share_neither_clock_nor_ids(tmp_path: Path, by: int, correlations: int) -> None:
    answer = diff_of(moved(0, 1), moved(by, correlations), tmp_path)
    assert [row.ratio for row in answer.kernels] == [1, 1]
    (phase,) = answer.phases
    assert (phase.ratio, phase.kernel_rows_a, phase.kernel_rows_b) == (1, 18, 18)
    assert phase.overlapped_ns_b == 0
    baseline = overlap_of(moved(0, 1), tmp_path, moved(by, correlations))
    assert baseline.devices[0].overlapped_ns == 0
    assert baseline.episodes.count == 0


def nodes_of_layers(*, names_repeated: bool = True, looped: bool = False) -> Export:
    """Node 1 is created in range layer0, copied to 11 and 21, of which 21 is replayed."""
    export = Export()
    export.range(100, 120, "layer0")
    export.graph_node(110, 1)
    export.graph_node(131, 11, 1)
    export.graph_node(140, 21, 11)
    if names_repeated:
        export.graph_node(131, 11)
        export.graph_node(140, 21)
    if looped:
        export.graph_node(150, 11, 21)
    for index in range(7):
        at = 1000 + index * 1000
        correlation = export.launch(at, at + 50, "cudaGraphLaunch_v10000")
        export.kernel(at + 100, at + 200, correlation=correlation, node=21)
    return export


@pytest.mark.parametrize("looped", [False, True])
def test_node_events_listed_twice_double_no_kernel(tmp_path: Path, looped: bool) -> None:
    export = nodes_of_layers(looped=looped)
    (kernel,) = summary_of(export, tmp_path).kernels
    assert (kernel.count, kernel.graph_count, kernel.total_ns) == (7, 7, 700)
    answer = diff_of(export, export, tmp_path)
    assert [(row.count_a, row.count_b) for row in answer.kernels] == [(7, 7)]
    assert info_of(export, tmp_path).traces[0].graph_kernel_rows == 7


@pytest.mark.parametrize("names_repeated", [False, True])
def test_a_replayed_node_leads_to_the_range_in_which_its_original_was_created(
    tmp_path: Path, run: Run, names_repeated: bool
) -> None:
    path = nodes_of_layers(names_repeated=names_repeated).write(tmp_path / "layers.sqlite")
    ran = run("summary", path, "--by", "operator", "--format", "csv")
    assert ran.code == 0
    assert "layer0" in ran.out
    assert ",7," in ran.out


def test_nodes_that_are_copies_of_each_other_are_said_and_end(tmp_path: Path, run: Run) -> None:
    path = nodes_of_layers(looped=True).write(tmp_path / "loop.sqlite")
    ran = run("summary", path, "--by", "operator")
    assert ran.code in (0, 3)
    assert "each other" in ran.out + ran.err or "loop" in ran.out + ran.err or "cycle" in ran.out + ran.err


def test_an_updated_executable_replays_the_operator_of_its_last_update(tmp_path: Path, run: Run) -> None:
    """An executable is built for matmul A, then updated with a graph of the same form that runs matmul B."""
    export = Export()
    for index, layer in enumerate("AB"):
        at = index * 10_000
        export.range(at, at + 1000, f"Matmul{layer}::eval_gpu")
        export.graph_node(at + 500, (index + 1) << 32)
        if index == 0:
            export.graph_event(at + 1500, 1, executable=9)
            export.graph_node(at + 1500, 9 << 32)
            export.graph_node(at + 1501, 9 << 32, 1 << 32)
        else:
            export.api(at + 1500, at + 1600, "cudaGraphExecUpdate_v10020", 70 + index)
        correlation = export.launch(at + 2000, at + 2100, "cudaGraphLaunch_v10000")
        export.kernel(at + 3000, at + 4000, correlation=correlation, node=9 << 32, graph=9)
    path = export.write(tmp_path / "updated.sqlite")
    rows = run("summary", path, "--by", "operator", "--format", "csv").out.splitlines()
    assert sum("MatmulA" in row for row in rows) == sum("MatmulB" in row for row in rows) == 1


@pytest.mark.parametrize("name", ["cudaGraphLaunch_v10000", "cudaLaunchKernel_v7000"])
def test_a_kernel_that_starts_before_its_launch_is_flagged_and_belongs_to_no_phase(tmp_path: Path, name: str) -> None:
    export = Export()
    export.kernel(500, 600, correlation=3, node=2 << 32 if "Graph" in name else None)
    export.api(1000, 1100, name, 3)
    export.range(900, 1200, "step", domain="tracekit")
    eager(export, 1110, [(0, 100, 7, "sound")])
    answer = info_of(export, tmp_path)
    assert codes(answer)["before_launch"] == 1
    assert {(each.name, each.kernel_rows) for each in answer.phases} == {("step", 1), ("(outside)", 1)}
    for each in (answer, summary_of(export, tmp_path), diff_of(export, export, tmp_path)):
        assert "1 kernels start before the call" in shown(each)


def test_a_kernel_that_starts_with_its_launch_is_sound(tmp_path: Path) -> None:
    export = Export()
    export.api(1000, 1100, "cudaLaunchKernel_v7000", 3)
    export.kernel(1000, 1200, correlation=3)
    assert codes(summary_of(export, tmp_path)) == {}


def test_kernels_without_correlation_are_counted_and_lie_outside(tmp_path: Path) -> None:
    export = steps([(0, 1000, 7, "k")], graphs=False)
    export.kernel(90 * MS, 90 * MS + 1000, name="stray")
    answer = info_of(export, tmp_path)
    assert {(each.name, each.kernel_rows) for each in answer.phases} == {("step", 9), ("(outside)", 1)}


def test_a_range_around_capture_has_no_gpu_time(tmp_path: Path) -> None:
    kernels: list[Kernel] = [(0, 20_000, 7, "k"), (20_000, 50_000, 7, "k")]
    export = Export()
    export.range(MS, MS + 80_000, "capture")
    export.api(MS + 10, MS + 20, "cudaStreamBeginCapture_v10000", 1)
    for index in range(2):
        export.api(MS + 100 + index * 10, MS + 105 + index * 10, "cudaLaunchKernel_v7000", 2 + index)
        export.graph_node(MS + 102 + index * 10, 1 << 32 | index)
    export.api(MS + 200, MS + 210, "cudaStreamEndCapture_v10000", 9)
    export.range(2 * MS, 2 * MS + 80_000, "replay")
    graph(export, 2 * MS + 10, kernels)
    answer = info_of(export, tmp_path)
    assert [(each.name, each.kernel_rows, each.kernel_ns) for each in answer.phases] == [("replay", 2, 50_000)]


def test_gpu_work_that_runs_during_a_range_but_was_launched_before_is_not_the_ranges(tmp_path: Path) -> None:
    export = Export()
    export.range(MS, MS + 5_000, "launch")
    eager(export, MS, [(10_000, 60_000, 7, "k")])
    export.range(MS + 10_000, MS + 70_000 + LEAD, "capture")
    export.api(MS + 10_010, MS + 10_020, "cudaStreamBeginCapture_v10000", 1)
    answer = info_of(export, tmp_path)
    assert [(each.name, each.kernel_ns) for each in answer.phases] == [("launch", 50_000)]
