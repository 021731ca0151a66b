"""Solo durations of kernels whose key stands for several kinds of work, such as matmuls of several depths.

The median of a mixture is the duration of none of its members. Where an arm launches a key as often in each instance
of a phase as the arm that its solo durations come from, its k-th launch there is the k-th launch here, since the order
of launches is the program's (of graph nodes, the order of their creation). Each turn is then a kind of work of its
own. Elsewhere the mean stands for all: n of them take n x the mean, of which those that overlapped take what those
that ran alone leave.
"""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.kernels.durations import DURATION, MIXED_SPREAD, ran_alone
from tracekit.analysis.kernels.solo import SOLO
from tracekit.analysis.statistics.grouped import Grouped

AGREEING = 0.9
"""Share of a key's instances that have to lie within MIXED_SPREAD of the duration of their turn."""

FEWEST_TURNS = 2
"""Instances that a turn ran alone in before they can agree."""

_TURN = ["phase", "group", "turn"]


class Launched(NamedTuple):
    """Kernel instances (schema.KERNELS with ``group`` and ``instance``) and the ``phase`` of each ``instance``."""

    kernels: pl.DataFrame
    instances: pl.DataFrame


class Turns(NamedTuple):
    """The ``kind`` of each kernel instance of an arm, and the solo durations (SOLO) of the kinds that are turns."""

    kind: pl.Series
    solo: pl.DataFrame


def mixtures(kernels: pl.DataFrame, measured: pl.DataFrame, borrowed: pl.Series) -> pl.DataFrame:
    """Mixtures among the kernels that overlapped, and whose solo durations are ``borrowed``: their groups.

    Returns ``group``, and ``mean`` and ``median`` of the durations alone where they were ``measured``.
    """
    wanted = kernels.filter((pl.col("overlapped") > 0) & pl.col("group").is_in(borrowed.implode()))["group"].unique()
    alone = _alone(measured.filter(pl.col("group").is_in(wanted.implode())))
    of = Grouped.of(alone["group"].cast(pl.Int64), alone["duration"])
    found = pl.DataFrame(
        {
            "group": pl.Series(of.group, dtype=pl.UInt32),
            "mean": of.total() / of.count,
            "median": of.quantile(0.5),
            "mixed": of.spread_beyond(MIXED_SPREAD),
        }
    )
    return found.filter("mixed").drop("mixed")


