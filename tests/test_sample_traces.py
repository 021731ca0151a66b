"""The shipped sample traces: the answers planted in them, ``sample_traces/truth.json``."""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import make_sample_traces
import pytest

from tracekit.analysis.diff import compare
from tracekit.analysis.results import OUTSIDE, Diff, Kernel, Overlap, Phase, Summary
from tracekit.analysis.side_by_side import overlaps_of
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.trace.reader import Trace
from tracekit.trace.source import open_trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
TRUTH: dict[str, Any] = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))["files"]

MODELS = ("stock", "gbx", "moe")
RECORDINGS = [name.removesuffix(".sqlite") for name in TRUTH if "phases" in TRUTH[name]]
GRAPHS_ON = [name for name in RECORDINGS if name.endswith("-on")]

NOISE, TRAIN_NOISE = 0.01, 0.05
"""How far a median may lie from the plan: the kernels of a train vary more."""

Key = tuple[str | None, int | None]
Pair = tuple[Key, Key]

every_recording = pytest.mark.parametrize("name", RECORDINGS)
every_graph_arm = pytest.mark.parametrize("name", GRAPHS_ON)


def truth(name: str) -> dict[str, Any]:
    found: dict[str, Any] = TRUTH[f"{name}.sqlite"]
    return found


def eager(name: str) -> str:
    """The recording of the same work without graphs."""
    return name.removesuffix("-on") + "-off"


def trace(name: str) -> Trace:
    return open_trace(SAMPLES / f"{name}.sqlite", cached=False)


@cache
def summary(name: str) -> Summary:
    with trace(name) as opened:
        return summarise_trace(opened, Selection())


@cache
def overlap(name: str, baseline: str | None = None) -> Overlap:
    if baseline is None:
        with trace(name) as opened:
            return overlaps_of(opened, None, Selection())
    with trace(name) as opened, trace(baseline) as alone:
        return overlaps_of(opened, alone, Selection())


@cache
def comparison(*names: str) -> Diff:
    return compare([trace(name) for name in names])


def phase(answer: Diff, name: str, arm: str = "b") -> Phase:
    (row,) = (row for row in answer.phases if (row.name, row.arm) == (name, arm))
    return row


def key(kernel: Kernel) -> Key:
    return kernel.short_name, kernel.grid and kernel.grid[0]


def planted(row: dict[str, Any]) -> Key:
    return row["short_name"], row["grid"]


def test_the_generator_makes_the_shipped_bytes(tmp_path: Path) -> None:
    make_sample_traces.main(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_bytes() for path in SAMPLES.iterdir() if path.suffix != ".md"}
    assert sorted(made) == sorted(shipped)
    assert [name for name in made if made[name] != shipped[name]] == []


@every_recording
def test_device_time_and_depth_are_exact(name: str) -> None:
    (line,) = overlap(name).devices
    for figure in ("kernel_rows", "busy_ns", "summed_ns", "overlapped_ns", "depth_ns"):
        assert getattr(line, figure) == truth(name)[figure]
    assert line.stream_overlap_ns == line.overlapped_ns
    assert summary(name).traces[0].graph_kernel_rows == truth(name).get("graph_kernel_rows", 0)


@every_recording
def test_each_kernel_has_its_count_and_total(name: str) -> None:
    found = {key(row): (row.name, row.count, row.total_ns) for row in summary(name).kernels}
    assert len(found) == len(summary(name).kernels)
    assert found == {planted(row): (row["name"], row["count"], row["total_ns"]) for row in truth(name)["kernels"]}


@every_graph_arm
def test_solo_durations_are_found_in_the_eager_arm(name: str) -> None:
    rows = comparison(name, eager(name)).kernels
    solo = {planted(row): row["solo_ns"] for row in truth(name)["kernels"]}
    assert rows and all(row.solo_ns is not None for row in rows)
    for row in rows:
        assert row.solo_ns == pytest.approx(solo[key(row)], rel=TRAIN_NOISE if "copy" in str(key(row)) else NOISE)


