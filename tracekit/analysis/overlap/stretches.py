"""Stretches as they are resampled: what a run recorded again might have measured."""

from typing import NamedTuple, Self

import numpy as np
import polars as pl

from tracekit.analysis.statistics.bootstrap import MOST_BLOCKS, deviations, runs
from tracekit.analysis.statistics.grouped import Grouped
from tracekit.analysis.statistics.ratios import Floats, Positions

FINE = 1 << 20
"""Stretches are sorted as whole numbers of this part of one."""


class Means(NamedTuple):
    """Means of log stretch: the deviation of each (a row) in each resample, and how many independent runs of
    moments it occurs in."""

    deviation: Floats
    runs: Positions


def mean_stretches(rows: pl.DataFrame, column: pl.Series, columns: int, side: str = "b") -> Means:
    """The mean, over moments, of the logarithm of each moment's median ``stretch``, for each ``column``."""
    moments = rows["moment"].unique().sort()
    moment = moments.search_sorted(rows["moment"]).cast(pl.Int64)
    known = rows["stretch"].is_not_null()
    number = column.cast(pl.Int64) * moments.len() + moment
    medians = sorted_stretches(number.filter(known), rows["stretch"].filter(known))
    blocks = min(moments.len(), MOST_BLOCKS)
    block = medians.group % moments.len() * blocks // moments.len()
    cell = medians.group // moments.len() * blocks + block
    sums, counts = (
        np.bincount(cell, weights, columns * blocks).reshape(columns, blocks).astype(np.float64)
        for weights in (np.log(medians.quantile(0.5) / FINE), None)
    )
    return Means(deviations(sums, counts, side), runs(counts))


def sorted_stretches(group: pl.Series, stretch: pl.Series) -> Grouped:
    """Stretches sorted within their groups, as multiples of 1 / FINE."""
    return Grouped.of(group.cast(pl.Int64), (stretch * FINE).cast(pl.Int64).clip(1))


class Reference(NamedTuple):
    """How solo durations vary over the moments they were measured at: means of log stretch by ``group``, in order."""

    group: pl.Series
    means: Means | None

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """From instances that ran alone: ``group``, ``moment``, ``stretch``."""
        group = rows["group"].unique().sort()
        if rows.is_empty():
            return cls(group, None)
        return cls(group, mean_stretches(rows, group.search_sorted(rows["group"]), group.len(), side="a"))

    def included(self, means: Means, group: pl.Series) -> Means:
        """Means of log stretch (of kernel ``group`` each) with what their solo durations vary by."""
        if self.means is None:
            return Means(means.deviation, np.zeros_like(means.runs))
        known = group.is_in(self.group.implode()).to_numpy()
        at = np.where(known, self.group.search_sorted(group).to_numpy(), 0)
        runs_of_both = np.minimum(means.runs, self.means.runs[at])
        return Means(means.deviation - self.means.deviation[at], np.where(known, runs_of_both, 0))
