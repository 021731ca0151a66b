"""The unmodified program of a bundle on a stand-in for the CUDA runtime with a virtual clock.

It shows what the host does: nodes, edges, order, modes, search, output and errors. Its times say nothing of a GPU.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cuda_tools
import msgspec
import pytest
from repro_building import BLOCKS, EDGES, IN_ORDER, plant

from tracekit.commands.repro import repro as command
from tracekit.repro.bundle import PLAN, Expected
from tracekit.repro.verify import read_results, verify

SAMPLES = Path(__file__).parents[1] / "sample_traces"
KERNELS = [i for i, name in enumerate(IN_ORDER) if name in BLOCKS]
SIMPLE = ("--runs", "5", "--warm-up", "1")


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended: exit code, what it said, results and what the runtime was asked to do."""

    code: int
    out: str
    err: str
    results: Any
    log: list[list[str]]

    @property
    def graphs(self) -> list[list[dict[str, Any]]]:
        """The instantiated graphs: their nodes with kind, node of the trace and places that they wait for."""
        graphs: list[list[dict[str, Any]]] = []
        for words in self.log:
            if words[0] == "graph":
                graphs.append([])
            elif words[0] == "node":
                fields = dict(zip(words[5:13:2], map(int, words[6:13:2]), strict=True))
                after = list(map(int, words[14:]))
                graphs[-1].append(
                    {"depth": int(words[1]), "kind": words[3], "node": int(words[4]), "after": after} | fields
                )
        return graphs