def of_the_rest(solo: pl.DataFrame, mixed: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Solo durations (SOLO) with those of mixtures as their overlapped instances had them, on average."""
    own = (
        kernels.filter(pl.col("group").is_in(mixed["group"].implode()))
        .with_columns(alone=pl.col("overlapped") == 0)
        .group_by("group")
        .agg(
            count=pl.len().cast(pl.Int64),
            alone=pl.col("alone").sum().cast(pl.Int64),
            alone_ns=DURATION.filter("alone").sum(),
        )
    )
    mean = pl.col("mean") * _CLOCK
    rest = (pl.col("count") * mean - pl.col("alone_ns")) / (pl.col("count") - pl.col("alone"))
    scale = pl.when(rest > 0).then(rest).otherwise(mean) / pl.col("solo")
    scales = solo.join(mixed, on="group").join(own, on="group").select("group", scale=scale)
    scaled = pl.col("solo", "solo_low", "solo_high") * pl.col("scale").fill_null(1.0)
    return solo.join(scales, on="group", how="left", maintain_order="left").with_columns(scaled).drop("scale")


_CLOCK = pl.col("solo") / pl.col("median")
"""How much longer solo durations are here: they may have been brought to this arm's clock."""


def turns(here: Launched, there: Launched, solo: pl.DataFrame, mixed: pl.DataFrame) -> Turns | None:
    """Tell apart the kinds of work of mixtures, whose solo durations (``solo``) came from there; None if of none."""
    if mixed.is_empty():
        return None
    own, theirs = (_in_phases(side, mixed) for side in (here, there))
    alike = _counts(own).join(_counts(theirs), on=["phase", "group", "count"], how="semi")
    own, theirs = (_in_turn(side.join(alike, on=["phase", "group"], how="semi")) for side in (own, theirs))
    alone = _alone(theirs)
    duration = pl.col("duration")
    known = alone.group_by(_TURN).agg(
        solo=duration.median(),
        solo_low=duration.quantile(0.25, "linear"),
        solo_high=duration.quantile(0.75, "linear"),
        solo_count=pl.len(),
    )
    clocks = solo.join(mixed, on="group").select("group", "solo_from", clock=_CLOCK)
    brought = known.join(clocks, on="group").with_columns(pl.col("solo", "solo_low", "solo_high") * pl.col("clock"))
    known = known.filter(pl.col("solo_count") >= FEWEST_TURNS)
    agreeing = _agreeing(alone, known).join(_disagreeing(own, brought), on=["phase", "group"], how="anti")
    found = brought.join(agreeing, on=["phase", "group"], how="semi").sort(_TURN)
    if found.is_empty():
        return None
    beyond = int(max(solo["group"].max(), here.kernels["group"].max())) + 1  # type: ignore[type-var,arg-type]
    found = found.with_columns(kind=pl.int_range(beyond, beyond + pl.len(), dtype=pl.UInt32))
    kinds = own.select("row", *_TURN).join(found.select(*_TURN, "kind"), on=_TURN).select("row", "kind")
    rows = here.kernels.select("group").with_row_index("row").join(kinds, on="row", how="left", maintain_order="left")
    of_kinds = found.select(pl.col("kind").alias("group"), *list(SOLO)[1:]).cast(SOLO)
    return Turns(rows.select(kind=pl.coalesce("kind", "group")).to_series(), of_kinds)


def _alone(kernels: pl.DataFrame) -> pl.DataFrame:
    return kernels.with_columns(duration=DURATION).filter(ran_alone())


def _in_phases(launched: Launched, mixed: pl.DataFrame) -> pl.DataFrame:
    """The instances of mixtures within phases, with their ``row`` and ``phase``."""
    rows = launched.kernels.with_row_index("row").filter(pl.col("group").is_in(mixed["group"].implode()))
    columns = ["row", "instance", "group", "correlation", "graph_node", "start", "end", "overlapped"]
    return rows.select(columns).join(launched.instances.select("instance", "phase"), on="instance")


def _in_turn(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the ``turn`` of each instance among those of its key in its phase instance."""
    ordered = rows.sort("correlation", "graph_node", "start", nulls_last=False)
    return ordered.with_columns(turn=pl.int_range(pl.len()).over("instance", "group"))


def _counts(rows: pl.DataFrame) -> pl.DataFrame:
    """``phase``, ``group`` and ``count`` of the keys that are launched as often in every instance that has them."""
    counts = rows.group_by("instance", "phase", "group").agg(count=pl.len())
    return (
        counts.group_by("phase", "group")
        .agg(pl.col("count").first(), same=pl.col("count").n_unique() == 1)
        .filter("same")
    )


def _agreeing(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """``phase`` and ``group`` of the keys whose instances take about as long as the solo duration of their turn."""
    ratio = pl.col("duration") / pl.col("solo")
    near = ratio.is_between(1 / MIXED_SPREAD, MIXED_SPREAD)
    shares = rows.join(known.select(*_TURN, "solo"), on=_TURN).group_by("phase", "group").agg(share=near.mean())
    return shares.filter(pl.col("share") >= AGREEING)


def _disagreeing(own: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """``phase`` and ``group`` of the keys whose turns are not those of this arm, told by what ran alone in it."""
    alone = _alone(own).join(known.select("phase", "group").unique(), on=["phase", "group"], how="semi")
    return alone.select("phase", "group").unique().join(_agreeing(alone, known), on=["phase", "group"], how="anti")
