"""What is checked before a comparison is believed, with its figure, and what keeps a verdict from being given."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from field_notation import diff_of, shown
from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.results import Check, Diff
from tracekit.analysis.statistics.steadiness import drift, states_of_both, two_states
from tracekit.capture.machine import GpuState, Machine
from tracekit.capture.run_folder import Block, Manifest, Nsys, RecordedArm
from tracekit.commands.sides import with_profiler_cost
from tracekit.trace.source import open_trace

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

MS = 1_000_000


def timed(times: Sequence[float]) -> Export:
    """Steps far apart, each with one kernel of so many ns; the first is warm-up."""
    export, now = Export(), MS
    for time in map(round, [times[0], *times]):
        correlation = export.launch(now, now + 1000)
        export.kernel(now + 2000, now + 2000 + time, correlation=correlation)
        export.range(now, now + 3000 + time, "step", domain="tracekit")
        now += MS + time
    return export


def blocks_of(folder: Path, arms: Sequence[Sequence[float]], *, instances: int = 6, noise: float = 0.002) -> Diff:
    """Arms of several blocks, each with a median time of its own."""
    random = Random(3)
    sides = []
    for letter, arm in zip("abc", arms, strict=False):
        paths = [folder / f"{letter}{place}.sqlite" for place in range(len(arm))]
        for path, time in zip(paths, arm, strict=True):
            timed([time * random.gauss(1, noise) for _ in range(instances)]).write(path)
        sides.append([open_trace(path, cached=False) for path in paths])
    return compare(sides)


def check(answer: Diff, name: str, arm: str | None = None, phase: str | None = "step") -> Check:
    (found,) = (each for each in answer.trust if (each.name, each.arm, each.phase) == (name, arm, phase))
    return found


def outcomes(answer: Diff, outcome: str) -> set[str]:
    return {each.name for each in answer.trust if each.outcome == outcome}


# Noise is not called anything.


def normal(random: np.random.Generator, count: int) -> Floats:
    return np.exp(random.normal(0, 0.1, count))


def uniform(random: np.random.Generator, count: int) -> Floats:
    return 1 + 0.2 * random.random(count)


def skewed(random: np.random.Generator, count: int) -> Floats:
    return 1 + 0.2 * random.exponential(1, count)


def heavy_tailed(random: np.random.Generator, count: int) -> Floats:
    return np.abs(1 + 0.02 * random.standard_t(1.5, count)) + 0.01


@pytest.mark.parametrize("draw", [normal, uniform, skewed, heavy_tailed])
@pytest.mark.parametrize("count", [5, 6, 8, 10, 12, 15, 20, 50, 300])
def test_noise_alone_rarely_has_two_states_or_drifts(draw: Draw, count: int) -> None:
    """1 % of series of any shape, within what 1500 of them tell."""
    random = np.random.default_rng(11)
    series = [1e6 * draw(random, count) for _ in range(1500)]
    states = [found for found in map(two_states, series) if found and found.found]
    trends = [found for found in map(drift, series) if found and found.found]
    assert len(states) <= 0.0175 * len(series)
    assert len(trends) <= 0.0100 * len(series)


@pytest.mark.parametrize("blocks", [3, 4])
@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_noise_of_the_blocks_of_two_arms_rarely_has_two_states(blocks: int, spread: float) -> None:
    random = np.random.default_rng(12)
    found = [
        states_of_both([1e6 * np.exp(random.normal(level, spread, blocks)) for level in (0.0, 0.5)])
        for _ in range(1500)
    ]
    assert sum(states is not None and states.found for states in found) <= 0.01 * len(found)


def test_noise_of_the_same_arm_twice_fails_no_check(tmp_path: Path) -> None:
    random = Random(5)
    for seed in range(20):
        a, b = ([MS * random.gauss(1, 0.03) for _ in range(25)] for _ in range(2))
        (tmp_path / str(seed)).mkdir()
        assert outcomes(diff_of(timed(a), timed(b), tmp_path / str(seed)), "fail") == set()


# Times that one median cannot stand for.


def test_states_that_both_arms_meet_in_turn_give_no_verdict(tmp_path: Path) -> None:
    """Four blocks an arm are too few to see two states, those of both arms are enough."""
    answer = blocks_of(tmp_path, [[63e6, 94e6, 63e6, 94e6], [94e6, 63e6, 94e6, 63e6]])
    found = check(answer, "states of both", "b")
    assert (found.outcome, found.withholds) == ("fail", True)
    assert found.figure == pytest.approx(94 / 63, rel=0.01)
    assert "bimodal: 4 near 63" in found.message
    assert {check(answer, "states", arm).outcome for arm in "ab"} == {"cannot tell"}
    assert (answer.phases[0].verdict.winner, answer.verdict.winner) == ("undecided", "undecided")
    assert "bimodal" in answer.phases[0].verdict.reason


def test_two_states_of_one_arm_are_called_from_five_blocks_on(tmp_path: Path) -> None:
    answer = blocks_of(tmp_path, [[63e6, 94e6, 63e6, 94e6, 63e6], [50e6] * 5])
    found = check(answer, "states", "a")
    assert (found.outcome, found.withholds) == ("fail", True)
    assert check(answer, "states", "b").outcome == "pass"
    assert answer.phases[0].verdict.winner == "undecided"


def test_a_rising_arm_shows_its_first_and_last_tenth(tmp_path: Path) -> None:
    random = Random(1)
    rising = [MS * (1 + 0.15 * place / 99) * random.gauss(1, 0.002) for place in range(100)]
    answer = diff_of(timed(rising), timed([MS * random.gauss(1, 0.002) for _ in range(100)]), tmp_path)
    found = check(answer, "drift", "a")
    assert (found.outcome, found.withholds) == ("fail", True)
    assert found.figure == pytest.approx(0.136, abs=0.01)
    assert "the first tenth takes 1.01 ms, the last 1.14 ms" in found.message
    assert check(answer, "drift", "b").outcome == "pass"
    assert answer.phases[0].verdict.winner == "undecided"
    assert "the first tenth takes 1.01 ms, the last 1.14 ms" in shown(answer)


def test_drift_within_blocks_is_told_but_the_blocks_still_decide(tmp_path: Path) -> None:
    random = Random(2)
    sides = []
    for letter, level in (("a", 1.0), ("b", 1.3)):
        paths = [tmp_path / f"{letter}{place}.sqlite" for place in range(4)]
        for path in paths:
            rise = [level * MS * (1 + 0.1 * place / 29) * random.gauss(1, 0.002) for place in range(30)]
            timed(rise).write(path)
        sides.append([open_trace(path, cached=False) for path in paths])
    answer = compare(sides)
    found = check(answer, "drift", "a")
    assert (found.outcome, found.withholds) == ("warn", False)
    assert "in a block" in found.message
    assert answer.phases[0].verdict.winner == "a"


def test_too_few_times_in_a_row_cannot_tell_drift(tmp_path: Path) -> None:
    answer = diff_of(timed([MS, MS + 1, MS + 2, MS + 3, MS + 4]), timed([MS] * 5), tmp_path)
    found = check(answer, "drift", "a")
    assert (found.outcome, found.figure) == ("cannot tell", None)


def test_hiccups_are_told_by_their_share_of_the_time(tmp_path: Path) -> None:
    """Three of forty steps take ten times as long: 30 of 67 ms."""
    random = Random(4)
    times = [MS * random.gauss(1, 0.005) * (10 if place in (7, 19, 33) else 1) for place in range(40)]
    answer = diff_of(timed(times), timed([MS * random.gauss(1, 0.005) for _ in range(40)]), tmp_path)
    found = check(answer, "outliers", "a")
    assert (found.outcome, found.withholds) == ("warn", False)
    assert found.figure == pytest.approx(30 / 67, abs=0.01)
    assert check(answer, "outliers", "b").outcome == "pass"


def test_too_few_instances_fail_and_say_how_many_are_needed(tmp_path: Path) -> None:
    answer = diff_of(timed([MS] * 4), timed([MS] * 9), tmp_path)
    found = check(answer, "instances", "a")
    assert (found.figure, found.threshold, found.outcome, found.withholds) == (4, 5, "fail", True)
    assert check(answer, "instances", "b").outcome == "pass"
    assert answer.phases[0].verdict.winner == "undecided"


# Arms against each other.


def test_arms_closer_than_their_blocks_vary_get_no_verdict(tmp_path: Path) -> None:
    """14 pairs, 5 % apart on average, varying by 7 %: the interval is clear of 1, the arms are not clear of noise."""
    a = [MS] * 14
    apart = [-0.065, 0.135, 0.01, 0.1, 0.12, -0.03, 0.11, 0.09, 0.14, -0.02, 0.1, 0.13, 0.02, 0.12]
    answer = blocks_of(tmp_path, [a, [MS * (1 + each) for each in apart]], noise=0.0)
    found = check(answer, "spread of blocks", "b")
    assert found.figure == pytest.approx(np.mean(np.log1p(apart)) / np.std(np.log1p(apart), ddof=1), rel=1e-3)
    assert found.figure is not None
    assert found.figure < 1
    assert answer.phases[0].ci95 is not None
    assert answer.phases[0].ci95[0] > 1.02
    assert (found.outcome, answer.phases[0].verdict.winner) == ("fail", "undecided")
    assert "their blocks vary by" in answer.phases[0].verdict.reason


def test_arms_that_are_the_same_may_be_as_close_as_they_like(tmp_path: Path) -> None:
    answer = blocks_of(tmp_path, [[MS * (1 + 0.001 * place) for place in (0, 2, 1, 3, 0, 2)], [MS * 1.001] * 6])
    assert check(answer, "spread of blocks", "b").outcome == "pass"
    assert answer.phases[0].verdict.winner == "tie"


def test_one_trace_a_side_cannot_tell_how_much_runs_differ(tmp_path: Path) -> None:
    answer = diff_of(timed([MS] * 9), timed([2 * MS] * 9), tmp_path)
    assert check(answer, "spread of blocks", "b").outcome == "cannot tell"
    assert answer.phases[0].verdict.winner == "a"


def test_arms_of_different_gpus_get_no_verdict(tmp_path: Path) -> None:
    exports = [timed([MS] * 9), timed([2 * MS] * 9)]
    for export, name in zip(exports, ("GPU of one kind", "GPU of another"), strict=True):
        export.gpu(0, name)
    answer = diff_of(exports[0], exports[1], tmp_path)
    found = check(answer, "same GPU", None, None)
    assert (found.figure, found.outcome, found.withholds) == (2, "fail", True)
    assert (answer.phases[0].verdict.winner, answer.verdict.winner) == ("undecided", "undecided")


def test_different_versions_of_nsys_are_told(tmp_path: Path) -> None:
    export = Export(product="2024.6.2.225")
    for index in range(6):
        correlation = export.launch(MS * (index + 1), MS * (index + 1) + 10)
        export.kernel(MS * (index + 1) + 20, MS * (index + 1) + 30, correlation=correlation)
    answer = diff_of(timed([MS] * 9), export, tmp_path)
    found = check(answer, "same nsys", None, None)
    assert (found.outcome, found.withholds) == ("warn", False)
    assert "2024.6.2.225, 2026.2.1.210" in found.message


def test_lost_records_of_an_arm_leave_every_phase_undecided(tmp_path: Path) -> None:
    export = Export()
    for index in range(9):
        at = MS * (index + 1)
        correlation = export.launch(at, at + 10, "cudaGraphLaunch_v10000")
        for node in range(12 if index == 0 else 3):
            export.kernel(at + 20 + node, at + 21 + node, correlation=correlation, node=2 << 32 | node + 1)
        export.range(at, at + 100, "step", domain="tracekit")
    answer = diff_of(export, timed([MS] * 9), tmp_path)
    found = check(answer, "lost records", "a", None)
    assert (found.outcome, found.withholds) == ("fail", True)
    assert found.figure == pytest.approx((12 + 8 * 3) / (9 * 12), abs=1e-6)
    assert answer.phases[0].verdict.winner == "undecided"


def test_hidden_kernels_and_impossible_times_are_told_with_their_amount(tmp_path: Path) -> None:
    export = timed([MS] * 9)
    correlation = export.launch(500, 600, "cudaGraphLaunch_v10000")
    export.graph_trace(700, 700 + MS, correlation)
    export.kernel(900, 800)
    answer = diff_of(export, timed([MS] * 9), tmp_path)
    hidden, impossible = check(answer, "hidden kernels", "a", None), check(answer, "impossible times", "a", None)
    assert hidden.figure == pytest.approx(1 / 11, abs=1e-3)
    assert hidden.outcome == "fail"
    assert (impossible.figure, impossible.outcome) == (1, "warn")
    assert check(answer, "hidden kernels", "b", None).outcome == "pass"


# The record of a run.


def manifest(
    walls: dict[str, tuple[float, float]],
    *,
    order: Sequence[tuple[str, int]] = (),
    before: Sequence[GpuState] = (),
    after: Sequence[GpuState] = (),
) -> Manifest:
    """A run of these arms: unprofiled and profiled seconds of each; ``order`` of (arm, block), by default in turn."""
    names = list(walls)
    order = order or [(name, block) for block in (1, 2, 3) for name in (names if block % 2 else names[::-1])]
    return Manifest(
        name="run",
        state="complete",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        command=["bench"],
        annotate="none",
        framework=None,
        packages={},
        machine=Machine(before=list(before), after=list(after)),
        nsys=Nsys("2026.2.1.210", []),
        environment={},
        arms=[RecordedArm(name, "own", {}, []) for name in names],
        blocks=[
            Block(
                name,
                block,
                trace=f"{name}-{block}.sqlite",
                plain_wall_s=walls[name][0],
                profiled_wall_s=walls[name][1],
            )
            for name, block in order
        ],
    )


@pytest.fixture
def decided(tmp_path: Path) -> Diff:
    """Two arms, of which the first wins."""
    answer = diff_of(timed([MS] * 9), timed([2 * MS] * 9), tmp_path)
    assert answer.verdict.winner == "a"
    return answer


@pytest.mark.parametrize(("profiled", "outcome"), [(8.0, "pass"), (8.6, "warn"), (9.9, "fail")])
def test_a_profiler_that_changes_the_wall_time_makes_overlap_indicative_only(
    decided: Diff, profiled: float, outcome: str
) -> None:
    answer = with_profiler_cost(decided, manifest({"on": (7.6, profiled), "off": (15.2, 15.4)}))
    found = check(answer, "profiler", "a", None)
    assert found.figure == pytest.approx(profiled / 7.6, abs=1e-4)
    assert (found.outcome, found.withholds) == (outcome, False)
    assert ("overlap is indicative only" in found.message) == (outcome != "pass")
    assert check(answer, "profiler", "b", None).outcome == "pass"
    assert answer.verdict.winner == "a"


def test_arms_that_change_places_without_the_profiler_get_no_verdict(decided: Diff) -> None:
    answer = with_profiler_cost(decided, manifest({"on": (7.6, 8.0), "off": (7.0, 9.0)}))
    (found,) = (each for each in answer.trust if each.name == "order of arms")
    assert (found.outcome, found.withholds) == ("fail", True)
    assert answer.verdict.winner == "undecided"
    assert "off takes 0.921 times as long as on unprofiled and 1.125 times profiled" in answer.verdict.reason


def test_the_order_of_blocks_tells_whether_arms_took_turns(decided: Diff) -> None:
    walls = {"on": (1.0, 1.0), "off": (1.0, 1.0)}
    in_turn = with_profiler_cost(decided, manifest(walls))
    apart = [(name, block) for name in walls for block in (1, 2, 3)]
    one_by_one = with_profiler_cost(decided, manifest(walls, order=apart))
    assert [check(each, "turns", None, None).outcome for each in (in_turn, one_by_one)] == ["pass", "warn"]


def test_a_gpu_that_was_slowed_is_told_with_the_reason(decided: Diff) -> None:
    def state(*reasons: str) -> GpuState:
        return GpuState(1500.0, 2000.0, 1000.0, 100.0, 300.0, 60.0, list(reasons))

    walls = {"on": (1.0, 1.0), "off": (1.0, 1.0)}
    slowed = with_profiler_cost(decided, manifest(walls, before=[state("gpu_idle")], after=[state("sw_power_cap")]))
    cool = with_profiler_cost(decided, manifest(walls, before=[state("gpu_idle")], after=[state()]))
    unknown = with_profiler_cost(decided, manifest(walls))
    found: list[Any] = [check(each, "throttling", None, None) for each in (slowed, cool, unknown)]
    assert [each.outcome for each in found] == ["warn", "pass", "cannot tell"]
    assert "sw_power_cap" in found[0].message
    assert [each.figure for each in found] == [1, 0, None]


# What a person is shown.


def test_a_person_sees_what_did_not_pass_and_how_many_did(tmp_path: Path) -> None:
    answer = diff_of(timed([MS] * 6), timed([MS] * 6), tmp_path)
    text = shown(answer)
    section = text[text.index("\nTrust\n") :]
    passed = sum(each.outcome == "pass" for each in answer.trust)
    assert f"{passed} checks passed" in section
    assert "instances are needed" not in section
    # What both arms fail to tell for the same reason stands once.
    assert section.count("too few to see drift") == 1


def test_where_instances_are_too_few_a_person_reads_only_that(tmp_path: Path) -> None:
    text = shown(diff_of(timed([MS] * 4), timed([MS] * 6), tmp_path))
    section = text[text.index("\nTrust\n") :]
    assert "a has n = 4, 5 instances are needed" in section
    (of_drift,) = (line for line in section.splitlines() if line.startswith("drift"))
    assert of_drift.split()[:4] == ["drift", "cannot", "tell", "b"]


def test_of_three_arms_none_is_best_where_a_check_withholds_the_verdict(tmp_path: Path) -> None:
    exports = [
        timed([time * MS] * 9).write(tmp_path / f"{letter}.sqlite")
        for letter, time in zip("abc", (3, 2, 1), strict=True)
    ]
    random = Random(1)
    rising = timed([2 * MS * (1 + 0.15 * place / 29) * random.gauss(1, 0.002) for place in range(30)])
    drifting = [exports[0], rising.write(tmp_path / "d.sqlite"), exports[2]]
    steady, withheld = (compare([open_trace(path, cached=False) for path in each]) for each in (exports, drifting))
    assert ({row.best for row in steady.phases}, steady.verdict.winner) == ({"c"}, "b")
    assert ({row.best for row in withheld.phases}, withheld.verdict.winner) == ({None}, "undecided")
    assert [row.verdict.winner for row in withheld.phases] == ["undecided", "b"]
