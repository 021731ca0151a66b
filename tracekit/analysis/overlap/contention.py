"""Who slowed whom: how long each kernel took beside each set of others, against alone."""

import numpy as np
import polars as pl

from tracekit.analysis.kernels.durations import ALONE_FRACTION, MIXED_SPREAD, ran_alone
from tracekit.analysis.overlap.separation import separate
from tracekit.analysis.overlap.stretches import Reference, mean_stretches, sorted_stretches
from tracekit.analysis.statistics.bootstrap import bounds
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.thresholds import FEWEST, FEWEST_BLOCKS
from tracekit.intervals import distinct

HALF = 0.5
"""Overlapped share of an instance that divides the bands: what runs beside another briefly is slowed briefly."""

MOST_SETS = 200
"""Sets with a row of their own, those with most overlapped time; others are summed up for each victim."""

FEWEST_SETS = 3
"""Fewest sets of one victim that can tell kernels apart: two kernels, each without the other, and both together."""

ALONE, UP_TO_HALF, OVER_HALF = range(3)
"""Bands of the overlapped share."""

VICTIMS = pl.Schema(
    {
        "phase": pl.Int64,
        "group": pl.UInt32,
        "set": pl.UInt64,
        "duration": pl.Int64,
        "overlapped": pl.Int64,
        "moment": pl.Int64,
        "solo": pl.Float64,
    }
)
"""Kernel instances: which kernel in which phase (``group`` and ``phase`` are numbers), beside which ``set`` of
kernels, at which ``moment`` of the run, and how long the kernel takes alone (``solo``, null where unknown)."""

CONTENTION = pl.Schema(
    {
        "phase": pl.Int64,
        "group": pl.UInt32,
        "band": pl.Int32,
        "set": pl.UInt64,
        "companion": pl.UInt32,
        "sets": pl.UInt32,
        "instances": pl.UInt32,
        "stretch": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "spent": pl.Int64,
        "beside": pl.Int64,
        "note": pl.String,
    }
)
"""One row a victim, band and set. Rare sets are one row a victim, ``sets`` of them, without band and set. Where
``companion`` is given, the row is its separate effect. ``spent`` and ``beside`` are the instances' time in all, and
that of it beside others (ns)."""

MIXED = "mixed durations alone"
APART = "its kernels are told apart in rows of their own"
NO_PRODUCT = "one set: the effects of its kernels do not multiply"
NOT_APART = "one set: who ran beside varies too little to tell its kernels apart"

_VICTIM = ["phase", "group"]
_SET = [*_VICTIM, "band", "set"]


def contention(victims: pl.DataFrame, members: pl.DataFrame, references: list[pl.DataFrame]) -> pl.DataFrame:
    """Stretch of each kernel beside each set, most overlapped time first: CONTENTION.

    ``victims`` follow VICTIMS; ``members`` names the kernels (``group``) of each ``set``. ``references`` (VICTIMS, too,
    ``set`` and ``phase`` aside) hold the instances that solo durations were measured on, those of the first in which
    a kernel ran alone: their spread is part of the intervals. There are none where each moment has solo durations of
    its own. The stretch is the median over instances. Its interval is a block bootstrap of the mean, over the moments,
    of the logarithm of each moment's median stretch, laid about the stretch.
    """
    beside = _banded(victims.filter(_BESIDE))
    sets = _summed(beside, _SET).filter(pl.col("instances") >= FEWEST).head(MOST_SETS)
    rest = _summed(beside.join(sets, on=_SET, how="anti"), _VICTIM)
    of_sets = sets.select(_VICTIM).unique()
    alone = _banded(victims.filter(_ALONE).join(of_sets, on=_VICTIM, how="semi"))
    sets = pl.concat([sets, _summed(alone, _SET)]).with_row_index("row")
    told = pl.concat([beside, alone]).join(sets.select("row", *_SET), on=_SET)
    measured_alone = _first_alone(references, of_sets["group"].unique())
    solo = Reference.of(measured_alone) if references else None
    measured = [
        _measured(of_phase, told.filter(phase=phase), solo, members)
        for (phase,), of_phase in sets.partition_by("phase", as_dict=True).items()
    ]
    rest = rest.with_columns(note=pl.format("{} other sets, each with less time", "sets"))
    mixed = pl.col("group").is_in(_mixed(measured_alone if references else alone).implode())
    return (
        pl.concat([*measured, rest], how="diagonal")
        .match_to_schema(CONTENTION, missing_columns="insert", extra_columns="ignore")
        .with_columns(note=pl.concat_str("note", pl.when(mixed).then(pl.lit(MIXED)), separator="; ", ignore_nulls=True))
        .with_columns(pl.col("note").replace("", None))
        .sort(["beside", *_SET, "companion"], descending=[True, *([False] * 5)], nulls_last=True)
    )


_STRETCH = pl.col("duration") / pl.col("solo")
_BESIDE = pl.col("overlapped") > ALONE_FRACTION * pl.col("duration")
_ALONE = ran_alone(pl.col("duration"))


def _banded(victims: pl.DataFrame) -> pl.DataFrame:
    """Add ``stretch`` and ``band``; alone, the set does not matter."""
    most = pl.col("overlapped") > HALF * pl.col("duration")
    return victims.with_columns(
        band=pl.when(most).then(OVER_HALF).when(_BESIDE).then(UP_TO_HALF).otherwise(ALONE),
        set=pl.when(_BESIDE).then("set").otherwise(0),
        stretch=_STRETCH,
    )


