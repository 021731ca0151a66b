"""What times say against one another: published pairs of measurements, and planted tables of two kernels."""

import math

import msgspec
import numpy as np
import pytest
from bench_building import answer, row, told
from hypothesis import given
from hypothesis import strategies as st

from tracekit.analysis.results.bench import BenchRow, Cell, Mark, Method
from tracekit.bench.contrasts import contrasts, crossovers, decided, flips, ratio_of, steps
from tracekit.bench.rows import Measured, rows_of

BANDWIDTH = 800e9
FLOOR = 100_000.0


def cell(method: Method = "chain", m: int = 1) -> Cell:
    return Cell("stock", m, "bare", "hot", method)


def measured(time_ms: float, cell: Cell, *, size: int | None = None, build_ms: float = 0.001) -> Measured:
    """Fifteen samples that are all the same."""
    times = np.full(15, time_ms * 1e6)
    return Measured(cell, times, np.zeros(15), np.full(15, build_ms * 1e6), size, 64)


def marks(*given: Measured) -> list[list[Mark]]:
    return [row.marks for row in rows_of(given, BANDWIDTH, FLOOR)]


# Published: 4-bit, 5120 x 17408, M=1 on an M3 Ultra.
FOUR_BIT = [row(0.060), row(0.041, method="batched")]

# Published: one kernel against stock, 32 independent calls and a chain.
KERNEL = [
    row(1.0), row(1.0, method="batched"),
    row(1 / 0.52, candidate="mine"), row(1 / 1.13, method="batched", candidate="mine"),
]  # fmt: skip

# Published: M=8 and M=16 on an M5 Max.
SPLIT_K = [
    row(0.2003, m=8), row(0.2362, m=8, method="batched"),
    row(0.3117, m=16), row(0.2342, m=16, method="batched"),
]  # fmt: skip


def test_published_batching_hid_a_third_at_one_row() -> None:
    assert "stock, M=1, hot, bare: batching hides 32 % of the chain's time" in told(FOUR_BIT)
    assert marks(measured(0.060, cell()), measured(0.041, cell("batched"))) == [[], ["batching-hides"]]


def test_published_kernel_wins_batched_and_loses_chained() -> None:
    (flip,) = flips(KERNEL)
    assert (flip.between, flip.a.candidate, flip.b.candidate) == ("candidates", "stock", "mine")
    assert flip.other == "batched"
    assert [flip.chain_ratio, flip.other_ratio] == pytest.approx([1 / 0.52, 1 / 1.13])
    assert "the ranking flips with the method: mine takes 1.92x the time of stock as a chain, 0.88x batched" in told(
        KERNEL
    )


def test_published_fall_from_8_to_16_rows_is_overlap_and_not_a_faster_kernel() -> None:
    (flip,) = flips(SPLIT_K)
    assert (flip.between, flip.a.m, flip.b.m, flip.other) == ("sizes", 8, 16, "batched")
    text = told(SPLIT_K)
    assert "batched falls to 0.99x while the chain rises to 1.56x" in text
    assert "the fall is overlap of independent calls, not a faster kernel" in text


def test_jumps_of_one_candidate_are_steps_and_never_crossovers() -> None:
    found = answer(SPLIT_K)
    assert [(step.a.method, step.a.m, step.b.m, round(step.ratio, 2)) for step in found.steps] == [
        ("chain", 8, 16, 1.56)
    ]
    assert found.crossovers == []
    assert "crossover" not in told(SPLIT_K)


def test_without_intervals_nothing_is_decided() -> None:
    for rows in (FOUR_BIT, KERNEL, SPLIT_K):
        unsure = answer([msgspec.structs.replace(each, ci95=None) for each in rows])
        assert (unsure.flips, unsure.steps, unsure.crossovers) == ([], [], [])
        assert not any(each.decided for each in unsure.contrasts)


def test_intervals_that_meet_decide_nothing() -> None:
    noisy = [row(0.060, spread=0.4), row(0.041, method="batched", spread=0.4)]
    assert not contrasts(noisy)[0].decided
    assert "batched and chained are not told apart (0.68x" in told(noisy)


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.floats(0.001, 0.3), st.floats(0.001, 0.3))
def test_a_ratio_holds_its_value_and_turned_round_is_its_inverse(a: float, b: float, c: float, d: float) -> None:
    one, other = row(a, spread=c), row(b, spread=d)
    there, back = ratio_of(one, other), ratio_of(other, one)
    assert there and back and there.low and there.high and back.high and back.low
    assert there.low <= there.value <= there.high
    assert back.value == pytest.approx(1 / there.value)
    assert [back.low, back.high] == pytest.approx([1 / there.high, 1 / there.low])
    assert there.high / there.value >= max(1 + d, 1 / (1 - c)) * (1 - 1e-9)


