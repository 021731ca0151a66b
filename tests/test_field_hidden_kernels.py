"""Kernels that a trace does not show: hidden in whole graphs, lost, without timing, in a silent process."""

from pathlib import Path

import pytest
from field_notation import MS, codes, diff_of, info_of, overlap_of, shown, steps, summary_of
from nsys_export import Export

from tracekit.report import json

NODE_GRANULARITY = "--cuda-graph-trace=node"


def opaque(launches: int, visible: int = 10) -> Export:
    """``visible`` kernels of 1,000 ns and ``launches`` graphs of 20,000 ns recorded as a whole."""
    export = Export(graph_mode="Graph")
    for index in range(visible):
        at = MS + index * 30_000
        export.kernel(at + 100, at + 1100, name="dequant", correlation=export.launch(at, at + 50))
    for index in range(launches):
        at = 2 * MS + index * 30_000
        correlation = export.launch(at, at + 5000, "cudaGraphLaunch_v10000")
        export.graph_trace(at + 6000, at + 26_000, correlation)
    return export


def test_kernels_are_not_ranked_when_graphs_hide_nearly_all_gpu_time(tmp_path: Path) -> None:
    answer = summary_of(opaque(launches=50), tmp_path)
    assert answer.recording.opaque_share == pytest.approx(1_000_000 / 1_010_000)
    assert "kernel ranking" in answer.recording.withheld
    assert all(row.share is None for row in answer.kernels)
    assert answer.devices[0].idle_ns is None
    text = shown(answer)
    assert "99.0 %" in text
    assert NODE_GRANULARITY in text
    assert "dequant" not in text


def test_kernels_are_ranked_when_graphs_hide_little(tmp_path: Path) -> None:
    export = opaque(launches=1, visible=10)
    export.kernel(5 * MS, 6 * MS, name="matmul")
    answer = summary_of(export, tmp_path)
    assert answer.recording.opaque_share == pytest.approx(20_000 / 1_030_000)
    assert [row.name for row in answer.kernels] == ["matmul", "dequant"]
    assert NODE_GRANULARITY in shown(answer)


@pytest.mark.parametrize("side", ["a", "b"])
def test_no_kernel_is_called_slower_when_an_arm_hides_its_graphs(tmp_path: Path, side: str) -> None:
    hidden = opaque(launches=50, visible=30)
    seen = Export()
    for index in range(30):
        at = MS + index * 30_000
        seen.kernel(at + 100, at + 2100, name="dequant", correlation=seen.launch(at, at + 50))
    answer = diff_of(*((hidden, seen) if side == "a" else (seen, hidden)), tmp_path)
    assert [row.status for row in answer.kernels] == ["undecided"]
    assert NODE_GRANULARITY in shown(answer)


@pytest.mark.parametrize("executions", [0, 1])
def test_a_trace_of_whole_graphs_without_kernels_is_advised_to_record_nodes(tmp_path: Path, executions: int) -> None:
    export = Export(graph_mode="Graph")
    correlation = export.launch(0, 5000, "cudaGraphLaunch_v10000")
    if executions:
        export.graph_trace(6000, 26_000, correlation)
    for answer in (summary_of(export, tmp_path), overlap_of(export, tmp_path), info_of(export, tmp_path)):
        assert answer.traces[0].granularity == "graph"
        assert answer.traces[0].kernel_rows == 0
        assert NODE_GRANULARITY in shown(answer)


def test_the_recording_option_alone_says_that_graphs_are_whole(tmp_path: Path) -> None:
    export = Export(graph_mode="Graph")
    export.graph_trace(6000, 26_000, None)
    answer = summary_of(export, tmp_path)
    assert answer.traces[0].granularity == "graph"
    assert NODE_GRANULARITY in shown(answer)


TAILS = ["", "_v3020", "_v7000", "_v10000", "_v11060", "_ptsz", "_v7000_ptsz"]
KERNEL_LAUNCHES = [
    "cudaLaunch",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchCooperativeKernelMultiDevice",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLaunchCooperativeKernel",
]
GRAPH_LAUNCHES = ["cudaGraphLaunch", "cuGraphLaunch"]


@pytest.mark.parametrize("tail", TAILS)
def test_calls_that_launch_are_known_by_all_their_names(tmp_path: Path, tail: str) -> None:
    export = Export()
    for index, name in enumerate(KERNEL_LAUNCHES + GRAPH_LAUNCHES):
        export.launch(index * 100, index * 100 + 50, name + tail)
    for index, name in enumerate(["cudaLaunchHostFunc", "cuGraphInstantiate", "cudaGraphUpload", "cuMemAlloc"]):
        export.launch(10_000 + index * 100, 10_050 + index * 100, name + tail)
    export.kernel(20_000, 20_100)
    (process,) = info_of(export, tmp_path).processes
    assert (process.launches, process.graph_launches) == (len(KERNEL_LAUNCHES), len(GRAPH_LAUNCHES))


def test_all_nodes_of_a_graph_are_one_launch(tmp_path: Path) -> None:
    export = Export()
    export.api(0, 500, "cudaGraphLaunch_v10000", 1)
    for node in range(3):
        export.kernel(1000 + node * 100, 1100 + node * 100, correlation=1, node=2 << 32 | node)
    answer = diff_of(export, export, tmp_path)
    assert answer.traces[0].kernel_rows == 3
    assert answer.arms[0].graph_launches == 1
    assert answer.phases[0].launches_a == 1


