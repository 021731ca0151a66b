"""The way from one phase time to another: steps that add up, each the size that was planted."""

from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import polars as pl
import pytest
from field_notation import Kernel, diff_of, graph, steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nsys_export import Export
from scipy import stats

from tracekit.analysis.diff import compare
from tracekit.analysis.kernels.solo import SOLO
from tracekit.analysis.overlap.episodes import find_episodes
from tracekit.analysis.results import Cause, Diff, Phase, Step
from tracekit.analysis.statistics.typical import resampled_deviations, typical_weights
from tracekit.analysis.verdict.clocks import common_factor
from tracekit.trace.source import open_trace

US = 1_000
SAME = (1.0,)
ORDER = [
    "overlap_lost",
    "overlap_gained",
    "kernels_alone",
    "one_side_only",
    "counts_differ",
    "clocks",
    "gaps",
    "launch_bound",
    "setup",
    "host_work",
    "copies",
    "unexplained",
]


def in_a_row(*kernels: tuple[str, int], pause: int = 0) -> list[Kernel]:
    """Named durations one after another on one stream."""
    found, now = [], 0
    for name, duration in kernels:
        found.append((now, now + duration, 7, name))
        now += duration + pause
    return found


def after(earlier: list[Kernel], later: list[Kernel]) -> list[Kernel]:
    end = max(kernel[1] for kernel in earlier)
    return [*earlier, *((start + end, stop + end, stream, name) for start, stop, stream, name in later)]


def step_of(phase: Phase, cause: Cause) -> Step:
    (step,) = (step for step in phase.waterfall if step.cause == cause)
    return step


def sizes(answer: Diff) -> dict[str, float]:
    """The steps of the one phase that are not zero; they must add up."""
    (phase,) = answer.phases
    assert phase.time_ns_a is not None and phase.time_ns_b is not None
    assert [step.cause for step in phase.waterfall] == ORDER
    assert sum(step.ns or 0 for step in phase.waterfall) == phase.time_ns_b - phase.time_ns_a
    return {step.cause: step.ns for step in phase.waterfall if step.ns}


def between(a: list[Kernel], b: list[Kernel], folder: Path) -> dict[str, float]:
    """The steps from an eager arm to a graph arm, every instance of which is the same. A graph's launch call is the
    longer one here: what the host and what the GPU waits for is put together."""
    found = sizes(diff_of(steps(a, graphs=False, stretched=SAME), steps(b, graphs=True, stretched=SAME), folder))
    idle = found.pop("gaps", 0) + found.pop("launch_bound", 0)
    return found | ({"gaps": idle} if idle else {})


def test_equal_arms_have_no_steps(tmp_path: Path) -> None:
    kernels = in_a_row(("k", 10 * US), ("m", 20 * US))
    assert between(kernels, kernels, tmp_path) == {}


def test_each_planted_change_is_the_step_it_should_be(tmp_path: Path) -> None:
    a = in_a_row(*[("k", 10 * US)] * 3, ("m", 20 * US), ("old", 5 * US))
    b = in_a_row(*[("k", 12 * US)] * 4, ("m", 20 * US), ("new", 9 * US), pause=500)
    assert between(a, b, tmp_path) == {
        "kernels_alone": 3 * 2 * US,
        "one_side_only": 4 * US,
        "counts_differ": 12 * US,
        "gaps": 5 * 500,
    }


def test_a_kernel_launched_less_often_is_counted_at_its_own_duration(tmp_path: Path) -> None:
    a, b = in_a_row(*[("copy", 4 * US)] * 3), in_a_row(("copy", 5 * US))
    assert between(a, b, tmp_path) == {"kernels_alone": 1 * US, "counts_differ": -2 * 4 * US}


def test_overlap_is_what_the_same_work_takes_longer_side_by_side(tmp_path: Path) -> None:
    a = in_a_row(("p", 10 * US), ("q", 30 * US), ("r", 15 * US))
    b = after([(0, 45 * US, 7, "p"), (5 * US, 50 * US, 8, "q")], in_a_row(("r", 15 * US)))
    assert between(a, b, tmp_path) == {"overlap_lost": 10 * US}