def test_the_interval_of_a_ratio_is_that_of_independent_errors() -> None:
    random = np.random.default_rng(1)
    # Half-widths of 1.96 standard deviations each way.
    simulated = np.quantile(random.normal(2.0, 0.02, 200_000) / random.normal(1.0, 0.015, 200_000), [0.025, 0.975])
    ratio = ratio_of(row(1.0, spread=1.96 * 0.015), row(2.0, spread=1.96 * 0.01))
    assert ratio
    assert [ratio.low, ratio.high] == pytest.approx(simulated, rel=2e-3)


@pytest.mark.parametrize("a", [row(None), row(0.0)])
def test_what_was_withheld_has_no_ratio(a: BenchRow) -> None:
    assert ratio_of(a, row(1.0)) is None
    assert ratio_of(row(1.0), a) is None


def test_an_interval_that_reaches_below_nothing_decides_nothing() -> None:
    ratio = ratio_of(row(1.0, spread=1.5), row(2.0))
    assert ratio is not None
    assert (ratio.value, ratio.low, decided(ratio)) == (2.0, None, False)


SIZES = (1, 2, 4, 8, 16, 32)


def two_kernels(method: Method, *, at: float, spread: float = 0.001) -> list[BenchRow]:
    """One of constant time, one whose time grows as the square root of M; alike at M = ``at``."""
    vector = [row(math.sqrt(m / at), m=m, method=method, candidate="vector", spread=spread) for m in SIZES]
    return [*vector, *(row(1.0, m=m, method=method, candidate="matrix", spread=spread) for m in SIZES)]


@pytest.mark.parametrize("at", [1.5, 3.0, 10.0, 13.0, 31.0])
def test_a_planted_crossover_is_found(at: float) -> None:
    (found,) = crossovers(two_kernels("chain", at=at))
    assert (found.method, found.faster_below, found.faster_above) == ("chain", "vector", "matrix")
    assert found.m == pytest.approx(at, rel=1e-3)
    assert found.low is not None and found.high is not None
    assert found.low < at < found.high < 1.02 * found.low


def test_each_method_has_a_crossover_of_its_own() -> None:
    rows = [*two_kernels("chain", at=13.0), *two_kernels("batched", at=5.0)]
    assert {each.method: round(each.m) for each in crossovers(rows)} == {"chain": 13, "batched": 5}
    text = told(rows)
    assert "chain, hot, bare: crossover at M=13.0" in text
    assert "believe the chain for decoding" in text
    assert "believe the batched loop for prefill" in text


def test_where_both_are_alike_for_a_while_the_crossover_lies_among_them() -> None:
    times = {1: 0.8, 2: 0.9, 4: 0.99, 8: 1.01, 16: 1.2}
    rows = [row(time, m=m, candidate="vector", spread=0.03) for m, time in times.items()]
    rows += [row(1.0, m=m, candidate="matrix", spread=0.03) for m in times]
    (found,) = crossovers(rows)
    assert found.m == pytest.approx(4 * 2**0.5, rel=0.02)
    assert found.low is not None and found.high is not None
    assert 2 < found.low < 4 and 8 < found.high < 16


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_candidates_that_never_change_places_have_no_crossover(factor: float) -> None:
    rows = [row(1.0, m=m, candidate="a") for m in SIZES] + [row(factor, m=m, candidate="b") for m in SIZES]
    assert crossovers(rows) == []
    assert "no crossover" in told(rows)


def test_a_change_of_places_that_is_only_noise_is_no_crossover() -> None:
    rows = [row(1.0, m=m, candidate="a", spread=0.05) for m in SIZES]
    rows += [row(1.0 + 0.02 * (-1) ** m, m=m, candidate="b", spread=0.05) for m in SIZES]
    assert crossovers(rows) == []


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({1: 1.0, 2: 1.0, 4: 1.0}, []),
        ({1: 1.0, 2: 1.05, 4: 1.1}, []),
        ({1: 1.0, 2: 2.0, 4: 4.0}, []),
        ({8: 1.0, 9: 1.0, 10: 1.5}, [(9, 10)]),
        ({8: 1.0, 16: 1.5}, [(8, 16)]),
        ({8: 1.0, 16: 3.0}, [(8, 16)]),
        ({12: 1.0, 13: 0.8}, [(12, 13)]),
        ({12: 1.0, 13: 0.99}, []),
    ],
)
def test_a_step_is_a_rise_out_of_proportion_or_a_fall(times: dict[int, float], expected: list[tuple[int, int]]) -> None:
    found = steps([row(time, m=m) for m, time in reversed(times.items())])
    assert [(step.a.m, step.b.m) for step in found] == expected


