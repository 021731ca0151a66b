"""A graph run beside an eager run of the same work: what is time lost, and what only looks like it."""

from pathlib import Path

import pytest
from field_notation import LEAD, MS, Kernel, diff_of, eager, graph, shown, steps
from nsys_export import Export

from tracekit.analysis.results import Diff

CALLED_A_LOSS = ("regress", "overlap lost", "lost time each", "slowdown")


def in_a_row(duration: int, count: int) -> list[Kernel]:
    return [(index * duration, (index + 1) * duration, 7, "qmm") for index in range(count)]


def at_once(duration: int, count: int) -> list[Kernel]:
    return [(0, duration, 7 + index, "qmm") for index in range(count)]


def calls_no_loss(text: str) -> bool:
    return not any(word in text.lower() for word in CALLED_A_LOSS)


def test_three_at_once_are_slower_each_and_faster_together(tmp_path: Path) -> None:
    a, b = Export(), Export()
    eager(a, MS, in_a_row(7_600_000, 3))
    graph(b, MS, at_once(21_400_000, 3))
    answer = diff_of(a, b, tmp_path)
    (kernel,), (phase,) = answer.kernels, answer.phases
    assert kernel.ratio == pytest.approx(21.4 / 7.6, abs=1e-6)
    assert phase.ratio == pytest.approx(21.4 / 22.8, abs=1e-6)
    assert (phase.time_ns_a, phase.time_ns_b) == (22_800_000, 21_400_000)
    assert (phase.n_a, phase.n_b) == (1, 1)
    assert answer.verdict.winner == "undecided"
    assert kernel.status == "undecided"
    text = shown(answer)
    assert "2.82" in text
    assert "0.939" in text
    assert calls_no_loss(text)