def test_sets_that_lose_and_sets_that_save_are_told_apart(tmp_path: Path) -> None:
    a = in_a_row(("p", 10 * US), ("q", 30 * US), ("k", 5 * US), ("r", 15 * US), ("s", 15 * US))
    losing = after([(0, 50 * US, 7, "p"), (0, 50 * US, 8, "q")], in_a_row(("k", 5 * US)))
    saving = [(0, 20 * US, 7, "r"), (0, 20 * US, 8, "s")]
    assert between(a, after(losing, saving), tmp_path) == {"overlap_lost": 10 * US, "overlap_gained": -10 * US}


def test_a_kernel_that_met_two_others_in_turn_gained_or_lost_beside_both_together(tmp_path: Path) -> None:
    """What of p's work was done beside q and what beside r is not measured: only that all of it took 30 us longer."""
    a = in_a_row(("p", 60 * US), ("q", 10 * US), ("r", 40 * US))
    b = [(0, 140 * US, 7, "p"), (0, 12 * US, 8, "q"), (20 * US, 140 * US, 8, "r")]
    assert between(a, b, tmp_path) == {"overlap_lost": 30 * US}


def test_another_clock_is_not_blamed_on_the_kernels_that_overlap(tmp_path: Path) -> None:
    """All kernels take 1.1 times as long; p and q, which never run alone in b, neither save nor lose time."""
    alone = [("k", 10 * US), ("m", 20 * US), ("n", 30 * US)]
    a = in_a_row(*alone, ("p", 20 * US), ("q", 20 * US))
    slower = [(name, duration * 11 // 10) for name, duration in alone]
    b = after(in_a_row(*slower), [(0, 44 * US, 7, "p"), (0, 44 * US, 8, "q")])
    assert between(a, b, tmp_path) == {"clocks": 10 * US}


def test_one_slower_kernel_among_others_is_no_clock(tmp_path: Path) -> None:
    a = in_a_row(("k", 10 * US), ("m", 20 * US), ("n", 30 * US), ("long", 300 * US))
    b = in_a_row(("k", 10 * US), ("m", 20 * US), ("n", 30 * US), ("long", 330 * US))
    assert between(a, b, tmp_path) == {"kernels_alone": 30 * US}


def test_what_overlapped_of_a_mixture_is_what_ran_alone_left_of_it(tmp_path: Path) -> None:
    """One key stands for short and long work; in b the long one shares the GPU and costs 20 us more than in a row."""
    a = in_a_row(("mixed", 10 * US), ("mixed", 90 * US), ("r", 50 * US))
    b = after(in_a_row(("mixed", 10 * US)), [(0, 160 * US, 7, "mixed"), (0, 160 * US, 8, "r")])
    assert between(a, b, tmp_path) == {"overlap_lost": 20 * US}


def test_launches_of_a_mixture_are_told_apart_by_their_turn(tmp_path: Path) -> None:
    """One key, four depths: each pair costs 10 us more at once, which a mean duration would show as gain and loss."""
    depths = [5 * US, 80 * US, 20 * US, 140 * US]
    others = [("w", 30 * US), ("x", 30 * US), ("y", 30 * US), ("z", 30 * US)]
    a = in_a_row(*(kernel for depth, other in zip(depths, others, strict=True) for kernel in (("mixed", depth), other)))
    b: list[Kernel] = []
    for depth, (name, duration) in zip(depths, others, strict=True):
        end = depth + duration + 10 * US
        pair = [(0, end, 7, "mixed"), (0, end, 8, name)]
        b = after(after(b, in_a_row(("k", 5 * US))), pair) if b else pair
    for _ in range(3):
        a = after(a, in_a_row(("k", 5 * US)))
    assert between(a, b, tmp_path) == {"overlap_lost": 40 * US}


def test_overlap_of_kernels_that_never_ran_alone_is_not_told(tmp_path: Path) -> None:
    pair = [(0, 40 * US, 7, "p"), (0, 40 * US, 8, "q")]
    longer = [(0, 50 * US, 7, "p"), (0, 50 * US, 8, "q")]
    found = diff_of(steps(pair, graphs=True, stretched=SAME), steps(longer, graphs=True, stretched=SAME), tmp_path)
    assert sizes(found) == {"unexplained": 10 * US}
    assert [step_of(found.phases[0], cause).ns for cause in ("overlap_lost", "overlap_gained")] == [None, None]


def test_solo_durations_of_another_arm_that_ran_them_alone_are_known(tmp_path: Path) -> None:
    """Neither arm is eager: graphs whose nodes run one after another tell what those side by side would take."""
    serial = in_a_row(("p", 20 * US), ("q", 20 * US))
    pair = [(0, 50 * US, 7, "p"), (0, 50 * US, 8, "q")]
    found = diff_of(steps(serial, graphs=True, stretched=SAME), steps(pair, graphs=True, stretched=SAME), tmp_path)
    assert sizes(found) == {"overlap_lost": 10 * US}


def test_a_hiccup_is_no_part_of_a_typical_instance(tmp_path: Path) -> None:
    kernels = in_a_row(("k", 100 * US), ("m", 100 * US))
    steady = steps(kernels, graphs=False, stretched=SAME)
    once = steps(kernels, graphs=False, stretched=(1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    assert sizes(diff_of(steady, once, tmp_path)) == {}


kernels_drawn = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 300), st.integers(7, 9), st.sampled_from("klmn")),
    min_size=1,
    max_size=8,
).map(lambda rows: [(start * 100, (start + duration) * 100, stream, name) for start, duration, stream, name in rows])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=kernels_drawn, b=kernels_drawn, eager=st.tuples(st.booleans(), st.booleans()))
def test_steps_add_up_whatever_ran(tmp_path: Path, a: list[Kernel], b: list[Kernel], eager: tuple[bool, bool]) -> None:
    first, second = (steps(kernels, graphs=not alone, count=7) for kernels, alone in zip((a, b), eager, strict=True))
    sizes(diff_of(first, second, tmp_path))


