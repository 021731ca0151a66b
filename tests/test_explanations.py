"""Which cause is said to make the difference, and which are ruled out."""

from pathlib import Path
from typing import get_args

import pytest
from field_notation import Kernel, diff_of, shown, steps

from tracekit.analysis.diff import compare
from tracekit.analysis.results import Cause, Diff, Explanation, Phase, ProfilerCost
from tracekit.analysis.trust.profiler_effect import with_profiler_effect
from tracekit.trace.source import open_trace

ROOT = Path(__file__).parents[1]
SAMPLES, TRACES = ROOT / "sample_traces", ROOT.parent / "shared" / "traces"


def in_a_row(duration: int, count: int, pause: int = 0) -> list[Kernel]:
    return [(index * (duration + pause), index * (duration + pause) + duration, 7, "qmm") for index in range(count)]


def at_once(duration: int, count: int) -> list[Kernel]:
    return [(0, duration, 7 + index, "qmm") for index in range(count)]


def compared(a: list[Kernel], b: list[Kernel], folder: Path, *, count: int = 9) -> Phase:
    """One phase, eager against graphs."""
    (phase,) = diff_of(steps(a, graphs=False, count=count), steps(b, graphs=True, count=count), folder).phases
    return phase


def outcomes(phase: Phase) -> dict[str, str]:
    return {each.cause: each.outcome for each in phase.explanations}


def told(phase: Phase) -> list[str]:
    """Causes that carry the difference or contribute, in the order in which they are given."""
    return [each.cause for each in phase.explanations if each.outcome in ("carries", "contributes")]


def explanation(phase: Phase, cause: Cause) -> Explanation:
    (found,) = (each for each in phase.explanations if each.cause == cause)
    return found


@pytest.mark.parametrize(
    ("alone", "beside", "count", "expected"),
    [
        pytest.param(7_400_000, 12_800_000, 2, ["overlap_gained", "plain_sharing"], id="12.8 with two at once"),
        pytest.param(7_600_000, 21_400_000, 2, ["overlap_lost"], id="21.4 with two at once"),
        pytest.param(7_600_000, 21_400_000, 3, ["overlap_gained", "plain_sharing"], id="21.4 with three at once"),
        pytest.param(7_400_000, 14_800_000, 2, [], id="twice as long with two at once"),
    ],
)
def test_a_kernel_beside_others_is_told_by_what_the_phase_takes(
    tmp_path: Path, alone: int, beside: int, count: int, expected: list[str]
) -> None:
    phase = compared(in_a_row(alone, count), at_once(beside, count), tmp_path)
    assert told(phase) == expected
    assert all(outcomes(phase)[cause] == "carries" for cause in expected)
    for cause in expected:
        found = explanation(phase, cause)  # type: ignore[arg-type]
        assert found.ns == pytest.approx(beside - count * alone, rel=0.01)
        assert found.share == pytest.approx(1, abs=0.01)


def test_the_sentence_names_the_set_its_episodes_and_what_the_work_takes_in_a_row(tmp_path: Path) -> None:
    phase = compared(in_a_row(7_600_000, 2), at_once(21_400_000, 2), tmp_path)
    assert "overlap lost 6.20 ms: 2 `qmm` at once (1 episode, W 21.4 ms against S 15.2 ms)" in phase.verdict.reason
    assert "W 21.4 ms against S 15.2 ms" in explanation(phase, "overlap_lost").evidence


def test_every_cause_is_tested_once(tmp_path: Path) -> None:
    phase = compared(in_a_row(7_600_000, 2), at_once(21_400_000, 2), tmp_path)
    assert sorted(each.cause for each in phase.explanations) == sorted(get_args(Cause))
    assert all(each.evidence for each in phase.explanations)
    sized = [abs(each.ns) for each in phase.explanations[1:] if each.ns is not None]
    assert sized == sorted(sized, reverse=True)


def test_longer_gaps_carry_the_difference_and_nothing_else_does(tmp_path: Path) -> None:
    phase = compared(in_a_row(100_000, 5, pause=1_000), in_a_row(100_000, 5, pause=11_000), tmp_path)
    assert told(phase) == ["gaps"]
    assert explanation(phase, "gaps").share == pytest.approx(1, abs=0.02)
    for cause in ("overlap_lost", "kernels_alone", "one_side_only", "counts_differ", "copies"):
        assert outcomes(phase)[cause] == "ruled out"


def test_two_causes_that_cancel_are_both_told_and_neither_carries(tmp_path: Path) -> None:
    a = in_a_row(100_000, 4, pause=20_000)
    shared = [
        (0, 260_000, 7, "qmm"),
        (0, 260_000, 8, "qmm"),
        (260_000, 360_000, 7, "qmm"),
        (360_000, 460_000, 7, "qmm"),
    ]
    phase = compared(a, shared, tmp_path)
    assert phase.verdict.winner == "tie"
    assert sorted(told(phase)) == ["gaps", "overlap_lost"]
    assert "carries" not in outcomes(phase).values()


