"""Intervals hold what they promise, tests give known values, and noise alone gives no findings."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.results import Diff
from tracekit.analysis.statistics.ratios import Interval, discoveries, rank_sum_p, ratio_of_medians, status
from tracekit.trace.source import open_trace

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

KERNELS = 8
TRUE_RATIO = 1.1


def log_normal(random: np.random.Generator, count: int) -> Floats:
    return random.lognormal(0, 0.05, count)


def skewed(random: np.random.Generator, count: int) -> Floats:
    return np.asarray(1 + 0.2 * (random.exponential(1, count) - np.log(2)), np.float64)


def heavy_tailed(random: np.random.Generator, count: int) -> Floats:
    return 1 + 0.02 * random.standard_t(1.5, count)


@pytest.mark.parametrize("draw", [log_normal, skewed, heavy_tailed])
@pytest.mark.parametrize("sizes", [(5, 5), (8, 8), (30, 30), (300, 300), (8, 30), (5, 300)], ids=str)
def test_the_interval_holds_the_true_ratio_in_95_percent(draw: Draw, sizes: tuple[int, int]) -> None:
    random = np.random.default_rng(7)
    trials = 1500
    too_low = too_high = 0
    for _ in range(trials):
        found = ratio_of_medians(3200 * draw(random, sizes[0]), 3200 * TRUE_RATIO * draw(random, sizes[1]))
        assert found is not None
        too_low += found.high < TRUE_RATIO
        too_high += found.low > TRUE_RATIO
    assert 0.91 < 1 - (too_low + too_high) / trials < 0.99
    assert max(too_low, too_high) / trials < 0.055
    assert min(too_low, too_high) / trials > 0.002


@pytest.mark.parametrize("sizes", [(5, 5), (6, 6), (7, 8), (30, 31), (300, 5)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_is_that_of_resampling(sizes: tuple[int, int], seed: int) -> None:
    """2.5 % of real bootstrap ratios lie below the interval and 2.5 % above it."""
    random = np.random.default_rng(seed)
    a, b = (1000 * log_normal(random, size) for size in sizes)
    found = ratio_of_medians(a, b)
    assert found is not None
    under, over = (np.median(random.choice(values, (10_000, values.size)), axis=1) for values in (a, b))
    ratios = over / under
    tolerance, tail, last_digits = 0.014, 0.025, 1e-9
    for end, outer in ((found.low, ratios), (1 / found.high, 1 / ratios)):
        assert (outer < end * (1 - last_digits)).mean() <= tail + tolerance
        assert (outer <= end * (1 + last_digits)).mean() >= tail - tolerance


def test_the_ratio_is_that_of_the_medians() -> None:
    found = ratio_of_medians(np.array([1.0, 2, 3, 4, 5, 6]), np.array([7.0, 7, 7, 7, 7, 7]))
    assert found is not None
    assert found.ratio == 2
    assert 7 / 6 <= found.low < 2 < found.high <= 7


def test_too_few_or_no_timing_gives_no_interval() -> None:
    enough, few, nothing = np.full(5, 10.0), np.full(4, 10.0), np.zeros(5)
    assert ratio_of_medians(few, enough) is None
    assert ratio_of_medians(enough, few) is None
    assert ratio_of_medians(nothing, enough) is None
    assert ratio_of_medians(enough, nothing) is None
    assert ratio_of_medians(np.empty(0), np.empty(0)) is None
    assert ratio_of_medians(enough, enough) == Interval(1, 1, 1)


def test_one_wild_value_does_not_move_the_ratio() -> None:
    steady = np.array([10.0, 11, 12, 13, 14, 15, 16])
    wild = np.append(steady[:-1], 1e9)
    calm, stirred = ratio_of_medians(steady, steady), ratio_of_medians(steady, wild)
    assert calm is not None and stirred is not None
    assert stirred.ratio == 1
    assert stirred.low == pytest.approx(calm.low, rel=0.05)


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [
        # scipy.stats.mannwhitneyu(a, b, use_continuity=False, method="asymptotic"), scipy 1.17.1
        ([1.1, 2.2, 3.3, 4.4], [5.5, 6.6, 7.7, 8.8, 9.9], 0.014305878435429648),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], 1.0),
        ([1, 1, 2, 2, 3, 3], [2, 2, 3, 3, 4, 4, 4], 0.05430401669951195),
        ([10, 12, 9, 11, 14, 13, 8, 15], [11, 16, 12, 18, 14, 13, 17, 19, 20, 10], 0.04503200908156675),
        ([3.5], [1, 2, 4, 5], 1.0),
        ([100, 101, 99, 102, 98, 100], [150, 151, 149, 152, 148, 150], 0.003822647054586457),
        # Nothing but ties tells nothing.
        ([5, 5, 5], [5, 5, 5, 5], 1.0),
    ],
)
def test_rank_sum_gives_known_values(a: list[float], b: list[float], p: float) -> None:
    assert rank_sums({1: (a, b)}) == {1: pytest.approx(p, rel=1e-9)}
    assert rank_sums({1: (b, a)}) == {1: pytest.approx(p, rel=1e-9)}


def test_rank_sums_of_many_groups_do_not_mix() -> None:
    samples = {3: ([1.1, 2.2, 3.3, 4.4], [5.5, 6.6, 7.7, 8.8, 9.9]), 1: ([3.5], [1.0, 2, 4, 5])}
    alone = {group: rank_sums({group: sides})[group] for group, sides in samples.items()}
    assert rank_sums(samples) == pytest.approx(alone)
    assert rank_sums({2: ([1.0, 2], [])} | samples) == pytest.approx(alone)


def rank_sums(samples: dict[int, tuple[list[float], list[float]]]) -> dict[int, float]:
    rows = [
        (group, float(value), side)
        for group, sides in samples.items()
        for side, values in zip("ab", sides, strict=True)
        for value in values
    ]
    schema = {"group": pl.UInt32, "value": pl.Float64, "side": pl.String}
    return dict(rank_sum_p(pl.DataFrame(rows, schema=schema, orient="row")).iter_rows())


@pytest.mark.parametrize(
    ("p", "passing"),
    [
        # The worked example of Benjamini and Hochberg (1995): four of fifteen.
        (
            [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
             0.6528, 0.7590, 1.0],
            4,
        ),
        ([0.04, 0.05], 2),
        ([0.03, 0.06], 0),
        ([0.05], 1),
        ([0.051], 0),
        ([0.03, 0.03, 0.9], 2),
        ([0.04, 0.04, 0.9], 0),
        # The second would not pass by itself (0.03 > 0.025), the third does, and takes it along.
        ([0.001, 0.03, 0.036, 0.9], 3),
        ([], 0),
    ],
)  # fmt: skip
def test_discoveries_are_those_of_the_step_up_procedure(p: list[float], passing: int) -> None:
    order = list(range(len(p)))
    Random(1).shuffle(order)
    found = discoveries(pl.Series([p[i] for i in order], dtype=pl.Float64)).to_list()
    assert found == [i < passing for i in order]


@pytest.mark.parametrize(
    ("low", "high", "discovered", "expected"),
    [
        (0.99, 1.01, False, "same"),
        (0.985, 0.99, True, "same"),
        (1.03, 1.2, True, "slower"),
        (1.03, 1.2, False, "undecided"),
        (0.8, 0.97, True, "faster"),
        (0.8, 0.97, False, "undecided"),
        (1.01, 1.2, True, "undecided"),
        (0.8, 0.99, True, "undecided"),
        (0.9, 1.1, True, "undecided"),
    ],
)
def test_status(low: float, high: float, discovered: bool, expected: str) -> None:
    assert status(Interval((low + high) / 2, low, high), discovered) == expected
    assert status(None, discovered) == "undecided"


def recording(
    path: Path, seed: str, *, instances: int, shared: float, own: float, slower: float = 1, ranges: bool = True
) -> Path:
    """Steps of ``KERNELS`` kernels one after another; noise of each step (``shared``) and of each kernel.

    The first kernel takes ``slower`` times as long.
    """
    random, export, now = Random(seed), Export(), 1_000_000
    for _ in range(instances):
        begin, speed = now, random.lognormvariate(0, shared)
        for kernel in range(KERNELS):
            time = 20_000 * (kernel + 1) * speed * random.lognormvariate(0, own) * (1 if kernel else slower)
            correlation = export.launch(now, now + 1000)
            export.kernel(now + 2000, now + 2000 + round(time), name=f"k{kernel}", correlation=correlation)
            now += 3000 + round(time)
        if ranges:
            export.range(begin, now, "step", domain="tracekit")
        now += 500_000
    return export.write(path)


def compared(folder: Path, seed: int, slower: float = 1, **noise: float | bool) -> Diff:
    paths = [
        recording(folder / "a.sqlite", f"{seed}a", **noise),  # type: ignore[arg-type]
        recording(folder / "b.sqlite", f"{seed}b", slower=slower, **noise),  # type: ignore[arg-type]
    ]
    with open_trace(paths[0], cached=False) as one, open_trace(paths[1], cached=False) as other:
        return compare([one, other])


def findings(answer: Diff) -> list[str | None]:
    return [row.name for row in answer.kernels if row.status in ("slower", "faster")]


@pytest.mark.parametrize(
    "noise",
    [
        {"instances": 9, "shared": 0.0, "own": 0.1},
        {"instances": 9, "shared": 0.1, "own": 0.03},
        {"instances": 31, "shared": 0.05, "own": 0.1},
        {"instances": 40, "shared": 0.0, "own": 0.1, "ranges": False},
    ],
    ids=str,
)
def test_noise_alone_gives_few_findings(tmp_path: Path, noise: dict[str, float | bool]) -> None:
    """Every finding is false here, so the share of comparisons with any is the false discovery rate."""
    answers = [compared(tmp_path, seed, **noise) for seed in range(30)]
    assert all(len(answer.kernels) == KERNELS for answer in answers)
    assert sum(bool(findings(answer)) for answer in answers) <= 0.1 * len(answers)
    winners = [row.verdict.winner for answer in answers for row in answer.phases]
    assert sum(winner in ("a", "b") for winner in winners) <= 0.1 * len(winners)


def test_a_kernel_that_is_slower_is_found_and_no_other(tmp_path: Path) -> None:
    answers = [compared(tmp_path, seed, 1.3, instances=13, shared=0.0, own=0.05) for seed in range(20)]
    assert sum(findings(answer) == ["k0"] for answer in answers) >= 18
    slowed = [row for answer in answers for row in answer.kernels if row.name == "k0"]
    assert sum(bool(row.ci95 and row.ci95[0] <= 1.3 <= row.ci95[1]) for row in slowed) >= 16


def test_steady_runs_are_the_same(tmp_path: Path) -> None:
    answer = compared(tmp_path, 1, instances=13, shared=0.001, own=0.003)
    assert {row.status for row in answer.kernels} == {"same"}
    assert [row.verdict.winner for row in answer.phases] == ["tie"]
    assert answer.verdict.winner == "tie"


def test_four_instances_a_side_are_too_few_for_a_verdict(tmp_path: Path) -> None:
    answer = compared(tmp_path, 1, 3, instances=5, shared=0.0, own=0.001)
    assert {row.status for row in answer.kernels} == {"undecided"}
    assert [(row.n_a, row.n_b, row.ci95, row.verdict.winner) for row in answer.phases] == [(4, 4, None, "undecided")]
    assert "n = 4" in answer.phases[0].verdict.reason


def timed(path: Path, times: list[float]) -> Path:
    """One kernel a step, of these durations."""
    export, now = Export(), 1_000_000
    for time in map(round, times):
        correlation = export.launch(now, now + 1000)
        export.kernel(now + 2000, now + 2000 + time, correlation=correlation)
        export.range(now, now + 3000 + time, "step", domain="tracekit")
        now += 1_000_000 + time
    return export.write(path)


def verdict(folder: Path, a: list[float], b: list[float]) -> tuple[str, str]:
    paths = [timed(folder / "a.sqlite", a), timed(folder / "b.sqlite", b)]
    with open_trace(paths[0], cached=False) as one, open_trace(paths[1], cached=False) as other:
        (phase,) = compare([one, other]).phases
    return phase.verdict.winner, phase.verdict.reason


def test_a_drifting_arm_gets_no_verdict_and_it_is_said(tmp_path: Path) -> None:
    random = Random(1)
    rising = [1e6 * (1 + 0.15 * i / 99) * random.gauss(1, 0.005) for i in range(100)]
    level = [1e6 * random.gauss(1, 0.005) for _ in range(100)]
    winner, reason = verdict(tmp_path, rising, level)
    assert winner == "undecided"
    assert "drift" in reason


def test_two_states_of_the_machine_give_no_verdict_and_it_is_said(tmp_path: Path) -> None:
    """Both arms meet the same fast and slow states, in other shares."""
    random = Random(1)
    fast, slow = 630_000.0, 940_000.0
    arms = [[state * random.gauss(1, 0.005) for state in [fast] * quick + [slow] * (20 - quick)] for quick in (6, 14)]
    for arm in arms:
        random.shuffle(arm)
    winner, reason = verdict(tmp_path, *arms)
    assert winner == "undecided"
    assert "bimodal" in reason


def test_the_same_files_give_the_same_intervals(tmp_path: Path) -> None:
    one, again = (compared(tmp_path, 3, instances=9, shared=0.02, own=0.1) for _ in range(2))
    assert one == again