@every_graph_arm
def test_who_ran_beside_whom_and_how_much_slower(name: str) -> None:
    planned: dict[Pair, list[float]] = defaultdict(list)
    for row in truth(name)["kernels"]:
        for other in row["beside"]:
            planned[planted(row), planted(other)] += [other["stretch"]] * other["instances"]
    found: dict[Pair, tuple[int, float | None]] = {}
    for pair in overlap(name, eager(name)).kernel_pairs:
        a, b = key(pair.a), key(pair.b)
        found[a, b] = pair.instances, pair.stretch_a
        found[b, a] = pair.instances, pair.stretch_b
    assert found.keys() == planned.keys()
    for (a, b), stretches in planned.items():
        instances, stretch = found[a, b]
        # Equals beside each other are planned once from each side; a train is one long kernel beside many.
        assert instances == (len(stretches) // 2 if a == b else max(len(stretches), len(planned[b, a])))
        assert stretch == pytest.approx(median(stretches), rel=TRAIN_NOISE if "copy_gg_nd" in str((a, b)) else NOISE)


@every_graph_arm
def test_episodes_of_the_whole_trace(name: str) -> None:
    plan = truth(name)["episodes"]
    episodes = overlap(name, eager(name)).episodes
    assert (episodes.count, episodes.wall_ns) == (plan["count"], plan["wall_ns"])
    assert (episodes.coverage, episodes.covered_count) == (1, plan["count"])
    assert episodes.solo_ns == pytest.approx(plan["solo_ns"], abs=NOISE * plan["solo_ns"])
    assert episodes.gain_ns == pytest.approx(plan["gain_ns"], abs=NOISE * plan["solo_ns"])
    # Every kernel ran alone somewhere, so nothing is left to bound.
    assert episodes.bound_low_ns == episodes.gain_low_ns
    assert episodes.bound_high_ns == episodes.gain_high_ns


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("arm", ["off", "serial"])
def test_arms_that_run_kernels_one_after_another_have_no_episode(model: str, arm: str) -> None:
    answer = overlap(f"{model}-graphs-{arm}")
    assert (answer.episodes.count, answer.kernel_pairs, answer.stream_pairs) == (0, [], [])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("phase_name", ["prefill", "decode"])
def test_phases_of_three_arms(model: str, phase_name: str) -> None:
    names = [f"{model}-graphs-{arm}" for arm in ("on", "off", "serial")]
    answer = comparison(*names)
    basis = "range start to last GPU completion" if phase_name == "prefill" else "period"
    for arm, name in zip("bc", names[1:], strict=True):
        row = phase(answer, phase_name, arm)
        assert str(row.time_basis).startswith(basis)
        for side, recording in (("a", names[0]), ("b", name)):
            plan = truth(recording)["phases"][phase_name]
            assert getattr(row, f"time_ns_{side}") == plan["median_ns"]
            assert getattr(row, f"n_{side}") == plan["counted"]
            assert getattr(row, f"kernel_rows_{side}") == plan["kernel_rows"]
            assert getattr(row, f"kernel_ns_{side}") == plan["summed_ns"]


@every_recording
def test_every_kernel_belongs_to_a_phase(name: str) -> None:
    answer = comparison(name, name)
    assert {row.name for row in answer.phases if row.name != OUTSIDE} == set(truth(name)["phases"])
    assert sum(row.kernel_rows_a for row in answer.phases) == truth(name)["kernel_rows"]
    assert [row.kernel_rows_a for row in answer.phases if row.name == OUTSIDE] in ([], [0])


@pytest.mark.parametrize("model", MODELS)
def test_launches_of_one_prefill(model: str) -> None:
    """A graph launch counts once however many kernels it owns; a launch that was only captured owns none."""
    row = phase(comparison(f"{model}-graphs-on", f"{model}-graphs-off"), "prefill")
    for launches, arm, names in (
        (row.launches_a, "on", ("cudaGraphLaunch",)),
        (row.launches_b, "off", ("cudaLaunch",)),
    ):
        plan = truth(f"{model}-graphs-{arm}")["phases"]["prefill"]
        calls = sum(count for name, count in plan["calls"].items() if name.startswith(names))
        assert launches == calls / len(plan["instances"])


@pytest.mark.parametrize("model", ["stock", "gbx"])
def test_graphs_lose_prefill_and_win_decode(model: str) -> None:
    answer = comparison(f"{model}-graphs-on", f"{model}-graphs-off")
    assert phase(answer, "prefill").verdict.winner == "b"
    assert phase(answer, "decode").verdict.winner == "a"
    assert answer.verdict.winner == "undecided"
    turned = comparison(f"{model}-graphs-off", f"{model}-graphs-on")
    assert phase(turned, "prefill").verdict.winner == "a"
    assert phase(turned, "decode").verdict.winner == "b"


def test_a_pair_that_gains_in_a_phase_that_loses() -> None:
    """Two matmuls at once are 1.7 times slower each and still gain, in a prefill that graphs lose."""
    matmul = ("qmm_sm80", 4352)
    (pair,) = (
        pair
        for pair in overlap("stock-graphs-on", "stock-graphs-off").kernel_pairs
        if key(pair.a) == key(pair.b) == matmul
    )
    assert pair.stretch_a == pytest.approx(12.8 / 7.4, rel=NOISE)
    assert phase(comparison("stock-graphs-on", "stock-graphs-off"), "prefill").verdict.winner == "b"


def test_three_at_once_win_though_the_median_is_almost_three_times_slower() -> None:
    answer = comparison("three-at-once-graphs-on", "three-at-once-graphs-off")
    (row,) = answer.phases
    (kernel,) = answer.kernels
    assert row.verdict.winner == "a"
    assert answer.verdict.winner == "a"
    assert kernel.ratio == pytest.approx(7.6 / 21.4, rel=NOISE)
    turned = comparison("three-at-once-graphs-off", "three-at-once-graphs-on")
    assert turned.kernels[0].ratio == pytest.approx(21.4 / 7.6, rel=NOISE)
    assert turned.phases[0].verdict.winner == "b"


@pytest.mark.parametrize("order", [("on", "off", "serial"), ("serial", "on", "off"), ("off", "serial", "on")])
def test_one_after_another_is_the_best_of_three_arms_in_mixture_of_experts_decode(
    order: tuple[str, str, str],
) -> None:
    answer = comparison(*(f"moe-graphs-{arm}" for arm in order))
    best = "abc"[order.index("serial")]
    assert {row.best for row in answer.phases if row.name == "decode"} == {best}
    # Serial graphs and no graphs are less than 2 % apart in prefill.
    assert {row.best for row in answer.phases if row.name == "prefill"} == {None}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("phase_name", ["prefill", "decode"])
def test_the_serial_prediction_holds_against_the_measured_serial_arm(model: str, phase_name: str) -> None:
    row = phase(comparison(f"{model}-graphs-on", f"{model}-graphs-off"), phase_name)
    measured = truth(f"{model}-graphs-serial")["phases"][phase_name]["median_ns"]
    assert row.what_if_serial_ns_a == pytest.approx(measured, rel=NOISE)
    interval = row.what_if_serial_interval_a
    assert interval is not None and row.what_if_serial_ns_a is not None
    assert interval[0] <= row.what_if_serial_ns_a <= interval[1]


def test_two_arms_that_do_the_same_tie() -> None:
    answer = comparison("gbx-graphs-on", "gbx-graphs-serial")
    assert phase(answer, "decode").verdict.winner == "tie"


def test_graphs_recorded_whole_are_opaque() -> None:
    plan, answer = truth("granularity-graph"), summary("granularity-graph")
    assert answer.traces[0].granularity == "graph"
    assert answer.traces[0].kernel_rows == plan["kernel_rows"]
    assert answer.recording.opaque_share == pytest.approx(plan["opaque_share"], abs=1e-6)
    assert "kernel ranking" in answer.recording.withheld
    (warning,) = (warning for warning in answer.warnings if warning.code == "opaque_graphs")
    assert warning.count == plan["graph_launches"]
    assert "--cuda-graph-trace=node" in warning.message
    assert [line.idle_ns for line in answer.devices] == [None]


def test_lost_records_leave_medians_and_withhold_sums() -> None:
    plan, answer = truth("lost-records"), summary("lost-records")
    (row,) = answer.kernels
    assert answer.recording.launch_coverage == pytest.approx(plan["coverage"])
    assert (row.count, row.median_ns, row.total_ns) == (plan["kernel_rows"], plan["median_ns"], None)
    assert {"sums", "idle", "overlap"} <= set(answer.recording.withheld)
    (warning,) = (warning for warning in answer.warnings if warning.code == "lost_records")
    assert warning.count == plan["graph_launches_without_kernels"]
    for line in (*answer.devices, *overlap("lost-records").devices):
        assert (line.busy_ns, line.idle_ns, line.summed_ns, line.overlapped_ns) == (None, None, None, None)


def test_processes_share_correlation_ids_and_nothing_else() -> None:
    plan, answer = truth("two-processes"), overlap("two-processes")
    assert answer.traces[0].kernel_rows == plan["kernel_rows"]
    assert {str(line.device): line.busy_ns for line in answer.devices} == plan["busy_ns_by_device"]
    assert {str(line.device): line.overlapped_ns for line in answer.devices} == plan["overlapped_ns_by_device"]
    (warning,) = (warning for warning in answer.warnings if warning.code == "process_without_kernels")
    assert warning.count == plan["launches_by_process"]["13"]
    assert "13" in warning.message
    assert {str(line.process): line.kernel_rows for line in answer.streams} == {
        pid: rows for pid, rows in plan["kernels_by_process"].items() if rows
    }


def test_overlap_within_one_stream_is_told_apart() -> None:
    plan, answer = truth("same-stream"), overlap("same-stream")
    (line,) = answer.devices
    for figure in ("kernel_rows", "busy_ns", "summed_ns", "same_stream_overlap_ns", "stream_overlap_ns"):
        assert getattr(line, figure) == plan[figure]
    assert line.graph_branch_overlap_ns == 0
    (warning,) = (warning for warning in answer.warnings if warning.code == "same_stream_overlap")
    assert warning.count == plan["kernels_started_inside_predecessor"]


def test_a_mixture_of_durations_is_said_to_be_one() -> None:
    plan, (row,) = truth("mixed-shapes"), summary("mixed-shapes").kernels
    assert row.mixed
    assert (row.count, row.overlapped_fraction) == (plan["kernel_rows"], 0)
    assert [row.p25_ns, row.p75_ns] == pytest.approx(plan["mixture_ns"], rel=NOISE)
    assert not any(row.mixed for row in summary("gbx-graphs-off").kernels)


def test_impossible_times_are_left_out_and_counted_by_reason() -> None:
    plan, answer = truth("bad-times"), summary("bad-times")
    reasons = plan["rows_by_reason"]
    assert answer.recording.invalid_rows == {
        "zero start": reasons["zero_start"],
        "negative duration": reasons["negative"],
    }
    warned = {warning.code: warning.count for warning in answer.warnings}
    assert warned["zero_length"] == reasons["zero_length"]
    assert warned["before_launch"] == reasons["before_launch"]
    left = plan["kernel_rows"] - reasons["zero_start"] - reasons["negative"]
    assert sum(row.count for row in answer.kernels) == answer.traces[0].kernel_rows == left