def test_too_few_instances_rule_out_only_what_neither_arm_has(tmp_path: Path) -> None:
    phase = compared(in_a_row(7_600_000, 2), at_once(21_400_000, 2), tmp_path, count=4)
    assert told(phase) == []
    assert outcomes(phase)["overlap_lost"] == "cannot tell"
    assert outcomes(phase)["one_side_only"] == "ruled out"


def test_a_kernel_launched_more_often_and_kernels_of_one_side_are_named(tmp_path: Path) -> None:
    a = in_a_row(100_000, 4)
    more = compared(a, in_a_row(100_000, 6), tmp_path)
    assert told(more) == ["counts_differ"]
    assert "4 -> 6 launches" in explanation(more, "counts_differ").evidence
    other = [*in_a_row(100_000, 3), (300_000, 500_000, 7, "gemm")]
    only = compared([*in_a_row(100_000, 3), (300_000, 400_000, 7, "sgemm")], other, tmp_path)
    assert told(only) == ["one_side_only"]
    assert "1 kernel only in a (100 us), longest `sgemm`" in explanation(only, "one_side_only").evidence


def cost(ratio: float, arm: str) -> ProfilerCost:
    return ProfilerCost(arm, 3, 1.0, ratio, ratio)


def test_a_profiler_that_slows_one_arm_explains_its_share(tmp_path: Path) -> None:
    phase = compared(in_a_row(100_000, 4), in_a_row(110_000, 4), tmp_path)
    assert outcomes(phase)["profiler"] == "cannot tell"
    alike = with_profiler_effect(phase, {"a": cost(1.3, "on"), "b": cost(1.31, "off")})
    assert outcomes(alike)["profiler"] == "ruled out"
    one = with_profiler_effect(phase, {"a": cost(1.0, "on"), "b": cost(1.1, "off")})
    found = explanation(one, "profiler")
    assert phase.time_ns_b is not None
    assert (found.outcome, found.ns) == ("carries", round(phase.time_ns_b * (1 - 1 / 1.1)))
    assert [each.cause for each in one.explanations[:2]].count("profiler") == 1
    assert with_profiler_effect(phase, {"a": cost(1.1, "on")}) == phase


def samples(*names: str) -> Diff:
    return compare([open_trace(SAMPLES / f"{name}.sqlite", cached=False) for name in names])


def test_graphs_lose_prefill_by_overlap_and_win_decode_by_their_gaps() -> None:
    answer = samples("gbx-graphs-on", "gbx-graphs-off")
    prefill, decode = answer.phases[:2]
    assert (prefill.name, told(prefill)) == ("prefill", ["overlap_lost"])
    assert (decode.name, told(decode)) == ("decode", ["gaps"])
    assert "sharing the GPU, not lost time" in decode.verdict.reason
    assert "Where the time goes" in shown(answer)


def test_a_pair_that_saves_time_in_a_phase_that_loses_it_is_told_beside_the_loss() -> None:
    prefill = samples("stock-graphs-on", "stock-graphs-off").phases[0]
    assert told(prefill) == ["overlap_lost", "overlap_gained"]
    assert "overlap saved 11.9 ms: 2 `qmm_sm80 4352x1x1` at once" in prefill.verdict.reason


def test_without_an_eager_arm_the_serial_graph_tells_what_the_kernels_take_alone() -> None:
    prefill, decode = samples("moe-graphs-on", "moe-graphs-serial").phases[:2]
    assert told(prefill) == told(decode) == ["overlap_lost"]
    assert {prefill.overlap_coverage_a, decode.overlap_coverage_a} == {1.0}


def real(*files: str) -> Diff:
    paths = [TRACES / file for file in files]
    if not all(path.exists() for path in paths):
        pytest.skip("../shared/traces is not beside the repository")
    return compare([open_trace(path, cached=False) for path in paths])


def test_slower_kernels_in_graphs_without_overlap_are_not_blamed_on_overlap() -> None:
    phase = real("graph-nodes-v100-a.sqlite", "graph-nodes-v100-b.sqlite").phases[0]
    for cause in ("overlap_lost", "overlap_gained", "plain_sharing", "one_side_only"):
        assert outcomes(phase)[cause] == "ruled out"
    assert explanation(phase, "kernels_alone").ns == pytest.approx(3.9e6, rel=0.05)


@pytest.mark.parametrize("pair", [(1, 2), (2, 3), (3, 1)])
def test_runs_of_one_workload_claim_nothing(pair: tuple[int, int]) -> None:
    answer = real(*(f"streams9-gtx1650-run{run}.sqlite" for run in pair))
    assert [told(phase) for phase in answer.phases] == [[] for _ in answer.phases]