def test_the_launch_of_a_hundred_nodes_is_charged_once(tmp_path: Path) -> None:
    nodes = [(index * 1000, index * 1000 + 900, 7, "k") for index in range(100)]
    answer = diff_of(steps(nodes, graphs=False), steps(nodes, graphs=True), tmp_path)
    (phase,) = answer.phases
    assert (phase.launches_a, phase.launches_b) == (100, 1)
    assert answer.arms[1].graph_launches == 9


def lossy(owned: list[int], expected: int = 12) -> Export:
    """Launches of one executable of which launch ``i`` has ``owned[i]`` of its kernels, two at once, on record."""
    export = Export()
    for index, count in enumerate(owned):
        at = MS + index * MS
        correlation = export.launch(at, at + 5000, "cudaGraphLaunch_v10000")
        for node in range(expected)[:count]:
            start = at + 10_000 + node // 2 * 60_000
            export.kernel(start, start + 50_000, node % 2, correlation=correlation, node=2 << 32 | node)
    return export


@pytest.mark.parametrize(
    ("owned", "coverage"),
    [([12] + [0] * 9, 0.1), ([12] * 5 + [6] * 5, 0.75), ([0] * 4 + [12], 0.2)],
)
def test_lost_records_leave_medians_and_withhold_sums(tmp_path: Path, owned: list[int], coverage: float) -> None:
    export = lossy(owned)
    answer = summary_of(export, tmp_path)
    assert answer.recording.launch_coverage == pytest.approx(coverage)
    assert {"sums", "idle", "overlap"} <= set(answer.recording.withheld)
    (kernel,) = answer.kernels
    assert kernel.median_ns == 50_000
    assert (kernel.total_ns, kernel.share, kernel.overlapped_fraction) == (None, None, None)
    assert (answer.devices[0].idle_ns, answer.devices[0].overlapped_ns) == (None, None)
    assert codes(answer)["lost_records"] == sum(count < 12 for count in owned)
    assert f"{coverage * 100:.1f} %" in shown(answer)


def test_complete_records_withhold_nothing(tmp_path: Path) -> None:
    answer = summary_of(lossy([12] * 10), tmp_path)
    assert answer.recording.launch_coverage == 1
    assert not answer.recording.withheld
    assert answer.kernels[0].total_ns == 120 * 50_000


def test_a_failed_launch_owes_no_kernels(tmp_path: Path) -> None:
    export = lossy([12] * 3)
    export.api(50 * MS, 50 * MS + 100, "cudaGraphLaunch_v10000", 77, result=700)
    assert summary_of(export, tmp_path).recording.launch_coverage == 1


def test_lost_records_withhold_overlap_in_every_command(tmp_path: Path) -> None:
    export = lossy([12] + [0] * 9)
    answer = overlap_of(export, tmp_path)
    (device,) = answer.devices
    assert "lost_records" in codes(answer)
    assert (device.overlapped_ns, device.stream_overlap_ns, answer.episodes.gain_ns) == (None, None, None)
    (phase,) = diff_of(export, lossy([12] * 10), tmp_path).phases
    assert (phase.overlapped_ns_a, phase.idle_ns_a, phase.overlap_gain_ns_a) == (None, None, None)
    assert phase.overlapped_ns_b == 60 * 50_000


def test_lost_records_withhold_the_overlap_of_streams_and_kernels(tmp_path: Path) -> None:
    answer = overlap_of(lossy([12] + [0] * 9), tmp_path)
    assert "300000" not in json.render(answer)


def test_phases_without_their_kernels_decide_nothing(tmp_path: Path) -> None:
    """Half of a graph's kernels missing makes every step look shorter."""
    nodes = [(index * 100_000, index * 100_000 + 90_000, 7, f"k{index}") for index in range(6)]
    whole = steps(nodes, graphs=True)
    lost = Export()
    for index in range(9):
        at = MS + index * 20 * MS
        correlation = lost.launch(at, at + 500, "cudaGraphLaunch_v10000")
        for node in range(3 if index else 6):
            start = at + 1000 + node * 100_000
            lost.kernel(start, start + 90_000, name=f"k{node}", correlation=correlation, node=2 << 32 | node)
        lost.range(at, at + 10 * MS, "step", domain="tracekit")
    answer = diff_of(whole, lost, tmp_path)
    assert "lost_records" in codes(answer)
    assert answer.verdict.winner == "undecided"


def test_a_process_that_launches_and_shows_no_kernel_is_named(tmp_path: Path) -> None:
    export = Export()
    for index in range(100):
        export.launch(index * 100, index * 100 + 50, pid=2)
    for index in range(5):
        at = index * 10_000
        export.kernel(at + 100, at + 200, correlation=export.launch(at, at + 50, pid=1), pid=1)
    for answer in (summary_of(export, tmp_path), info_of(export, tmp_path), diff_of(export, export, tmp_path)):
        (warning, *_) = [each for each in answer.warnings if each.code == "process_without_kernels"]
        assert warning.count == 100
        assert "process 2 " in shown(answer)
        assert "process 1 " not in shown(answer)


def test_no_timing_is_not_fast(tmp_path: Path) -> None:
    timed, untimed = Export(), Export()
    for index in range(20):
        at = MS + index * 1000
        timed.kernel(at, at + 500, name="k")
        untimed.kernel(at, at, name="k")
    answer = summary_of(untimed, tmp_path)
    assert "no timing" in shown(answer)
    assert codes(answer)["zero_length"] == 20
    for one, other in ((timed, untimed), (untimed, timed), (untimed, untimed)):
        compared = diff_of(one, other, tmp_path)
        (row,) = compared.kernels
        assert (row.ratio, row.ci95, row.status) == (None, None, "undecided")
        assert row.note is not None
        assert "no timing" in row.note
        assert compared.verdict.winner == "undecided"
