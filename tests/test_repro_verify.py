"""What a run of a repro measured against the trace that it is of."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Run
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from repro_building import COPY_ALONE, GEMM_ALONE, LOST, TOGETHER, US, plant

from tracekit.report.json import json_schema
from tracekit.repro.bundle import PLAN, Expected


@pytest.fixture
def bundle(call: Run, tmp_path: Path) -> Path:
    planted = plant(tmp_path)
    target = tmp_path / "bundle"
    assert call("repro", planted.trace, "--dot", planted.dump, "--launch", 1, "-o", target).code == 0
    return target


def measured(bundle: Path, *, slower: float = 1.0, alone: float = 1.0, **changed: Any) -> Path:  # noqa: ANN401
    """Results as the program writes them: the traced times, what ran side by side ``slower`` times as long.

    ``alone`` stretches the time that kernels take by themselves.
    """
    expected = msgspec.json.decode((bundle / PLAN).read_bytes(), type=Expected)
    graph, by_itself, footprints = [], [], []
    for i in expected.launch.kernels:
        node = expected.launch.nodes[i]
        assert node.duration_ns is not None and node.start_ns is not None
        took = node.duration_ns / 1e3 * (slower if node.start_ns == 0 else 1)
        solo = (node.solo_ns or node.duration_ns) / 1e3 * alone
        row = {"node": i, "start_us": node.start_ns / 1e3, "took_there_us": took}
        graph.append({**row, "took_us": [took, took, took]})
        by_itself.append({**row, "start_us": None, "took_us": [solo, solo, solo]})
        footprints.append({"node": i, "registers": 32, "blocks_per_sm": 4, "traced_blocks_per_sm": 4})
    mode = {"runs": 20, "event_us": [1, 1, 1], "span_us": [1, 1, 1]}
    results = {
        "repro": 1, "graph": expected.graph, "gpu": expected.launch.gpu.name, "compute_capability": "12.1",
        "calibration": "fitted", "threshold": 0.02, "weights_bytes": 1, "weights_bytes_held": 1, "nodes": footprints,
        "modes": {"graph": {**mode, "nodes": graph}, "alone": {**mode, "nodes": by_itself}},
        "graph_over_serial": [1.4, 1.3, 1.5], "reproduced": True,
    } | changed  # fmt: skip
    file = bundle / "results.json"
    file.write_text(json.dumps(results))
    return file


def verified(call: Run, bundle: Path, results: Path) -> Any:  # noqa: ANN401
    answer = call("repro", "--verify", bundle, results, "--format", "json").answer
    Draft202012Validator(json_schema()).validate(answer)
    return answer


def test_a_run_that_measures_what_was_traced_reproduces_all_of_the_loss(call: Run, bundle: Path) -> None:
    answer = verified(call, bundle, measured(bundle))
    assert (answer["share"], answer["reproduces"], answer["differences"]) == (1.0, True, [])
    assert (answer["lost_ns"], answer["measured_lost_ns"]) == (LOST, LOST)
    out = call("repro", "--verify", bundle, bundle / "results.json").out
    assert "reproduces 1.00 of the loss" in out
    assert "graph / graph-serial: 1.400 (95 % interval 1.300 - 1.500)" in out


def test_the_share_is_the_measured_loss_over_the_traced_one(call: Run, bundle: Path) -> None:
    answer = verified(call, bundle, measured(bundle, slower=0.8))
    lost = 0.8 * TOGETHER - GEMM_ALONE - COPY_ALONE
    assert answer["measured_lost_ns"] == lost
    assert answer["share"] == pytest.approx(lost / LOST)
    stretch = {node["name"]: (node["stretch"], node["measured_stretch"]) for node in answer["nodes"]}
    assert stretch["gemm_a"] == (3.0, pytest.approx(2.4))


def test_a_run_without_the_loss_does_not_reproduce_and_says_what_differs(call: Run, bundle: Path) -> None:
    results = measured(bundle, slower=0.5, gpu="Another GPU", calibration="none", weights_bytes_held=0)
    answer = verified(call, bundle, results)
    assert (answer["share"], answer["reproduces"]) == (0.0, False)
    said = "\n".join(answer["differences"])
    for what in (
        "another GPU",
        "not calibrated",
        "shared them",
        "gemm_a: 1.50 times its time alone, in the trace 3.00",
    ):
        assert what in said
    assert f"side by side for {TOGETHER // 2 // US} us, in the trace for {TOGETHER // US} us" in said
    assert "does not reproduce: 0 % of the loss" in call("repro", "--verify", bundle, results).out


def test_kernels_that_take_another_time_alone_are_counted(call: Run, bundle: Path) -> None:
    assert verified(call, bundle, measured(bundle, alone=1.04))["differences"] == []
    answer = verified(call, bundle, measured(bundle, alone=1.06))
    assert any(each.startswith("5 of 5 kernels take another time alone") for each in answer["differences"])


def test_where_the_trace_lost_nothing_there_is_nothing_to_reproduce(call: Run, tmp_path: Path) -> None:
    trace = Path(__file__).parents[1] / "sample_traces" / "three-at-once-graphs-on.sqlite"
    target = tmp_path / "bundle"
    assert call("repro", trace, "-o", target).code == 0
    answer = verified(call, target, measured(target))
    assert (answer["share"], answer["reproduces"], answer["lost_ns"]) == (None, None, None)
    assert "nothing to reproduce" in call("repro", "--verify", target, target / "results.json").out


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"graph": "0"}, "are of graph 0"),
        ({"modes": {}}, "lack mode alone, graph"),
        ({"nodes": "many"}, "holds no results"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(
    changed: dict[str, Any], said: str, call: Run, bundle: Path
) -> None:
    ran = call("repro", "--verify", bundle, measured(bundle, **changed))
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 1)
    assert said in ran.err


def test_what_is_no_bundle_or_no_results_is_refused(call: Run, bundle: Path, tmp_path: Path) -> None:
    results = measured(bundle)
    assert call("repro", "--verify", tmp_path, results).code == 3
    assert call("repro", "--verify", bundle, tmp_path / "absent.json").code == 3
    results.write_bytes(b"\xff\x00")
    assert call("repro", "--verify", bundle, results).code == 3
    (bundle / PLAN).write_text("{")
    assert "unpack the bundle again" in call("repro", "--verify", bundle, measured_text(tmp_path)).err


def measured_text(folder: Path) -> Path:
    file = folder / "any.json"
    file.write_text("{}")
    return file
