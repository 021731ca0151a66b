"""GPU work belongs to the range that was open where and when it was launched."""

from pathlib import Path

from nsys_export import Export
from phase_building import CAPTURE, GRAPH_LAUNCH, OWN, against_itself, kernels_by_phase, opened, phase, work

from tracekit.analysis.diff import compare
from tracekit.analysis.results import OUTSIDE
from tracekit.analysis.selection import phases_of


def test_work_belongs_to_the_range_open_when_it_was_launched_not_when_it_ran(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 2000, "first", domain=OWN)
    export.range(2000, 3000, "second", domain=OWN)
    work(export, 1500, 2500)
    work(export, 2000, 5000)
    work(export, 3000, 6000)
    assert kernels_by_phase(opened(export, tmp_path)) == {"first": [2500], "second": [5000], OUTSIDE: [6000]}


def test_all_kernels_of_a_graph_launch_belong_to_its_range(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 2000, "replay", domain=OWN)
    export.range(2000, 9000, "next", domain=OWN)
    correlation = export.launch(1500, 1600, GRAPH_LAUNCH)
    for node in range(5):
        export.kernel(1900 + node * 500, 2300 + node * 500, correlation=correlation, node=node + 1)
    answer = against_itself(export, tmp_path)
    assert (phase(answer, "replay").kernel_rows_a, phase(answer, "replay").launches_a) == (5, 1)
    assert [each.name for each in answer.phases] == ["replay"]


def test_a_thread_without_ranges_takes_those_of_its_process_and_it_is_said(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 2000, "prefill", domain=OWN, tid=1)
    export.range(1000, 9000, "other process", domain=OWN, pid=2)
    work(export, 1500, 1600, tid=77)
    work(export, 2500, 2600, tid=77)
    work(export, 1700, 1800, tid=1)
    trace = opened(export, tmp_path)
    assert kernels_by_phase(trace) == {"prefill": [1600, 1800], OUTSIDE: [2600]}
    assert phases_of(trace).by_process == 1
    codes = {each.code: each.count for each in compare([trace, trace]).warnings}
    assert codes["range_by_process"] == 1


def test_a_thread_with_ranges_keeps_to_its_own(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 9000, "prefill", domain=OWN, tid=1)
    export.range(2000, 3000, "worker", domain=OWN, tid=2)
    work(export, 2500, 2600, tid=2)
    work(export, 3500, 3600, tid=2)
    assert kernels_by_phase(opened(export, tmp_path)) == {"worker": [2600], OUTSIDE: [3600]}


def test_processes_with_the_same_correlation_ids_keep_their_own_ranges(tmp_path: Path) -> None:
    export = Export()
    for pid, name in ((1, "prefill"), (2, "decode")):
        export.range(1000, 2000, name, domain=OWN, pid=pid)
        export.api(1500, 1510, "cudaLaunchKernel_v7000", 5, pid=pid)
        export.kernel(1600 + pid, 1700, pid=pid, correlation=5)
    assert kernels_by_phase(opened(export, tmp_path)) == {"prefill": [1601], "decode": [1602]}


def test_a_runtime_call_and_the_driver_call_inside_it_are_one_launch(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 2000, "prefill", domain=OWN)
    export.api(1990, 2100, "cudaLaunchKernel_v7000", 5)
    export.api(2010, 2090, "cuLaunchKernel", 5)
    export.kernel(2200, 2300, correlation=5)
    trace = opened(export, tmp_path)
    assert kernels_by_phase(trace) == {"prefill": [2200]}


def test_a_kernel_before_its_launch_belongs_to_no_phase_and_it_is_said(tmp_path: Path) -> None:
    export = Export()
    export.range(400, 2000, "prefill", domain=OWN)
    export.api(1000, 1100, GRAPH_LAUNCH, 3)
    export.kernel(500, 600, correlation=3)
    work(export, 1200, 1300)
    trace = opened(export, tmp_path)
    assert kernels_by_phase(trace) == {"prefill": [1300], OUTSIDE: [500]}
    codes = {each.code: each.count for each in compare([trace, trace]).warnings}
    assert codes["before_launch"] == 1


def test_work_without_a_launch_call_is_outside_and_it_is_said(tmp_path: Path) -> None:
    export = Export()
    export.range(400, 2000, "prefill", domain=OWN)
    export.kernel(500, 600, correlation=99)
    export.kernel(700, 800, correlation=None)
    work(export, 1200, 1300)
    trace = opened(export, tmp_path)
    assert kernels_by_phase(trace) == {"prefill": [1300], OUTSIDE: [500, 700]}
    assert phases_of(trace).unlaunched == 2


def test_a_range_around_captured_work_holds_no_gpu_time(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 2000, "capture", domain=OWN)
    export.api(1100, 1110, CAPTURE, 1)
    export.launch(1200, 1210)
    export.api(1300, 1310, "cudaStreamEndCapture_v10000", 2)
    export.range(3000, 4000, "replay", domain=OWN)
    correlation = export.launch(3100, 3200, GRAPH_LAUNCH)
    export.kernel(3300, 3400, correlation=correlation, node=1)
    # Other work of the GPU goes on while a stream is captured.
    export.kernel(1400, 1600, stream=9, correlation=export.launch(900, 910))
    answer = against_itself(export, tmp_path)
    assert {each.name: each.kernel_rows_a for each in answer.phases} == {"replay": 1, OUTSIDE: 1}


def test_thread_ids_are_told_apart_by_process(tmp_path: Path) -> None:
    """The same thread number in two processes is two threads."""
    export = Export()
    export.range(1000, 2000, "one", domain=OWN, pid=1, tid=5)
    work(export, 1500, 1600, pid=2, tid=5)
    work(export, 1700, 1800, pid=1, tid=5)
    assert kernels_by_phase(opened(export, tmp_path)) == {"one": [1800], OUTSIDE: [1600]}