@pytest.mark.parametrize(
    ("alone", "beside", "count", "winner"),
    [
        pytest.param(7_600_000, 21_400_000, 3, "b", id="21.4 against 7.6 with three at once wins"),
        pytest.param(7_600_000, 21_400_000, 2, "a", id="21.4 against 7.6 with two at once loses"),
        pytest.param(7_400_000, 12_800_000, 2, "b", id="12.8 against 7.4 with two at once wins"),
        pytest.param(7_400_000, 14_800_000, 2, "tie", id="twice as long with two at once is no difference"),
        pytest.param(7_400_000, 22_200_000, 3, "tie", id="thrice as long with three at once is no difference"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True], ids=["eager first", "graph first"])
def test_the_verdict_is_on_the_time_of_the_phase(
    tmp_path: Path, alone: int, beside: int, count: int, winner: str, swapped: bool
) -> None:
    arms = [
        steps(in_a_row(alone, count), graphs=False, name="prefill"),
        steps(at_once(beside, count), graphs=True, name="prefill"),
    ]
    first, second = reversed(arms) if swapped else arms
    answer = diff_of(first, second, tmp_path)
    (kernel,), (phase,) = answer.kernels, answer.phases
    medians, whole = beside / alone, beside / (alone * count)
    if swapped:
        winner = {"a": "b", "b": "a"}.get(winner, winner)
        medians, whole = 1 / medians, 1 / whole
    assert (phase.n_a, phase.n_b) == (8, 8)
    assert kernel.ratio == pytest.approx(medians, rel=1e-3)
    assert phase.ratio == pytest.approx(whole, rel=1e-3)
    assert phase.verdict.winner == answer.verdict.winner == winner
    gains = phase.overlap_gain_ns_a, phase.overlap_gain_ns_b
    assert gains[not swapped] == pytest.approx(alone * count - beside, abs=0.003 * beside)
    assert gains[swapped] == 0
    text = shown(answer)
    assert f"{phase.ratio:.3f}" in text
    assert f"{kernel.ratio:.3f}" in text
    assert calls_no_loss(text) == (beside <= alone * count)


def sentences(answer: Diff) -> list[str]:
    return [part.strip() for phase in answer.phases for part in phase.verdict.reason.split(". ")]


def test_a_slower_median_in_a_faster_phase_is_explained_to_a_person(tmp_path: Path) -> None:
    a = steps(in_a_row(7_600_000, 3), graphs=False)
    b = steps(at_once(21_400_000, 3), graphs=True)
    told = sentences(diff_of(a, b, tmp_path))
    assert any("2.82x" in each and "not lost time" in each for each in told)
    assert any("saved 1.40 ms" in each for each in told)


def test_a_slower_median_in_a_slower_phase_is_a_loss_of_its_overlap(tmp_path: Path) -> None:
    a = steps(in_a_row(7_600_000, 2), graphs=False)
    b = steps(at_once(21_400_000, 2), graphs=True)
    told = sentences(diff_of(a, b, tmp_path))
    assert any("lost 6.20 ms" in each for each in told)
    assert not any("not lost time" in each for each in told)


def copies(durations: list[int]) -> list[Kernel]:
    """A copy split into ``durations``, back to back, beside an unchanged kernel."""
    starts = [100_000 + sum(durations[:index]) for index in range(len(durations))]
    split = [(start, start + duration, 7, "copy") for start, duration in zip(starts, durations, strict=True)]
    return [(0, 50_000, 7, "other"), *split]


@pytest.mark.parametrize(
    ("pieces", "median_ratio", "time_ratio"),
    [
        ([1472, 1472], 1472 / 3908, 2944 / 3908),
        ([1954, 1954], 0.5, 1.0),
        ([2000, 2000, 2000], 2000 / 3908, 6000 / 3908),
    ],
)
def test_a_kernel_split_into_several_is_flagged_by_its_count(
    tmp_path: Path, pieces: list[int], median_ratio: float, time_ratio: float
) -> None:
    same = (1.0,)
    a = steps(copies([3908]), graphs=False, stretched=same)
    b = steps(copies(pieces), graphs=True, stretched=same)
    answer = diff_of(a, b, tmp_path)
    row = next(row for row in answer.kernels if row.name == "copy")
    assert row.ratio == pytest.approx(median_ratio, abs=1e-6)
    assert row.per_iteration_ns_a is not None
    assert row.per_iteration_ns_b is not None
    assert row.per_iteration_ns_b / row.per_iteration_ns_a == pytest.approx(time_ratio)
    assert (row.per_iteration_a, row.per_iteration_b) == (1, len(pieces))
    assert row.note is not None
    assert f"1 -> {len(pieces)}" in row.note
    other = next(row for row in answer.kernels if row.name == "other")
    assert (other.status, other.note) == ("same", None)
    text = shown(answer)
    assert f"1 -> {len(pieces)}" in text


def test_a_kernel_split_in_two_is_flagged_without_ranges(tmp_path: Path) -> None:
    a, b = Export(), Export()
    eager(a, MS, copies([3908]))
    graph(b, MS, copies([1472, 1472]))
    row = next(row for row in diff_of(a, b, tmp_path).kernels if row.name == "copy")
    assert (row.count_a, row.count_b) == (1, 2)
    assert row.note is not None
    assert "1 -> 2" in row.note


def test_time_per_iteration_is_shown_where_the_count_changed(tmp_path: Path) -> None:
    a = steps(copies([3908]), graphs=False, stretched=(1.0,))
    b = steps(copies([1472, 1472]), graphs=True, stretched=(1.0,))
    text = shown(diff_of(a, b, tmp_path))
    assert "0.377" in text
    assert "0.753" in text


@pytest.mark.parametrize("graphs", [False, True])
def test_kernels_on_one_side_are_listed_and_not_paired_by_position(tmp_path: Path, graphs: bool) -> None:
    a = steps([(0, 1000, 7, "A"), (2000, 4000, 7, "B")], graphs=graphs)
    b = steps([(0, 1000, 7, "A"), (2000, 4000, 7, "C")], graphs=True)
    answer = diff_of(a, b, tmp_path)
    assert [row.name for row in answer.kernels] == ["A"]
    assert [(row.name, row.count, row.median_ns) for row in answer.only_a] == [("B", 8, 2000)]
    assert [(row.name, row.count, row.median_ns) for row in answer.only_b] == [("C", 8, 2000)]
    assert "Kernels only in a" in shown(answer)


def test_kernels_of_one_side_are_listed_when_nothing_is_shared(tmp_path: Path) -> None:
    a = steps([(0, 1000, 7, "A")], graphs=False)
    b = steps([(0, 1000, 7, "B")], graphs=True)
    answer = diff_of(a, b, tmp_path)
    assert (answer.kernels, [row.name for row in answer.only_a], [row.name for row in answer.only_b]) == (
        [],
        ["A"],
        ["B"],
    )


def spaced(gap: int) -> list[Kernel]:
    return [(index * (5000 + gap), index * (5000 + gap) + 5000, 7, f"k{index}") for index in range(20)]


@pytest.mark.parametrize("swapped", [False, True])
def test_equal_kernels_with_larger_gaps_are_told_apart_from_slower_kernels(tmp_path: Path, swapped: bool) -> None:
    short, long = (steps(spaced(gap), graphs=False) for gap in (1000, 4000))
    answer = diff_of(*((long, short) if swapped else (short, long)), tmp_path)
    assert {row.status for row in answer.kernels} == {"same"}
    assert answer.verdict.winner == ("b" if swapped else "a")
    sign = "-" if swapped else "+"
    assert f"Kernels unchanged, gap time {sign}57.0 us per step" in shown(answer)


def test_slower_kernels_with_equal_gaps_are_not_called_gaps(tmp_path: Path) -> None:
    def kernels(duration: int) -> list[Kernel]:
        return [(i * (duration + 1000), i * (duration + 1000) + duration, 7, f"k{i}") for i in range(20)]

    answer = diff_of(steps(kernels(5000), graphs=False), steps(kernels(8000), graphs=False), tmp_path)
    assert {row.status for row in answer.kernels} == {"slower"}
    text = shown(answer)
    assert "gap time" not in text
    assert "+60.0 us from one factor for all kernels, 1.600x" in text


def test_the_range_to_the_first_kernel_counts(tmp_path: Path) -> None:
    """An isolated phase lasts from the start of its range, where the host begins to work for it."""
    answer = diff_of(
        steps([(0, 50_000, 7, "k")], graphs=False, stretched=(1.0,)),
        steps([(100_000, 150_000, 7, "k")], graphs=False, stretched=(1.0,)),
        tmp_path,
    )
    assert answer.phases[0].time_ns_a == LEAD + 50_000
    assert answer.phases[0].time_ns_b == LEAD + 150_000