def test_over_blocks_a_step_is_the_mean_of_paired_differences_with_a_t_interval(tmp_path: Path) -> None:
    losses = [10 * US, 12 * US, 9 * US, 14 * US]
    a = [steps(in_a_row(("p", 20 * US), ("q", 20 * US)), graphs=False, stretched=SAME) for _ in losses]
    b = [
        steps([(0, 40 * US + loss, 7, "p"), (0, 40 * US + loss, 8, "q")], graphs=True, stretched=SAME)
        for loss in losses
    ]
    arms = [
        [open_trace(export.write(tmp_path / f"{letter}{i}.sqlite"), cached=False) for i, export in enumerate(side)]
        for letter, side in (("a", a), ("b", b))
    ]
    (phase,) = compare(arms).phases
    step = step_of(phase, "overlap_lost")
    half = stats.t.ppf(0.975, 3) * stdev(losses) / 2
    assert step.ns == pytest.approx(fmean(losses), abs=1)
    assert (step.low_ns, step.high_ns) == pytest.approx((fmean(losses) - half, fmean(losses) + half), abs=2)


def test_each_block_takes_solo_durations_from_the_eager_block_recorded_beside_it(tmp_path: Path) -> None:
    """The machine is slow in every other block; a pair of kernels loses nothing in any of them."""
    states = [1, 2, 1, 2]
    arms = []
    for letter, graphs in (("a", False), ("b", True)):
        exports = [
            steps(
                [(0, 80 * US * state, 7, "p"), (0, 80 * US * state, 8, "q")]
                if graphs
                else in_a_row(("p", 40 * US * state), ("q", 40 * US * state)),
                graphs=graphs,
                stretched=SAME,
            )
            for state in states
        ]
        arms.append(
            [open_trace(each.write(tmp_path / f"{letter}{i}.sqlite"), cached=False) for i, each in enumerate(exports)]
        )
    (phase,) = compare(arms).phases
    assert [step_of(phase, cause).ns for cause in ("overlap_lost", "overlap_gained")] == [0, 0]


def test_what_neither_arm_has_is_certain_even_of_one_instance(tmp_path: Path) -> None:
    kernels = in_a_row(("k", 10 * US), ("m", 20 * US))
    (phase,) = diff_of(
        steps(kernels, graphs=False, count=1), steps(in_a_row(("k", 15 * US)), graphs=False, count=1), tmp_path
    ).phases
    overlap, alone = step_of(phase, "overlap_lost"), step_of(phase, "kernels_alone")
    assert (overlap.ns, overlap.low_ns, overlap.high_ns) == (0, 0, 0)
    assert (alone.ns, alone.low_ns, alone.high_ns) == (5 * US, None, None)


