"""Block bootstrap of many means at once: what a run recorded again might have given.

Resampled are blocks (phase instances, twentieths of a trace's time, or traces), never kernel instances, which
are not independent. A resample is a column of weights, so that all means are one matrix product.
"""

import math
from functools import cache

import numpy as np

from tracekit.analysis.statistics.ratios import FEWEST_IN_ORDER, SEED, Floats, Positions

RESAMPLES = 1000
"""Bootstrap resamples: the ends of a 95 % interval are steady to a twentieth of its half width."""

MOST_BLOCKS = 100
"""More blocks than this are to be joined to this many, neighbours with neighbours."""


def deviations(sums: Floats, counts: Floats, side: str) -> Floats:
    """How far resampled means lie from the means: one row a mean, one column a resample.

    ``sums`` and ``counts`` have one row a mean, which is sum(sums) / sum(counts), and one column a block, in order of
    time; a mean need not occur in every block. From ten blocks on, runs of neighbours are drawn
    together, cube root of n long (Künsch 1989; Hall, Horowitz and Jing 1995), since neighbours resemble each other.
    The deviations are widened by sqrt(n / (n - 1)) x t(n - 1) / z, n being the runs in which the mean occurs: the
    expanded percentile interval (Hesterberg 2015), without which intervals of few blocks hold the truth too seldom.
    ``side`` tells apart what is drawn independently. nan where that is one run only.
    """
    weights = _weights(sums.shape[1], side)
    times = counts @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=1) / counts.sum(axis=1)
        apart = (sums @ weights) / times - means[:, None]
    # A resample in which a mean does not occur says nothing of it.
    apart[times == 0] = 0
    widened: Floats = apart * _expansion(runs(counts))[:, None]
    return widened


def bounds(deviation: Floats) -> tuple[Floats, Floats]:
    """How far the ends of the 95 % interval lie from each mean (a row of ``deviations``): below, above."""
    low, high = np.quantile(deviation, [0.025, 0.975], axis=1)
    return low, high


@cache
def _weights(blocks: int, side: str) -> Floats:
    """How often each block (a row) is drawn in each resample."""
    random = np.random.default_rng([SEED, blocks, ord(side)])
    run = _run(blocks)
    starts = random.multinomial(math.ceil(blocks / run), np.full(blocks, 1 / blocks), RESAMPLES)
    drawn = np.sum([np.roll(starts, shift, axis=1) for shift in range(run)], axis=0)
    return np.ascontiguousarray(drawn.T, dtype=np.float64)


def _run(blocks: int) -> int:
    """Neighbours drawn together."""
    return round(blocks ** (1 / 3)) if blocks >= FEWEST_IN_ORDER else 1


def runs(counts: Floats) -> Positions:
    """In how many runs of neighbours each mean (a row) occurs."""
    first = np.arange(0, counts.shape[1], _run(counts.shape[1]))
    found: Positions = (np.add.reduceat(counts, first, axis=1) > 0).sum(axis=1)
    return found


def _expansion(blocks: Positions) -> Floats:
    from scipy.special import ndtri, stdtrit

    with np.errstate(invalid="ignore", divide="ignore"):
        free = blocks - 1.0
        expansion: Floats = np.sqrt(blocks / free) * stdtrit(free, 0.975) / ndtri(0.975)
    return expansion
