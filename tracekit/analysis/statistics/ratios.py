"""Ratios with intervals, and when they mean something."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.analysis.results import Status
from tracekit.analysis.statistics.thresholds import FALSE_DISCOVERIES, FEWEST, FEWEST_BLOCKS, MARGIN
from tracekit.numbering import numbered

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

FEWEST_IN_ORDER = 10
"""Values from which likeness of neighbours is looked for."""

RESAMPLES = 2000
"""Bootstrap resamples: enough for the ends of a 95 % interval to be steady in the second digit."""

SEED = 20251
"""Intervals are the same on every run."""


class Interval(NamedTuple):
    """A ratio of medians with its 95 % interval."""

    ratio: float
    low: float
    high: float


def ratio_of_medians(a: Floats, b: Floats) -> Interval | None:
    """median(b) / median(a) with a seeded percentile bootstrap interval; None when it cannot be given.

    ``a`` and ``b`` are durations in the order they were measured; fewer than FEWEST on a side, or a median of
    zero ("no timing"), give none. Neighbours that resemble each other are worth less than their number: the
    interval is widened as ``worth`` says. The order statistics that a resample's median falls on are drawn
    directly (``_resampled_medians``), so the cost does not grow with the number of instances.
    """
    if a.size < FEWEST or b.size < FEWEST:
        return None
    ordered_a, ordered_b = np.sort(a), np.sort(b)
    middle_a, middle_b = _middle(ordered_a), _middle(ordered_b)
    if middle_a <= 0 or middle_b <= 0:
        return None
    over, under = _resampled_medians(ordered_b, "b"), _resampled_medians(ordered_a, "a")
    usable = under > 0
    ratios = np.sort(over[usable] / under[usable])
    low, high = (ratios[round(share * (ratios.size - 1))] for share in (0.025, 0.975))
    ratio = middle_b / middle_a
    wider = 1 / math.sqrt(min(worth(a), worth(b)))
    return Interval(ratio, ratio * (float(low) / ratio) ** wider, ratio * (float(high) / ratio) ** wider)


def _middle(ordered: Floats) -> float:
    """The median of sorted values."""
    return float(ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2


def ratio_of_blocks(a: Floats, b: Floats) -> Interval | None:
    """Geometric mean of b / a over paired blocks with its 95 % t-interval on log ratios.

    ``a`` and ``b`` are medians of blocks recorded in turn; None for fewer than FEWEST_BLOCKS pairs or no timing.
    """
    logs = _log_ratios(a, b)
    if logs is None:
        return None
    half, middle = float(t_half(logs)), float(logs.mean())
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def t_half(values: Floats) -> Floats:
    """Half the 95 % t-interval of a mean over rows; for several columns that of each."""
    from scipy.special import stdtrit

    count = values.shape[0]
    half: Floats = stdtrit(count - 1, 0.975) * np.std(values, axis=0, ddof=1) / math.sqrt(count)
    return half


def paired_p(a: Floats, b: Floats) -> float | None:
    """Two-sided p value of a paired t-test on log ratios of blocks; None where there is no interval."""
    logs = _log_ratios(a, b)
    if logs is None:
        return None
    from scipy.special import stdtr

    error = float(np.std(logs, ddof=1)) / math.sqrt(logs.size)
    if not error:
        return 0.0 if logs.mean() else 1.0
    return 2 * float(stdtr(logs.size - 1, -abs(float(logs.mean())) / error))


def _log_ratios(a: Floats, b: Floats) -> Floats | None:
    pairs = min(a.size, b.size)
    if pairs < FEWEST_BLOCKS or (a[:pairs] <= 0).any() or (b[:pairs] <= 0).any():
        return None
    logs: Floats = np.log(b[:pairs] / a[:pairs])
    return logs


def worth(values: Floats) -> float:
    """Independent values that one of these is worth: (1 - r) / (1 + r) at a lag-1 autocorrelation of r.

    The effective sample size of a first-order autoregression (Box, Jenkins and Reinsel, section 2.1). r is
    that of the ranks, and counts only where it is more than noise: over two standard errors, 2 / sqrt(n).
    """
    count = values.size
    if count < FEWEST_IN_ORDER:
        return 1.0
    ranks = np.argsort(np.argsort(values, kind="stable")).astype(np.float64)
    ranks -= ranks.mean()
    r = float(np.dot(ranks[1:], ranks[:-1]) / np.dot(ranks, ranks))
    return (1 - r) / (1 + r) if 2 / math.sqrt(count) < r < 1 else 1.0


def _resampled_medians(ordered: Floats, side: str) -> Floats:
    """Medians of RESAMPLES bootstrap resamples of sorted values, without resampling."""
    below, above = _middle_positions(ordered.size, side)
    return (ordered[below] + ordered[above]) / 2


@cache
def _middle_positions(count: int, side: str) -> tuple[Positions, Positions]:
    """Where the middle two values of each resample of ``count`` stand among the sorted values.

    A resample of n values picks n uniform positions; its k-th smallest value stands at the position of the
    k-th uniform order statistic, which is Beta(k, n - k + 1) distributed; given it, the next one is
    U + (1 - U) x Beta(1, n - k) (David and Nagaraja, Order Statistics, section 2.5). The two sides of a
    comparison draw their own.
    """
    random = np.random.default_rng([SEED, count, ord(side)])
    lower = (count + 1) // 2
    position = random.beta(lower, count - lower + 1, RESAMPLES)
    below = np.minimum((position * count).astype(np.int64), count - 1)
    if count % 2:
        return below, below
    following = position + (1 - position) * random.beta(1, count - lower, RESAMPLES)
    return below, np.minimum((following * count).astype(np.int64), count - 1)


def rank_sum_p(samples: pl.DataFrame) -> pl.DataFrame:
    """Two-sided p values of Wilcoxon's rank-sum test, many at once.

    ``samples`` has ``group``, ``value`` (not negative) and ``side`` (``a`` or ``b``). Normal approximation with tie
    correction (Hollander and Wolfe, section 4.1). Returns ``group``, ``p``.
    """
    group = samples["group"].to_numpy()
    # The bits of floats that are not negative are in the order of the floats.
    values = numbered([samples["group"], pl.Series(samples["value"].to_numpy().view(np.int64))])
    tied = np.bincount(values.of_rows, minlength=values.count)
    of_value, before = group[values.first()], np.cumsum(tied) - tied
    size = np.bincount(group)
    rank = before - (np.cumsum(size) - size)[of_value] + (tied + 1) / 2
    of_a = (samples["side"] == "a").to_numpy()
    n, n_a = size.astype(np.float64), np.bincount(group[of_a], minlength=size.size).astype(np.float64)
    rank_a = np.bincount(group[of_a], rank[values.of_rows[of_a]], minlength=size.size)
    ties = np.bincount(of_value, tied * (tied**2 - 1.0), minlength=size.size)
    both = np.flatnonzero((n_a > 0) & (n_a < n))
    n, n_a, rank_a, ties = n[both], n_a[both], rank_a[both], ties[both]
    variance = n_a * (n - n_a) / 12 * (n + 1 - ties / (n * (n - 1)))
    z = np.divide(rank_a - n_a * (n + 1) / 2, np.sqrt(variance), out=np.zeros(n.size), where=variance > 0)
    p = [math.erfc(abs(score) / math.sqrt(2)) for score in z]
    return pl.DataFrame({"group": both, "p": p}, schema={"group": pl.UInt32, "p": pl.Float64})


def discoveries(p: pl.Series) -> pl.Series:
    """Which p values pass Benjamini and Hochberg's procedure at FALSE_DISCOVERIES."""
    count = p.len()
    rank = p.rank("max")
    passing = p.filter(p <= FALSE_DISCOVERIES * rank / max(count, 1))
    limit = passing.max()
    return p <= limit if limit is not None else pl.repeat(False, count, eager=True)


def status(interval: Interval | None, discovered: bool) -> Status:
    """Same: the interval lies within MARGIN. Slower or faster: outside of it, and discovered."""
    if interval is None:
        return "undecided"
    if interval.low >= 1 - MARGIN and interval.high <= 1 + MARGIN:
        return "same"
    if discovered and interval.low > 1 + MARGIN:
        return "slower"
    if discovered and interval.high < 1 - MARGIN:
        return "faster"
    return "undecided"