def test_lost_records_leave_the_whole_difference_unexplained(tmp_path: Path) -> None:
    whole, lost = Export(), Export()
    kernels = in_a_row(*[("k", 10 * US)] * 12)
    for export in (whole, lost):
        for launch in range(10):
            at = 1_000_000 * (launch + 1)
            graph(export, at, kernels if export is whole or not launch else [])
            export.range(at, at + 500_000, "step", domain="tracekit")
    (phase,) = diff_of(whole, lost, tmp_path).phases
    assert {step.ns for step in phase.waterfall[:-1]} <= {None}


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=40))
def test_typical_instances_are_the_middle_half(times: list[float]) -> None:
    weights = typical_weights(np.array(times))
    assert weights.sum() == pytest.approx(1)
    ordered = weights[np.argsort(times, kind="stable")]
    assert ordered == pytest.approx(ordered[::-1])
    assert (weights > 0).sum() <= len(times) / 2 + 2
    if len(times) % 4 == 0:
        assert weights @ np.array(times) == pytest.approx(stats.trim_mean(times, 0.25))


def test_resampling_finds_the_standard_error_of_a_trimmed_mean() -> None:
    random = np.random.default_rng(7)
    means, errors = [], []
    for _ in range(200):
        times = random.normal(100, 5, 40)
        means.append(stats.trim_mean(times, 0.25))
        errors.append(resampled_deviations(times, times[:, np.newaxis], "a").std())
    assert fmean(errors) == pytest.approx(stdev(means), rel=0.15)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 25)), min_size=1, max_size=14))
def test_episodes_of_one_cluster_are_linked_by_an_instance_of_both(drawn: list[tuple[int, int]]) -> None:
    runs = sorted((start, start + length) for start, length in drawn)
    frame = pl.DataFrame({"start": [run[0] for run in runs], "end": [run[1] for run in runs]})
    number = pl.Series("group", range(len(runs)), dtype=pl.UInt32)
    found = find_episodes(frame, number, pl.DataFrame(schema=SOLO), np.zeros(len(runs), np.int64)).episodes
    spans = list(zip(found["start"], found["end"], strict=True))
    linked = [
        any(start < one_end and end > one and start < other_end and end > other for start, end in runs)
        for (one, one_end), (other, other_end) in pairwise(spans)
    ]
    clusters = found["cluster"].to_list()
    assert [one == other for one, other in pairwise(clusters)] == linked


def factor_of(ratios: list[float], times: list[float] | None = None, whole: float | None = None) -> float | None:
    times = times or [1e6] * len(ratios)
    frame = pl.DataFrame(
        {
            "group": pl.Series(range(len(ratios)), dtype=pl.UInt32),
            "a": [1000.0] * len(ratios),
            "b": [1000.0 * ratio for ratio in ratios],
            "time": times,
        }
    )
    found = common_factor(frame, whole or sum(times))
    return None if found is None else found.factor


def test_kernels_that_all_differ_alike_share_a_factor() -> None:
    assert factor_of([1.1, 1.1, 1.1, 1.1]) == pytest.approx(1.1)
    assert factor_of([1.09, 1.11, 1.10, 1.10, 1.102]) == pytest.approx(1.1, rel=0.01)


@pytest.mark.parametrize(
    "ratios",
    [
        pytest.param([1.1, 1.1], id="two kernels may differ by themselves"),
        pytest.param([1.5, 1.0, 1.0, 1.0], id="one of four is slower"),
        pytest.param([1.05, 1.2, 1.5, 2.0], id="each is slower by its own factor"),
        pytest.param([1.01, 0.99, 1.02, 0.98, 1.0], id="noise"),
    ],
)
def test_kernels_that_differ_each_by_itself_share_none(ratios: list[float]) -> None:
    assert factor_of(ratios) is None


def test_a_kernel_with_nearly_all_of_the_time_makes_no_common_factor() -> None:
    assert factor_of([1.1, 1.0, 1.0, 1.0], [97e6, 1e6, 1e6, 1e6]) is None


def test_a_few_short_kernels_do_not_speak_for_the_rest() -> None:
    assert factor_of([1.1, 1.1, 1.1], whole=100e6) is None
