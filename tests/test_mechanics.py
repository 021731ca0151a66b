"""Per phase instance: how often each kind of call is made and what it takes, what the graphs hold, and host work."""

from pathlib import Path

import msgspec
import pytest
from field_notation import diff_of, shown
from nsys_export import Export

from tracekit.analysis.results import Diff, Mechanics
from tracekit.trace.calls import role_of

US = 1_000
STEP = 1_000 * US
UPDATE = "cudaGraphExecUpdate_v10020"
INSTANTIATE = "cudaGraphInstantiate_v12000"
ADD_NODE = "cudaGraphAddKernelNode_v10000"
GRAPH_LAUNCH = "cudaGraphLaunch_v10000"


def mechanics(answer: Diff, arm: str = "a", phase: str = "step") -> Mechanics:
    (found,) = (row for row in answer.mechanics if (row.arm, row.phase) == (arm, phase))
    return found


def of_both(export: Export, folder: Path, *, warm_up: int = 0) -> Mechanics:
    """Those of the export, compared with itself."""
    path = export.write(folder / "trace.sqlite")
    answer = diff_of(path, path, folder, warm_up=warm_up)
    assert mechanics(answer, "a") == msgspec.structs.replace(mechanics(answer, "b"), arm="a")
    return mechanics(answer)


def step(export: Export, index: int) -> int:
    """A range of domain tracekit right after the one before; where it starts. The first has no period."""
    at = STEP * (index + 1)
    export.range(at, at + STEP, "step", domain="tracekit")
    return at


def graph(export: Export, at: int, start: int, nodes: int, executable: int, time: int = 10 * US) -> None:
    """A graph launch of 5 us whose nodes run one right after the other from ``start`` on."""
    correlation = export.launch(at, at + 5 * US, GRAPH_LAUNCH)
    for node in range(nodes):
        begin = start + node * time
        export.kernel(begin, begin + time, correlation=correlation, node=executable << 32 | node + 1, graph=1)


def test_host_work_without_any_call_is_told_apart_from_instantiating(tmp_path: Path) -> None:
    """An API-time profile would blame instantiation: 100 us of the 105 us in calls; yet the host works for 780 us."""
    export = Export()
    for index in range(7):
        at = step(export, index)
        export.api(at + 780 * US, at + 880 * US, INSTANTIATE)
        correlation = export.launch(at + 880 * US, at + 885 * US, GRAPH_LAUNCH)
        export.kernel(at + 885 * US, at + STEP, correlation=correlation, node=3 << 32 | 1, graph=1)
    found = of_both(export, tmp_path)
    assert found.time_ns == STEP
    assert found.host_ns == 780 * US
    assert found.api_ns == {"graph launch": 5 * US, "instantiate": 100 * US}
    assert (found.host_work_ns, found.setup_ns, found.launch_bound_ns) == (780 * US, 100 * US, 5 * US)
    assert (found.gaps_ns, found.unattributed_ns, found.idle_ns) == (0, 0, 885 * US)


def test_a_person_reads_the_share_of_host_work(tmp_path: Path) -> None:
    export = Export()
    for index in range(7):
        at = step(export, index)
        correlation = export.launch(at + 780 * US, at + 790 * US, GRAPH_LAUNCH)
        export.kernel(at + 790 * US, at + STEP, correlation=correlation, node=3 << 32 | 1, graph=1)
    path = export.write(tmp_path / "trace.sqlite")
    assert "780 us (78 %)" in shown(diff_of(path, path, tmp_path))


