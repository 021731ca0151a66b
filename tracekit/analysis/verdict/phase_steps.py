"""What each instance of a phase adds to each step between two arms: linear, so that means and intervals are simple."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.phases.work import PhaseWork
from tracekit.analysis.results.causes import Cause
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.verdict.clocks import CommonFactor
from tracekit.intervals import Ints

OVERLAP: tuple[Cause, ...] = ("overlap_lost", "overlap_gained")
KERNELS: tuple[Cause, ...] = ("kernels_alone", "one_side_only", "counts_differ", "clocks")
IDLE: tuple[Cause, ...] = ("gaps", "launch_bound", "setup", "host_work")
STEPS: tuple[Cause, ...] = (*OVERLAP, *KERNELS, *IDLE, "copies", "unexplained")
"""The steps in order. What is measured but charged to no other step is the last one's."""


class Terms(NamedTuple):
    """What makes steps linear in what each instance ran: ``kernels`` has ``group``, ``each`` (the reference duration
    of a kernel of both arms, else null) and ``follows`` (the common factor); ``scale`` is the work of all kernels of
    both arms over that of those."""

    kernels: pl.DataFrame
    scale: float
    lost: frozenset[int]
    known: bool


def in_sets(sets: frozenset[int]) -> pl.Expr:
    """Whether the ``set`` of a row is one of these."""
    return pl.col("set").is_in(pl.Series(sorted(sets), dtype=pl.UInt64).implode())


def terms_of(kernels: pl.DataFrame, clock: CommonFactor | None, lost: frozenset[int], known: bool) -> Terms:
    """Kernels with work that is not known in both arms are left out: their time is not explained."""
    unclear = pl.col("unknown").fill_null(False) | pl.col("unknown_b").fill_null(False)
    if not known:
        unclear |= (pl.col("alone") < pl.col("count")) | (pl.col("alone_b") < pl.col("count_b"))
    both = (pl.col("count") > 0) & (pl.col("count_b") > 0)
    more = pl.col("count_b") > pl.col("count")
    each = pl.when(more).then(pl.col("work_b") / pl.col("count_b")).otherwise(pl.col("work") / pl.col("count"))
    follows = pl.col("group").is_in(clock.kernels.implode()) if clock else pl.lit(False)
    rows = kernels.filter(~unclear.fill_null(False)).select(
        "group",
        each=pl.when(both).then(each),
        follows=follows,
        common=pl.when(both).then(pl.min_horizontal("count", "count_b") * pl.col("work") / pl.col("count")),
    )
    following = float(rows.filter("follows")["common"].sum())
    scale = float(rows["common"].sum()) / following if following else 0.0
    return Terms(rows.select("group", "each", "follows"), scale, lost, known)


def step_values(work: PhaseWork, terms: Terms) -> Floats:
    """What each instance adds to each step (STEPS); a row adds up to its phase time."""
    size = max(int(frame["group"].max() or 0) for frame in (work.kernels, terms.kernels)) + 1  # type: ignore[arg-type]
    each, told, follows = np.full(size, np.nan), np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    groups = terms.kernels["group"].to_numpy()
    each[groups] = terms.kernels["each"].fill_null(np.nan).to_numpy()
    follows[groups] = terms.kernels["follows"].to_numpy()
    told[groups] = True
    group, row = work.kernels["group"].to_numpy(), work.kernels["row"].to_numpy()
    spent = np.where(told[group], work.kernels["work"].fill_null(np.nan).to_numpy(), 0.0)
    usual = np.where(told[group], each[group], 0.0)
    only = np.isnan(usual)
    change = np.where(only, 0.0, spent - usual)

    def of_instances(values: Floats) -> Floats:
        return _sums(row, values, work)

    clocks = of_instances(np.where(follows[group], change, 0.0)) * terms.scale
    overlap = _overlap(work, terms)
    steps: dict[Cause, Floats] = {
        "overlap_lost": overlap[0],
        "overlap_gained": overlap[1],
        "kernels_alone": of_instances(change) - clocks,
        "one_side_only": of_instances(np.where(only, spent, 0.0)),
        "counts_differ": of_instances(np.where(only, 0.0, usual)),
        "clocks": clocks,
        **{cause: work.instances[cause].to_numpy() for cause in IDLE},
        "copies": work.instances["copying"].to_numpy(),
    }
    told_of = np.column_stack([steps[cause] for cause in STEPS[:-1]])
    return np.column_stack([told_of, work.times - told_of.sum(axis=1)])


def _overlap(work: PhaseWork, terms: Terms) -> tuple[Floats, Floats]:
    """W - S of each instance's episodes: of the sets that lost time, and of the others."""
    if not terms.known:
        return np.zeros(work.times.size), np.zeros(work.times.size)
    rows = work.episodes.select("row", longer=pl.col("wall") - pl.col("solo"), lost=in_sets(terms.lost))
    lost, gained = (
        _sums(part["row"].to_numpy(), part["longer"].to_numpy(), work)
        for part in (rows.filter("lost"), rows.filter(~pl.col("lost")))
    )
    return lost, gained


def _sums(row: Ints, values: Floats, work: PhaseWork) -> Floats:
    """Values added up for each instance."""
    sums: Floats = np.bincount(row, values, work.times.size).astype(np.float64)
    return sums
