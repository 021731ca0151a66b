"""Overlap episodes by the set of kernels in them: which ones beside each other saved time, and which lost it."""

import numpy as np
import polars as pl

from tracekit.analysis.statistics.bootstrap import MOST_BLOCKS, RESAMPLES, bounds, deviations, runs
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.thresholds import FEWEST_BLOCKS

MOST_SETS = 200
"""Sets with a row of their own, those that gained or lost most; the others are summed up in one row."""

SETS = pl.Schema(
    [
        ("pair", pl.Boolean()),
        ("known", pl.Boolean()),
        ("members", pl.List(pl.UInt32)),
        ("sets", pl.UInt32()),
        ("episodes", pl.UInt32()),
        ("wall", pl.Int64()),
        ("solo", pl.Float64()),
        ("gain", pl.Float64()),
        ("low", pl.Float64()),
        ("high", pl.Float64()),
    ]
)
"""One row a set of kernels, those with two members to each episode (``pair``) apart from those with more. Sums over
its ``episodes`` (ns): W, and S and S - W, null where a member's solo duration is unknown. ``members`` are groups, each
once, a pair's both; ``low`` to ``high`` is the 95 % interval of the gain. Rare sets, ``sets`` of them, are one row."""

_SET = ["set", "pair", "known"]


def sets_of(episodes: pl.DataFrame, kernels: pl.DataFrame, block: pl.Series, size: pl.Series | None) -> pl.DataFrame:
    """Sum up episodes (episodes.EPISODES) by set, largest gain or loss first: SETS.

    ``kernels`` (``episode``, ``group``) are those of at least these episodes. ``block`` numbers what each episode
    happened in, in order of time: phase instances, blocks of time, or traces; these are resampled. ``size`` counts the
    phase instances in each block, from 0, which the gain is proportional to. Where it is None, the gain is
    proportional to the number of episodes in each phase (column ``stratum``), so that phases do not mix.
    From the resampled gain to the interval, the lower end goes down to the p25 of the solo durations and the upper
    end up to their p75.
    """
    if episodes.is_empty():
        return pl.DataFrame(schema=SETS)
    gain = pl.when("known").then(pl.col("solo") - pl.col("wall"))
    rows = episodes.with_columns(pair=pl.col("members") == 2, gain=gain, block=block)
    numbers = _numbered(rows)
    rows = rows.join(numbers.select("row", *_SET), on=_SET, how="left", maintain_order="left")
    sums = (
        rows.group_by("row")
        .agg(
            pl.col("pair", "known").all(),
            pl.col("wall", "solo", "solo_low", "solo_high", "gain").sum(),
            sets=pl.struct(_SET).n_unique(),
            episodes=pl.len(),
        )
        .sort("row")
    )
    low, high = pl.col("solo_low") - pl.col("solo"), pl.col("solo_high") - pl.col("solo")
    below, above = _resampled(rows, sums.height, size) if size is not None else _stratified(rows, sums.height)
    rare = pl.col("row") >= MOST_SETS
    return (
        sums.with_columns(low=pl.col("gain") + low + pl.Series(below), high=pl.col("gain") + high + pl.Series(above))
        .with_columns(pl.when("known").then(pl.col("solo", "gain", "low", "high")), pair=pl.col("pair") & ~rare)
        .with_columns(pl.col("low", "high").fill_nan(None))
        .join(_members(numbers.filter(~rare), kernels), on="row", how="left", maintain_order="left")
        .with_columns(pl.col("members").fill_null([]))
        .select(list(SETS))
        .cast(SETS)
    )


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """``row`` of each set, and an ``example``, one of its episodes. Rare sets share a row, or one those whose solo
    durations are known and one the others."""
    sums = rows.group_by(_SET).agg(pl.col("gain").sum(), pl.col("wall").sum(), example=pl.col("episode").min())
    size = pl.when("known").then(pl.col("gain").abs()).otherwise(0)
    ordered = sums.sort([size, "wall", *_SET], descending=[True, True, False, False, False])
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    row = pl.when(row >= MOST_SETS).then(MOST_SETS + (~pl.col("known")).cast(pl.Int64)).otherwise(row)
    return ordered.select(*_SET, "example", row=row.rank("dense").cast(pl.Int64) - 1)


def _resampled(rows: pl.DataFrame, count: int, size: pl.Series) -> tuple[Floats, Floats]:
    """How far the ends of the interval of each row's gain lie from it, nan where there are too few blocks."""
    joined = min(size.len(), MOST_BLOCKS)
    units = np.bincount(np.arange(size.len()) * joined // size.len(), size.to_numpy(), joined).astype(np.float64)
    gains, _ = _by_block(rows, count, size.len(), joined)
    whole = np.broadcast_to(units, gains.shape)
    low, high = bounds(deviations(gains, whole, "e") * units.sum())
    enough = runs(whole) >= FEWEST_BLOCKS
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _stratified(rows: pl.DataFrame, count: int) -> tuple[Floats, Floats]:
    """The same with the number of episodes in each block for size, each stratum by itself."""
    moved, enough = np.zeros((count, RESAMPLES)), np.ones(count, np.bool_)
    for _, part in sorted(rows.partition_by("stratum", as_dict=True).items()):
        numbered = part.with_columns(pl.col("block").rank("dense").cast(pl.Int64) - 1)
        blocks = int(numbered["block"].max()) + 1  # type: ignore[arg-type]
        gains, episodes = _by_block(numbered, count, blocks, min(blocks, MOST_BLOCKS))
        present = episodes.any(axis=1)
        moved[present] += deviations(gains[present], episodes[present], "e") * episodes[present].sum(axis=1)[:, None]
        enough[present] &= runs(episodes[present]) >= FEWEST_BLOCKS
    low, high = bounds(np.where(enough[:, None], moved, 0))
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _by_block(rows: pl.DataFrame, count: int, blocks: int, joined: int) -> tuple[Floats, Floats]:
    """Gain and number of the episodes of each row in each block, of which neighbours are joined to so many."""
    cell = rows["row"].to_numpy() * joined + rows["block"].to_numpy().astype(np.int64) * joined // blocks
    gains, episodes = (
        np.bincount(cell, weights, count * joined).reshape(count, joined).astype(np.float64)
        for weights in (rows["gain"].fill_null(0).to_numpy(), None)
    )
    return gains, episodes


def _members(numbers: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """The kernels of each set: ``row``, ``members``; a pair of one kernel has it twice."""
    listed = (
        kernels.join(numbers.select("row", "pair", episode="example"), on="episode")
        .group_by("row", "pair")
        .agg(members=pl.col("group").sort())
    )
    twice = pl.col("pair") & (pl.col("members").list.len() == 1)
    return listed.select("row", members=pl.when(twice).then(pl.concat_list("members", "members")).otherwise("members"))