def _first_alone(sources: list[pl.DataFrame], groups: pl.Series) -> pl.DataFrame:
    """The instances of each group that ran alone in the first source that has any, with their ``stretch``."""
    found = [
        pl.DataFrame(schema={name: VICTIMS[name] for name in ("group", "duration", "moment")} | {"stretch": pl.Float64})
    ]
    for source in sources:
        rows = source.filter(_ALONE & pl.col("group").is_in(groups.implode()))
        found.append(rows.select("group", "duration", "moment", stretch=_STRETCH))
        groups = groups.filter(~groups.is_in(rows["group"].unique().implode()))
    return pl.concat(found)


def _mixed(alone: pl.DataFrame) -> pl.Series:
    """The kernels whose durations alone are those of several kinds of work."""
    known = alone.drop_nulls("stretch")
    spread = sorted_stretches(known["group"], known["stretch"])
    return pl.Series(spread.group[spread.spread_beyond(MIXED_SPREAD)], dtype=pl.UInt32)


def _summed(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return (
        rows.group_by(by)
        .agg(
            sets=pl.col("set").n_unique() if "set" not in by else pl.lit(1, pl.UInt32),
            instances=pl.len(),
            stretch=pl.col("stretch").median(),
            spent=pl.col("duration").sum(),
            beside=pl.col("overlapped").sum(),
        )
        .sort(["beside", *by], descending=[True, *([False] * len(by))])
    )


def _measured(sets: pl.DataFrame, rows: pl.DataFrame, solo: Reference | None, members: pl.DataFrame) -> pl.DataFrame:
    """The sets of one phase with intervals, and the separate effects of their kernels."""
    sizes = members.group_by("set").agg(size=pl.len())
    sets = sets.join(sizes, on="set", how="left", maintain_order="left").with_row_index("column")
    column = rows.join(sets.select("row", "column"), on="row", how="left", maintain_order="left")["column"]
    means = mean_stretches(rows, column, sets.height)
    if solo is not None:
        means = solo.included(means, sets["group"])
    known = pl.Series(means.runs >= FEWEST_BLOCKS)
    sets = sets.with_columns(
        *(
            pl.when(known).then(pl.col("stretch") * pl.Series(np.exp(bound))).alias(name)
            for name, bound in zip(("low", "high"), bounds(means.deviation), strict=True)
        ),
        note=pl.when(pl.col("stretch").is_null())
        .then(pl.lit("its solo duration is unknown"))
        .when(~known)
        .then(pl.lit("too few moments for an interval"))
        .when(pl.col("size") > 1)
        .then(pl.lit(NOT_APART)),
    )
    several = sets.filter(pl.col("low").is_not_null() & (pl.col("band") > ALONE)).filter(
        (pl.len().over(*_VICTIM, "band") >= FEWEST_SETS) & (pl.col("size").max().over(*_VICTIM, "band") > 1)
    )
    notes, effects = _told_apart(several, means.deviation, members)
    return pl.concat([sets.update(notes, on="column"), effects], how="diagonal")


def _told_apart(sets: pl.DataFrame, deviation: Floats, members: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What to note on sets (``column``, ``note``), and the effects of kernels that are told apart."""
    within = sets.join(members.rename({"group": "companion"}), on="set")
    within = within.with_columns(victim=pl.col("column").min().over(*_VICTIM, "band"))
    stretch = np.zeros(deviation.shape[0])
    stretch[sets["column"].to_numpy()] = np.log(sets["stretch"].to_numpy())
    notes = [sets.select("column", "note").clear()]
    effects = [pl.DataFrame(schema=_EFFECT)]
    for (victim,), part in within.partition_by("victim", as_dict=True).items():
        column, companion = (part[name].to_numpy() for name in ("column", "companion"))
        own, kernels = distinct(column), distinct(companion)
        design = np.zeros((own.size, kernels.size), np.bool_)
        design[np.searchsorted(own, column), np.searchsorted(kernels, companion)] = True
        found = separate(design, stretch[own], deviation[own])
        mismatched = found.mismatched & (design.sum(axis=1) > 1)
        why = np.select([found.apart, mismatched], [APART, NO_PRODUCT], NOT_APART)
        told = found.apart | mismatched
        notes.append(pl.DataFrame({"column": own[told], "note": why[told].astype(str)}, schema=notes[0].schema))
        values = (np.exp(value[found.known]) for value in (found.effect, found.low, found.high))
        effects.append(
            pl.DataFrame([np.full(found.known.sum(), victim), kernels[found.known], *values], schema=_EFFECT)
        )
    summed = (
        within.drop("stretch", "low", "high")
        .join(pl.concat(effects), on=["victim", "companion"])
        .group_by(*_VICTIM, "band", "companion", "stretch", "low", "high")
        .agg(pl.col("sets", "instances", "spent", "beside").sum())
    )
    return pl.concat(notes), summed


_EFFECT = pl.Schema(
    {"victim": pl.UInt32, "companion": pl.UInt32, "stretch": pl.Float64, "low": pl.Float64, "high": pl.Float64}
)
