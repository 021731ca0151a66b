"""How long a kernel takes alone: measured where it ran alone, never guessed."""

import polars as pl

from tracekit.analysis.kernels.durations import DURATION, ran_alone

SOLO = pl.Schema(
    {
        "group": pl.UInt32,
        "solo": pl.Float64,
        "solo_low": pl.Float64,
        "solo_high": pl.Float64,
        "solo_count": pl.UInt32,
        "solo_from": pl.String,
    }
)
"""Solo durations (ns): median and p25-p75 over ``solo_count`` instances, and where they were measured."""


def alone(kernels: pl.DataFrame, group: pl.Series, source: str) -> pl.DataFrame:
    """Solo durations of one trace: its instances with an overlapped fraction of at most 1 %.

    An instance of no length carries no timing. Returns SOLO.
    """
    duration = pl.col("duration")
    rows = kernels.select("overlapped", duration=DURATION, group=group)
    return (
        rows.filter(ran_alone(duration))
        .group_by("group")
        .agg(
            solo=duration.median(),
            solo_low=duration.quantile(0.25, "linear"),
            solo_high=duration.quantile(0.75, "linear"),
            solo_count=pl.len(),
        )
        .with_columns(solo_from=pl.lit(source))
        .select(list(SOLO))
        .cast(SOLO)
    )


def first_known(*sources: pl.DataFrame) -> pl.DataFrame:
    """For each group its solo duration from the first of the sources (SOLO frames) that knows it."""
    return pl.concat(sources).unique("group", keep="first", maintain_order=True).sort("group")


def of_instances(group: pl.Series, solo: pl.DataFrame) -> pl.Series:
    """The solo duration (ns) of each instance, null where unknown; ``solo`` (SOLO) is by ``group``."""
    every = pl.DataFrame({"group": pl.arange(int(group.max() or 0) + 1, dtype=pl.UInt32, eager=True)})  # type: ignore[arg-type]
    by_group = every.join(solo, on="group", how="left", maintain_order="left")["solo"]
    return by_group.gather(group).rename("solo")


OTHER_LAUNCH = "eager arm, other launch configuration"


def by_name(kernels: pl.DataFrame, group: pl.Series, names: pl.DataFrame, source: str = OTHER_LAUNCH) -> pl.DataFrame:
    """Solo durations for other launch configurations of the same kernel name.

    ``names`` gives the ``name`` of every ``group`` of any trace. Every group of a name that ran alone here
    gets the distribution over all launch configurations of that name. Returns SOLO, marked by ``source``.
    """
    numbered = names.select("group", number=pl.col("name").rank("dense").cast(pl.UInt32))
    instances = pl.DataFrame({"group": group}).join(numbered, on="group", how="left", maintain_order="left")
    pooled = alone(kernels, instances["number"], source).rename({"group": "number"})
    return numbered.join(pooled, on="number").drop("number").select(list(SOLO))
