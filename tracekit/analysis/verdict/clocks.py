"""One factor that the durations of nearly all kernels differ by, as another clock makes them."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.kernels.durations import MIXED_SPREAD
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.thresholds import MARGIN

FEWEST_KERNELS = 3
"""Kernels that ran alone on both sides from which a factor can be common: one or two may differ by themselves."""

NEARLY_ALL = 0.9
"""Share of the kernels, weighed by their time, that have to follow a common factor."""

MOST_WEIGHT = 0.25
"""Share of the time that one kernel weighs at most: a single long kernel is no common factor."""

FOLLOWS = 1 / 3
"""A kernel follows the factor when its log ratio lies within this share of the factor's, or within MARGIN."""

SURE = 0.995
"""Quantile of the t distribution that a factor within MARGIN lies from 1 in standard errors of the kernels' mean log
ratio: one in a hundred is found by chance."""

LEAST_SHARE = 0.1
"""Share of the kernel time that the compared kernels need to hold to speak for the rest."""


class CommonFactor(NamedTuple):
    """``factor`` = b / a over ``kernels`` (the groups that follow it), which are ``share`` of the compared weight."""

    factor: float
    kernels: pl.Series
    share: float


def common_factor(kernels: pl.DataFrame, whole: float) -> CommonFactor | None:
    """The common factor of kernels' durations, None where there is none or too little ran alone to tell.

    ``kernels`` has ``group``, ``a`` and ``b`` (durations alone, ns, on either side) and ``time`` (ns spent in it in
    a); ``whole`` is the time of all kernels in a. The factor is judged about the weighted median of log ratios and
    is the ratio of the sums over the kernels that follow it.
    """
    rows = _timed(kernels)
    if not comparable(rows, whole):
        return None
    time = rows["time"].to_numpy().astype(np.float64)
    weight = np.minimum(time, MOST_WEIGHT * time.sum())
    ratio = rows["b"].to_numpy() / rows["a"].to_numpy()
    logs = np.log(ratio)
    middle = _weighted_median(logs, weight)
    follows = np.abs(logs - middle) <= max(np.log1p(MARGIN), FOLLOWS * abs(middle))
    share = float(weight[follows].sum() / weight.sum())
    if share < NEARLY_ALL or follows.sum() < FEWEST_KERNELS or not _sure(logs[follows], weight[follows]):
        return None
    factor = float((time * ratio)[follows].sum() / time[follows].sum())
    return CommonFactor(factor, rows["group"].filter(pl.Series(follows)), share)


def comparable(kernels: pl.DataFrame, whole: float) -> bool:
    """Whether enough ran alone on both sides to tell whether there is a common factor."""
    rows = _timed(kernels)
    return rows.height >= FEWEST_KERNELS and float(rows["time"].sum()) >= LEAST_SHARE * whole


def _timed(kernels: pl.DataFrame) -> pl.DataFrame:
    return kernels.filter((pl.col("a") > 0) & (pl.col("b") > 0) & (pl.col("time") > 0)).sort("group")


def _sure(logs: Floats, weights: Floats) -> bool:
    """Whether the weighted mean of log ratios is beyond MARGIN, or at least more than noise of the kernels about it."""
    from scipy.special import stdtrit

    shares = weights / weights.sum()
    mean = float(shares @ logs)
    if abs(mean) > np.log1p(MARGIN):
        return True
    worth = 1 / float(shares @ shares)
    error = math.sqrt(float(shares @ (logs - mean) ** 2) / max(worth - 1, 1))
    return abs(mean) > float(stdtrit(max(worth - 1, 1), SURE)) * error


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def at_the_clock_of(solo: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Solo durations (solo.SOLO) of one arm as another arm's clock makes them.

    ``other`` holds the solo durations that the other arm's own kernels had. Without this a kernel that only ever
    overlapped there would be charged with the clock's change as if it were contention. Unchanged where the arms
    have no common factor.
    """
    of_one_kind = pl.col("solo_high") <= MIXED_SPREAD * pl.col("solo_low")
    compared = (
        solo.filter(of_one_kind)
        .join(other.filter(of_one_kind).select("group", b="solo"), on="group")
        .select("group", "b", a="solo", time=pl.col("solo") * pl.col("solo_count"))
    )
    found = common_factor(compared, float((solo["solo"] * solo["solo_count"]).sum()))
    if found is None:
        return solo
    return solo.with_columns(pl.col("solo", "solo_low", "solo_high") * found.factor)