def test_calls_nodes_and_executables_are_counted_for_each_instance(tmp_path: Path) -> None:
    """Every step adds nodes, updates one executable and instantiates another, which every other step launches."""
    export = Export()
    for index in range(9):
        at = step(export, index)
        for node in range(4):
            export.api(at + node * US, at + node * US + 500, ADD_NODE)
        export.api(at + 10 * US, at + 30 * US, UPDATE)
        graph(export, at + 30 * US, at + 40 * US, nodes=4, executable=7)
        export.api(at + 100 * US, at + 160 * US, INSTANTIATE)
        if index % 2:
            graph(export, at + 160 * US, at + 170 * US, nodes=6, executable=8 + index)
    found = of_both(export, tmp_path)
    assert found.instances == 8
    assert (found.graph_launches, found.updates, found.instantiations, found.launches) == (1.5, 1, 1, 0)
    assert found.api_calls == {"graph build": 4, "graph launch": 1.5, "graph update": 1, "instantiate": 1}
    assert found.api_ns == {
        "graph build": 4 * 500,
        "graph launch": 1.5 * 5 * US,
        "graph update": 20 * US,
        "instantiate": 60 * US,
    }
    assert found.nodes_per_launch == {"4": 8, "6": 4}
    assert found.executables == 5


def test_copies_inside_a_graph_are_nodes_of_it(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        at = step(export, index)
        graph(export, at, at + 10 * US, nodes=2, executable=7)
        correlation = export.launch(at + 500 * US, at + 505 * US, GRAPH_LAUNCH)
        export.kernel(at + 510 * US, at + 520 * US, correlation=correlation, node=8 << 32 | 1, graph=1)
        export.memcpy(at + 520 * US, at + 530 * US, correlation=correlation, node=8 << 32 | 2)
        export.memset(at + 530 * US, at + 540 * US, correlation=correlation, node=8 << 32 | 3)
    assert of_both(export, tmp_path).nodes_per_launch == {"2": 5, "3": 5}


def test_setting_up_once_is_warm_up_and_not_counted(tmp_path: Path) -> None:
    export = Export()
    for index in range(5):
        at = step(export, index)
        if index == 0:
            export.api(at, at + 500 * US, INSTANTIATE)
        graph(export, at + 500 * US, at + 510 * US, nodes=2, executable=7)
    found = of_both(export, tmp_path, warm_up=1)
    assert (found.instances, found.instantiations, found.setup_ns) == (4, 0, 0)


def test_setting_up_in_every_instance_is_a_steady_cost(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        at = step(export, index)
        export.api(at, at + 200 * US, INSTANTIATE)
        graph(export, at + 200 * US, at + 210 * US, nodes=2, executable=7)
    found = of_both(export, tmp_path, warm_up=1)
    assert (found.instances, found.instantiations, found.api_ns) == (
        5,
        1,
        {"graph launch": 5 * US, "instantiate": 200 * US},
    )


def test_an_eager_arm_may_launch_graphs_too(tmp_path: Path) -> None:
    """Captured child graphs are still launched with graphs off."""
    export = Export()
    for index in range(6):
        at = step(export, index)
        for launch in range(30):
            begin = at + launch * 12 * US
            correlation = export.launch(begin, begin + 2 * US)
            export.kernel(begin + 2 * US, begin + 12 * US, correlation=correlation)
        export.api(at + 400 * US, at + 410 * US, "cudaStreamBeginCapture_v10000")
        export.api(at + 410 * US, at + 420 * US, "cudaStreamEndCapture_v10000")
        graph(export, at + 420 * US, at + 430 * US, nodes=1, executable=7)
    path = export.write(tmp_path / "trace.sqlite")
    answer = diff_of(path, path, tmp_path, warm_up=0)
    assert answer.arms[0].role == "eager"
    found = mechanics(answer)
    assert (found.launches, found.graph_launches, found.captures, found.instantiations) == (30, 1, 1, 0)


def test_failed_calls_cost_time_but_launch_nothing(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        at = step(export, index)
        export.api(at, at + 20 * US, UPDATE, result=910)
        export.api(at + 20 * US, at + 60 * US, INSTANTIATE)
        graph(export, at + 60 * US, at + 70 * US, nodes=2, executable=7 + index)
    found = of_both(export, tmp_path)
    assert (found.updates, found.instantiations) == (0, 1)
    assert found.api_ns is not None
    assert found.api_ns["graph update"] == 20 * US


def test_calls_of_a_thread_without_ranges_count_for_the_phase_of_its_process(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        at = step(export, index)
        export.api(at, at + 20 * US, UPDATE, tid=5)
        correlation = export.launch(at + 20 * US, at + 25 * US, GRAPH_LAUNCH, tid=5)
        export.kernel(at + 25 * US, at + 50 * US, correlation=correlation, node=7 << 32 | 1, graph=1)
    found = of_both(export, tmp_path)
    assert (found.graph_launches, found.updates) == (1, 1)


def test_graphs_recorded_whole_hide_their_nodes_and_idle_time(tmp_path: Path) -> None:
    export = Export(graph_mode="Graph")
    for index in range(6):
        at = step(export, index)
        correlation = export.launch(at, at + 5 * US, GRAPH_LAUNCH)
        export.graph_trace(at + 10 * US, at + 900 * US, correlation, executable=3)
    found = of_both(export, tmp_path)
    assert (found.graph_launches, found.executables) == (1, 1)
    assert (found.nodes_per_launch, found.idle_ns, found.gaps_ns) == (None, None, None)


def test_what_lost_records_spoil_is_not_given(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        at = step(export, index)
        graph(export, at, at + 10 * US, nodes=4 if index % 2 else 1, executable=7)
    found = of_both(export, tmp_path)
    assert (found.graph_launches, found.api_ns) == (1, {"graph launch": 5 * US})
    assert (found.nodes_per_launch, found.executables, found.host_ns, found.idle_ns) == (None, None, None, None)


def test_without_recorded_calls_nothing_is_said_of_them(tmp_path: Path) -> None:
    export = Export()
    for index in range(6):
        export.kernel(STEP * (index + 1), STEP * (index + 1) + 10 * US)
    path = export.write(tmp_path / "trace.sqlite")
    found = mechanics(diff_of(path, path, tmp_path), phase="(all)")
    assert (found.launches, found.api_ns, found.host_ns, found.gaps_ns) == (None, None, None, None)
    assert found.idle_ns == 5 * (STEP - 10 * US)


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("launch", "cudaLaunch_v3020 cudaLaunchKernel_ptsz_v7000 cudaLaunchCooperativeKernel_v9000 cuLaunchKernelEx"),
        ("graph launch", "cudaGraphLaunch_v10000 cuGraphLaunch_ptsz"),
        (
            "instantiate",
            "cudaGraphInstantiate_v12000 cudaGraphInstantiateWithFlags_v11040 cuGraphInstantiateWithParams",
        ),
        ("graph update", "cudaGraphExecUpdate_v10020 cuGraphExecUpdate_v2 cudaGraphExecKernelNodeSetParams_v10010"),
        ("graph build", "cudaGraphAddKernelNode_v10000 cudaGraphAddDependencies_v10000 cuGraphAddNode cudaGraphCreate"),
        ("graph build", "cudaGraphClone_v10000 cudaGraphKernelNodeSetParams_v10000"),
        ("capture", "cudaStreamBeginCapture_v10000 cuStreamBeginCapture_v2 cudaStreamBeginCaptureToGraph_v12030"),
        ("end of capture", "cudaStreamEndCapture_v10000"),
        ("setup", "cuModuleLoadData cuModuleLoadFatBinary cuLibraryLoadData cuLinkComplete"),
        ("copy", "cudaMemcpyAsync_v3020 cuMemcpyHtoDAsync_v2 cudaMemset_v3020 cuMemsetD32Async cudaMemPrefetchAsync"),
        ("memory", "cudaMalloc_v3020 cudaFreeAsync_v11020 cuMemAlloc_v2 cuMemFreeAsync cudaHostAlloc_v3020"),
        ("wait", "cudaStreamSynchronize_v3020 cuCtxSynchronize cudaDeviceSynchronize_v3020 cuEventSynchronize"),
        ("other", "cudaLaunchHostFunc_v10000 cudaEventRecord_v3020 cudaStreamIsCapturing_v10000 cuStreamCreate"),
        ("other", "cudaGraphDestroy_v10000 cudaGraphGetNodes_v10000 cudaMemGetInfo_v3020 cuMemGetInfo_v2"),
    ],
)
def test_the_kind_of_a_call_is_told_by_its_name(role: str, names: str) -> None:
    assert {name: role_of(name) for name in names.split()} == dict.fromkeys(names.split(), role)