def test_cold_weights_and_the_block_are_set_against_hot_and_bare_ones() -> None:
    rows = [row(1.0), row(1.4, weights="cold"), row(1.1, block="norm-residual"), row(0.8, candidate="mine")]
    found = {each.kind: (each.a.weights, each.a.block, each.ratio) for each in contrasts(rows)}
    assert found == {
        "weights": ("hot", "bare", 1.4),
        "block": ("hot", "bare", 1.1),
        "candidate": ("hot", "bare", 0.8),
    }
    text = told(rows)
    assert "one set of weights overstates how much the cache holds" in text
    assert "the difference is norm and residual" in text


@pytest.mark.parametrize(
    ("time_ms", "method", "size", "build_ms", "expected"),
    [
        (0.060, "chain", 50_000_000, 0.001, ["above-roofline"]),
        (0.064, "chain", 50_000_000, 0.001, []),
        (0.199, "per-call", None, 0.001, ["at-floor"]),
        (0.201, "per-call", None, 0.001, []),
        (0.199, "chain", None, 0.001, []),
        (0.010, "chain", None, 0.007, ["host-bound"]),
        (0.010, "chain", None, 0.006, []),
    ],
)
def test_marks_of_one_time(
    time_ms: float, method: Method, size: int | None, build_ms: float, expected: list[Mark]
) -> None:
    assert marks(measured(time_ms, cell(method), size=size, build_ms=build_ms)) == [expected]


def test_a_row_has_bandwidth_and_share_of_the_roofline_and_its_ratio_to_the_first_m() -> None:
    one, two = rows_of(
        [measured(0.1, cell(), size=40_000_000), measured(0.25, cell(m=8), size=40_000_000)], BANDWIDTH, FLOOR
    )
    assert [one.bytes_per_s, one.roofline_share, one.of_first] == pytest.approx([400e9, 0.5, 1.0])
    assert [two.bytes_per_s, two.roofline_share, two.of_first] == pytest.approx([160e9, 0.2, 2.5])
    assert (one.n, one.time_ns, one.ci95) == (15, 100_000, (100_000, 100_000))


@pytest.mark.parametrize(
    ("overheads_us", "needed"),
    [([200.0] * 15, 100), ([0.0] * 15, 1), ([-50.0, 200.0, 300.0] * 5, None), ([200.0], None)],
)
def test_the_length_needed_is_told_where_the_overhead_is_more_than_noise(
    overheads_us: list[float], needed: int | None
) -> None:
    count = len(overheads_us)
    times = np.full(count, 100_000.0)
    (found,) = rows_of([Measured(cell(), times, np.array(overheads_us) * 1000, np.zeros(count))], BANDWIDTH, FLOOR)
    assert found.needed_length == needed


def test_times_that_drift_are_marked() -> None:
    times = np.linspace(1e6, 2e6, 20)
    (drifting,) = rows_of([Measured(cell(), times, np.zeros(20), np.zeros(20))], BANDWIDTH, FLOOR)
    assert drifting.marks == ["unsteady"]
    assert drifting.unsteady and "drift" in drifting.unsteady


def test_times_far_from_the_rest_are_marked() -> None:
    times = np.array([1.0, 1.01, 1.02, 1.0, 1.01, 0.99, 1.0, 9.0, 1.01, 1.0]) * 1e6
    (scattered,) = rows_of([Measured(cell(), times, np.zeros(10), np.zeros(10))], BANDWIDTH, FLOOR)
    assert scattered.marks == ["outliers"]


def test_what_cannot_be_timed_has_no_time_and_says_why() -> None:
    (withheld,) = rows_of([Measured(cell(), bytes=100, marks=["merged"])], BANDWIDTH, FLOOR)
    assert (withheld.n, withheld.time_ns, withheld.ci95, withheld.bytes_per_s, withheld.marks) == (
        0, None, None, None, ["merged"],
    )  # fmt: skip
    text = told([withheld])
    assert "withheld: the compiler merged or fused calls" in text


def test_a_time_below_nothing_is_withheld() -> None:
    times = np.full(9, -5.0)
    (noise,) = rows_of([Measured(cell(), times, np.zeros(9), np.zeros(9))], BANDWIDTH, FLOOR)
    assert (noise.time_ns, noise.ci95, noise.needed_length, noise.marks) == (None, None, None, ["unsettled"])
