"""The arms of a comparison with their kernels told apart otherwise: by name, or by the operator that ran them."""

from dataclasses import replace

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.kernels.solo import SOLO, alone, first_known, of_instances
from tracekit.analysis.kernels.telling_apart import Told, told_apart
from tracekit.analysis.phases.instances import instance_episodes
from tracekit.analysis.results import Warn
from tracekit.analysis.verdict.clocks import at_the_clock_of
from tracekit.analysis.wanted import By

_DURATIONS = ["solo", "solo_low", "solo_high"]


def regrouped(sides: list[list[Arm]], by: By) -> tuple[list[list[Arm]], list[Warn]]:
    """Arms, each a list of blocks, told apart by launch configuration, with ``group`` as ``by`` makes it, and warnings.

    Solo durations are of the launch configuration under the same operator where it ran alone so, else of the launch
    configuration, as the arm has them. Those of a group are the medians over its instances.
    """
    if by == "launch":
        return sides, []
    told = iter(told_apart([block.trace for side in sides for block in side], by))
    pairs = [[(block, next(told)) for block in side] for side in sides]
    eager = next((side for side in pairs if side[0][0].role == "eager"), [])
    arms = [
        [_regrouped(block, each, *eager[i : i + 1] or eager[:1]) for i, (block, each) in enumerate(side)]
        for side in pairs
    ]
    warnings = [
        Warn(warning.code, f"{block.letter}: {warning.message}", warning.count)
        for side in pairs
        for block, each in side
        for warning in each.warnings
    ]
    return arms, warnings


def _regrouped(arm: Arm, told: Told, eager: tuple[Arm, Told] | None = None) -> Arm:
    solo = _by_kind(arm, told, eager)
    rows = arm.work.kernels.with_columns(group=told.group, kind=told.kind, solo=of_instances(told.kind, solo))
    by_group = (
        rows.select("group", kind_group="kind")
        .join(solo, left_on="kind_group", right_on="group")
        .group_by("group")
        .agg(
            pl.col(_DURATIONS).median(),
            pl.col("solo_count").unique().sum(),
            pl.col("solo_from").unique().sort().str.join(", "),
        )
    )
    return replace(
        arm,
        labels=told.labels,
        work=arm.work._replace(kernels=rows),
        solo=by_group.select(list(SOLO)).cast(SOLO),
        found=instance_episodes(rows, solo),
    )


def _by_kind(arm: Arm, told: Told, eager: tuple[Arm, Told] | None) -> pl.DataFrame:
    """Solo durations (SOLO) by kind, where it never ran alone by launch configuration."""
    kinds = pl.DataFrame({"group": told.kind, "launch": told.launch}).unique()
    by_launch = kinds.join(arm.solo.rename({"group": "launch"}), on="launch").select(list(SOLO))
    if told.kind is told.launch:
        return by_launch
    own = alone(arm.work.kernels, told.kind, "same trace")
    if eager is None or arm.role == "eager":
        return first_known(own, by_launch)
    block, of_block = eager
    theirs = at_the_clock_of(alone(block.work.kernels, of_block.kind, "eager arm"), own)
    return first_known(theirs, by_launch.filter(pl.col("solo_from") != "same trace"), own, by_launch)
