"""Time of one operation from loops of several lengths."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.bench.fit import fit_line, median_interval, needed_length, settled

times = st.floats(1.0, 1e9)


@settings(deadline=None)
@given(overhead=st.floats(0, 1e9), each=st.floats(1, 1e9))
def test_a_line_without_noise_is_found_exactly(overhead: float, each: float) -> None:
    lengths = [8, 8, 16, 32, 64]
    line = fit_line(lengths, [overhead + length * each for length in lengths])
    assert line.per_operation == pytest.approx(each, rel=1e-5)
    assert line.overhead == pytest.approx(overhead, rel=1e-5, abs=each * 1e-3)
    assert line.low <= line.high


def test_a_quarter_of_outliers_does_not_move_the_line() -> None:
    lengths = [length for length in (8, 16, 32, 64) for _ in range(8)]
    clean = [100_000 + 60_000 * length for length in lengths]
    spoilt = [time * (3 if index % 4 == 0 else 1) for index, time in enumerate(clean)]
    line = fit_line(lengths, spoilt)
    assert line.per_operation == pytest.approx(60_000, rel=0.02)
    least_squares = np.polyfit(lengths, spoilt, 1)[0]
    assert least_squares > 1.3 * 60_000


def test_the_interval_of_the_slope_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    lengths = np.repeat([8, 16, 32, 64], 5)
    held = 0
    for _ in range(300):
        line = fit_line(list(lengths), list(1e5 + 6e4 * lengths + random.normal(0, 2e5, lengths.size)))
        held += line.low <= 6e4 <= line.high
    assert 0.90 <= held / 300 <= 0.99


@pytest.mark.parametrize(
    ("second", "expected"), [(1.0, True), (1.019, True), (1.021, False), (0.98, True), (0.97, False), (-1.0, False)]
)
def test_it_settles_when_a_longer_loop_changes_the_time_by_two_percent_at_most(second: float, expected: bool) -> None:
    lengths = [8, 16]
    before = fit_line(lengths, [80.0, 160.0])
    after = fit_line(lengths, [second * 80.0, second * 160.0])
    assert settled(after, before) is expected


def test_it_does_not_settle_while_the_interval_is_wide() -> None:
    lengths = [8, 8, 8, 16, 16, 16]
    wide = fit_line(lengths, [60.0, 80.0, 100.0, 130.0, 160.0, 190.0])
    assert not settled(wide, wide)


@settings(deadline=None)
@given(overhead=st.floats(0, 1e9), each=st.floats(1, 1e9))
def test_from_the_needed_length_on_dividing_by_the_length_is_within_two_percent(overhead: float, each: float) -> None:
    needed = needed_length(overhead, each)
    assert (overhead + needed * each) / needed <= each * 1.02 * (1 + 1e-9)
    if needed > 1:
        assert (overhead + (needed - 1) * each) / (needed - 1) > each * 1.02 * (1 - 1e-9)


def chance_that_the_median_lies_outside(count: int, cut: int) -> float:
    """Both ends, when ``cut`` values are cut off at each: by counting heads."""
    return 2.0 * sum(math.comb(count, heads) for heads in range(cut + 1)) / 2.0**count


@pytest.mark.parametrize("count", range(1, 40))
def test_the_interval_of_a_median_cuts_off_as_many_values_as_95_percent_allow(count: int) -> None:
    interval = median_interval(np.arange(count, dtype=np.float64))
    if interval is None:
        assert chance_that_the_median_lies_outside(count, 0) > 0.05
        return
    cut = round(interval[0])
    assert interval == (cut, count - 1 - cut)
    assert chance_that_the_median_lies_outside(count, cut) <= 0.05
    assert chance_that_the_median_lies_outside(count, cut + 1) > 0.05


@settings(deadline=None)
@given(st.lists(times, min_size=6, max_size=30))
def test_the_interval_of_a_median_holds_it(values: list[float]) -> None:
    interval = median_interval(np.array(values))
    assert interval is not None
    assert interval[0] <= np.median(values) <= interval[1]


def lengths_tried(run: Callable[[int], int]) -> tuple[list[int], int, bool]:
    timing = pytest.importorskip("tracekit.bench.timing", reason="MLX is not installed")
    tried: list[int] = []

    def noted(turns: int) -> int:
        tried.append(turns)
        return run(turns)

    length = timing.find_length(noted)
    return list(dict.fromkeys(tried)), length.turns, length.settled


def test_a_steady_chain_is_long_enough_once_two_fits_agree() -> None:
    tried, turns, is_settled = lengths_tried(lambda turns: 200_000 + 50_000 * turns)
    assert (tried, turns, is_settled) == ([8, 16, 32], 32, True)


def test_a_chain_that_pays_more_at_first_is_made_longer() -> None:
    tried, turns, is_settled = lengths_tried(lambda turns: 50_000 * turns + 400_000 * min(turns, 20))
    assert is_settled
    assert turns > 32
    assert tried[-1] == turns


def test_a_chain_that_never_settles_ends_at_the_longest() -> None:
    noise = itertools.cycle([1.0, 1.5, 0.6, 2.0, 0.8, 1.2, 0.7])
    _, turns, is_settled = lengths_tried(lambda turns: round(10_000 * turns * next(noise)))
    assert (turns, is_settled) == (2048, False)


def test_a_chain_of_half_a_second_is_long_enough() -> None:
    tried, turns, is_settled = lengths_tried(lambda turns: 60_000_000 * turns)
    assert (tried, turns, is_settled) == ([8], 8, True)
