"""Which sets of kernels gained or lost time side by side, in one typical instance of a phase, in words."""

from typing import Any

import polars as pl

from tracekit.analysis.phases.work import PhaseWork

NAMED = 4
"""Kernels of one set that are named."""


def set_sums(works: tuple[PhaseWork, ...]) -> pl.DataFrame:
    """The sets of an arm, over all its blocks, in a typical instance: the one that gained or lost most first.

    ``set``, ``clusters``, ``episodes`` and ``members`` in all of them, W (``wall``) and S (``solo``, both ns),
    ``lost`` = W - S, the ``most`` members at once, and the ``block`` and number of a ``cluster`` that stands for the
    set.
    """
    blocks = [(i, work) for i, work in enumerate(works) if work.times.size]
    every = [
        work.episodes.with_columns(
            weight=pl.Series(work.weights).gather(work.episodes["row"]), block=pl.lit(i, pl.UInt32)
        )
        for i, work in blocks
    ]
    figures = ["wall", "solo", "members", "episodes"]
    return (
        pl.concat(every)
        .filter(pl.col("weight") > 0)
        .group_by("set", "block", "cluster")
        .agg(
            pl.col("wall", "solo", "members").sum(),
            pl.col("weight").first() / len(blocks),
            most=pl.col("members").max(),
            episodes=pl.len(),
        )
        .with_columns(pl.col(figures) * pl.col("weight"))
        .group_by("set")
        .agg(
            pl.col(figures).sum(),
            pl.col("most").max(),
            pl.col("block", "cluster").sort_by("block", "cluster").first(),
            clusters=pl.col("weight").sum(),
        )
        .with_columns(lost=pl.col("wall") - pl.col("solo"))
        .sort([pl.col("lost").abs(), pl.col("set")], descending=[True, False])
    )


def called(row: dict[str, Any], works: tuple[PhaseWork, ...]) -> str:
    """A row of ``set_sums`` by its kernels: ``a`` beside ``b``, 2 ``a`` at once, sets of ``a``, ``b`` and others."""
    arm = works[row["block"]].arm
    episodes = arm.found.episodes.filter(pl.col("cluster") == row["cluster"])["episode"]
    groups = arm.found.kernels.filter(pl.col("episode").is_in(episodes.implode()))["group"].unique().sort()
    named = [f"`{arm.kernel_names[group]}`" for group in groups]
    most = int(row["most"])
    if len(named) == 1:
        always = row["members"] > (most - 0.01) * row["episodes"]
        return f"{most if always else f'up to {most}'} {named[0]} at once"
    unique = list(dict.fromkeys(named))
    if len(named) == 2 and most == 2:
        return f"{named[0]} beside {named[1]}"
    return f"sets of {', '.join(unique[:NAMED])}{' and others' if len(unique) > NAMED else ''}"