class Program:
    """A bundle's program and where it runs."""

    def __init__(self, bundle: Path, folder: Path) -> None:
        self._program = cuda_tools.program(bundle / "repro.cu")
        self._runtime = cuda_tools.fake_runtime()
        self._folder = folder

    def __call__(self, *options: str, **settings: object) -> Ended:
        log, results = self._folder / "log", self._folder / "results.json"
        log.unlink(missing_ok=True)
        results.unlink(missing_ok=True)
        asked = {f"FAKE_CUDA_{name.upper()}": str(value) for name, value in settings.items()}
        ran = subprocess.run(
            [self._program, "--json", results, *options],
            cwd=self._folder,
            env={**os.environ, "LD_LIBRARY_PATH": str(self._runtime), "FAKE_CUDA_LOG": str(log), **asked},
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(results.read_text()) if results.exists() else None
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return Ended(ran.returncode, ran.stdout, ran.stderr, found, lines)


def written(folder: Path, trace: Path, **options: Any) -> Path:  # noqa: ANN401
    """A bundle of a trace."""
    command(str(trace), folder=folder / "bundle", no_cache=True, **options)
    return folder / "bundle"


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of the planted graph with every kind of node, and of the sample whose launch loses."""
    planted = plant(tmp_path_factory.mktemp("planted"))
    return {
        "planted": written(tmp_path_factory.mktemp("one"), planted.trace, dot=[str(planted.dump)]),
        "gbx": written(
            tmp_path_factory.mktemp("two"),
            SAMPLES / "gbx-graphs-on.sqlite",
            baseline=str(SAMPLES / "gbx-graphs-off.sqlite"),
        ),
    }


@pytest.fixture
def planted(bundles: dict[str, Path], tmp_path: Path) -> Program:
    return Program(bundles["planted"], tmp_path)


@pytest.fixture
def gbx(bundles: dict[str, Path], tmp_path: Path) -> Program:
    return Program(bundles["gbx"], tmp_path)


def test_the_graph_has_every_node_and_edge_of_the_trace_and_its_child_graph(planted: Program) -> None:
    (graph,) = planted("--modes", "graph", *SIMPLE).graphs
    outer = [node for node in graph if node["depth"] == 0]
    inner = [node for node in graph if node["depth"] == 1]
    assert [node["kind"] for node in outer] == [
        "kernel", "kernel", "empty", "child", "memcpy", "host", "memset", "kernel",
    ]  # fmt: skip
    assert [(IN_ORDER[node["node"]], node["after"]) for node in inner] == [("softmax_c0", []), ("softmax_c1", [0])]
    # The child stands for two nodes of the table, so that places after it are one less.
    place = {node: node if node <= 3 else node - 1 for node in range(len(IN_ORDER))}
    expected = {(place[one], place[other]) for one, other in EDGES if {one, other} != {3, 4}}
    assert {(before, i) for i, node in enumerate(outer) for before in node["after"]} == expected
    gemm = outer[0]
    assert (gemm["grid"], gemm["block"], gemm["shared"], gemm["cluster"]) == (48, 128, 65536, 2)
    assert [node["grid"] for node in outer if node["kind"] == "kernel"] == [48, 96, 14]


def test_each_mode_runs_each_kernel_once_in_an_order_that_its_edges_allow(planted: Program) -> None:
    for mode in (
        "eager-single-stream",
        "eager-multi-stream",
        "graph",
        "graph-kernels-only",
        "graph-serial",
        "graph-per-node",
    ):
        ended = planted("--modes", mode, "--runs", "1", "--warm-up", "0")
        assert ended.code == 0, ended.err
        ran = [(int(words[1]), float(words[2]), float(words[3])) for words in ended.log if words[0] == "ran"]
        # The control is no node of the graph; one run checks outputs, one is measured.
        ran = [each for each in ran if each[0] < len(IN_ORDER)][len(KERNELS) :]
        assert sorted(node for node, _, _ in ran) == KERNELS, mode
        begin, end = ({node: times[at] for node, *times in ran} for at in (0, 1))
        gemm, copy, first, second, last = KERNELS
        assert max(end[gemm], end[copy]) <= begin[first], mode
        assert end[first] <= begin[second], mode
        assert end[second] <= begin[last], mode
        together = begin[copy] < end[gemm] and begin[gemm] < end[copy]
        assert together == (mode in ("eager-multi-stream", "graph", "graph-kernels-only")), mode


def test_serial_per_node_and_kernels_only_graphs_are_what_they_are_called(planted: Program) -> None:
    (serial,) = planted("--modes", "graph-serial", *SIMPLE).graphs
    assert all(i - 1 in node["after"] for i, node in enumerate(serial) if i)
    assert [node["kind"] for node in serial].count("child") == 0
    assert [len(graph) for graph in planted("--modes", "graph-per-node", *SIMPLE).graphs] == [1] * len(IN_ORDER)
    (kernels,) = planted("--modes", "graph-kernels-only", *SIMPLE).graphs
    assert {node["kind"] for node in kernels} == {"kernel", "child"}
    # Through the copies that are left out the last kernel still waits for the child graph.
    assert kernels[-1]["after"] == [2]


def test_nodes_left_out_pass_on_what_they_waited_for(planted: Program) -> None:
    (graph,) = planted("--modes", "graph", "--only", "0,1,8", *SIMPLE).graphs
    assert [(node["node"], node["after"]) for node in graph] == [(0, []), (1, []), (8, [0, 1])]
    (graph,) = planted("--modes", "graph", "--drop", "1-7", *SIMPLE).graphs
    assert [(node["node"], node["after"]) for node in graph] == [(0, []), (8, [0])]


def test_the_list_has_every_node_and_edge(planted: Program) -> None:
    lines = planted("--list").out.splitlines()
    assert [line.split()[2] for line in lines] == IN_ORDER
    found = {(int(before), i) for i, line in enumerate(lines) for before in line.partition(" after")[2].split()}
    assert found == set(EDGES)


def test_calibration_reaches_the_traced_durations_and_is_used_again(gbx: Program) -> None:
    fitted = gbx("--calibrate", "--modes", "alone", *SIMPLE)
    assert "25 of 25 kernels within 5 %" in fitted.out
    assert fitted.results["calibration"] == "fitted"
    for node in fitted.results["nodes"]:
        assert abs(node["fitted_us"] / node["target_us"] - 1) <= 0.05
    again = gbx("--modes", "alone", *SIMPLE)
    assert again.results["calibration"] == "loaded"
    took = {node["node"]: node["took_us"][0] for node in again.results["modes"]["alone"]["nodes"]}
    # The clock steps by 0.032 us.
    assert took == pytest.approx({node["node"]: node["fitted_us"] for node in fitted.results["nodes"]}, abs=0.033)


def test_calibration_says_where_it_cannot(planted: Program, tmp_path: Path) -> None:
    # Here no kernel takes less than 200 us, whatever its work; the traced one took 100.
    ended = planted("--calibrate", "--modes", "alone", "--only", "0", *SIMPLE, least=200_000)
    assert "calibration could not reach these within 5 %" in ended.out
    assert [node["fitted"] for node in ended.results["nodes"]] == [False]


def test_a_calibration_for_another_graph_is_not_used(gbx: Program, planted: Program) -> None:
    gbx("--calibrate", "--modes", "alone", "--runs", "1")
    ended = planted("--modes", "alone", *SIMPLE)
    assert ended.results["calibration"] == "none"
    assert "add --calibrate" in ended.out


def test_what_runs_faster_side_by_side_is_not_reproduced(planted: Program) -> None:
    ended = planted("--calibrate", *SIMPLE)
    assert (ended.code, ended.results["reproduced"]) == (0, False)
    assert ended.results["graph_over_serial"][0] < 1
    assert "not reproduced" in ended.out
    assert set(ended.results["modes"]) == {
        "alone", "eager-single-stream", "eager-multi-stream", "graph", "graph-kernels-only", "graph-serial",
        "graph-per-node",
    }  # fmt: skip


def test_kernels_that_slow_each_other_down_are_reproduced_with_exit_code_10(planted: Program) -> None:
    ended = planted("--calibrate", *SIMPLE, culprits="0,1")
    assert (ended.code, ended.results["reproduced"]) == (10, True)
    assert "REPRODUCED" in ended.out
    # At a quarter of their speed 50 us of the copy take 200, in which the gemm does 50 of its 100.
    took = {node["node"]: node["took_us"][0] for node in ended.results["modes"]["graph"]["nodes"]}
    assert took[1] == pytest.approx(200, rel=0.06)
    assert took[0] == pytest.approx(250, rel=0.06)


@pytest.mark.parametrize("culprits", [(1, 2), (3, 4), (21, 22)])
def test_bisection_finds_the_planted_culprits(culprits: tuple[int, int], gbx: Program) -> None:
    listed = ",".join(map(str, culprits))
    ended = gbx("--calibrate", "--bisect", "--modes", "graph,graph-serial", *SIMPLE, culprits=listed, slowdown=8)
    assert ended.results["bisect"]["nodes"] == list(culprits)
    assert f"./repro --only {listed}" in ended.out
    assert ended.results["bisect"]["graph_over_serial"][1] > 1.02
    assert gbx("--only", listed, *SIMPLE, culprits=listed, slowdown=8).code == 10


def test_bisection_of_a_graph_that_is_not_slow_says_so(gbx: Program) -> None:
    ended = gbx("--bisect", "--modes", "graph,graph-serial", *SIMPLE)
    assert ended.results["bisect"]["nodes"] == []
    assert "nothing to shrink" in ended.out


def test_a_sweep_limits_how_many_run_at_once(gbx: Program) -> None:
    ended = gbx("--calibrate", "--sweep", "--modes", "graph,graph-serial", *SIMPLE)
    widths = {each["width"]: each["event_us"][0] for each in ended.results["sweep"]}
    assert list(widths) == [1, 2, 4, 8, 16, 25]
    modes = ended.results["modes"]
    assert widths[1] == pytest.approx(modes["graph-serial"]["event_us"][0], rel=1e-3)
    assert widths[25] == pytest.approx(modes["graph"]["event_us"][0], rel=1e-3)
    assert widths[1] > widths[25]


def test_a_node_that_does_not_wait_for_what_it_reads_is_found(planted: Program) -> None:
    ended = planted("--modes", "alone,graph", *SIMPLE, broken=8)
    assert (ended.code, ended.results) == (5, None)
    assert "node 8 (add_d) computes one thing in alone and another in graph" in ended.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (100, 3, "no usable GPU or driver"), (35, 3, "run it where nvidia-smi lists a GPU"),
        (209, 3, "./build.sh native"), (2, 4, "leave nodes out with --drop"), (719, 6, "cudaSetDevice"),
    ],
)  # fmt: skip
def test_a_failing_runtime_ends_in_one_clear_line(error: int, code: int, said: str, planted: Program) -> None:
    ended = planted(error=error)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert said in ended.err


def test_too_little_memory_for_the_outputs_ends_with_exit_code_4(gbx: Program) -> None:
    ended = gbx(memory=20 << 20)
    assert (ended.code, len(ended.err.splitlines())) == (4, 1)
    assert "out of memory" in ended.err


def test_too_little_memory_for_all_weights_is_said(gbx: Program) -> None:
    ended = gbx("--modes", "graph", *SIMPLE, memory=900 << 20)
    assert ended.code == 0, ended.err
    assert "nodes share weights" in ended.out
    assert ended.results["weights_bytes_held"] < ended.results["weights_bytes"]


@pytest.mark.parametrize(
    "options",
    [
        ["--bogus"], ["--only"], ["--only", "99"], ["--only", "3-1"], ["--drop", "x"], ["--modes", "fast"],
        ["--runs", "0"], ["--runs", "many"], ["--drop", "0-8"], ["--json", "/nowhere/at/all.json"],
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_exit_code_2_and_says_what_to_write(options: list[str], planted: Program) -> None:
    ended = planted(*options)
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)


def test_the_virtual_clock_is_never_taken_for_a_gpu(planted: Program) -> None:
    assert "virtual clock" in planted("--modes", "graph", *SIMPLE).results["gpu"]


def test_what_a_run_writes_is_what_verify_reads(planted: Program, bundles: dict[str, Path], tmp_path: Path) -> None:
    planted("--calibrate", *SIMPLE, culprits="0,1")
    expected = msgspec.json.decode((bundles["planted"] / PLAN).read_bytes(), type=Expected)
    found = verify(expected, read_results((tmp_path / "results.json").read_bytes(), "results"))
    # At a quarter of their speed 150 us of work are lost to 200 us side by side, in which 100 us of it are done.
    assert found.measured.side_by_side_ns == pytest.approx(200_000, rel=0.06)
    assert found.measured.lost_ns == pytest.approx(100_000, rel=0.12)
    assert found.share == pytest.approx(0.5, rel=0.12)
    assert any("GPU" in each for each in found.differences)
