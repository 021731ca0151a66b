"""Who ran beside whom in each arm of a comparison: contention, and what overlap gained or lost by set."""

from functools import partial

import polars as pl

from tracekit.analysis.arms import Arm, Blocks
from tracekit.analysis.kernels.durations import DURATION
from tracekit.analysis.kernels.operators import operators_of
from tracekit.analysis.overlap.companions import Companions, companions
from tracekit.analysis.overlap.contention import contention
from tracekit.analysis.overlap.episode_sets import sets_of
from tracekit.analysis.overlap.rows import contention_rows, named_kernels, set_rows
from tracekit.analysis.results import OUTSIDE, Contention, Kernel, OverlapSet
from tracekit.analysis.statistics.moments import of_time
from tracekit.together import together


def contention_of(sides: list[Blocks]) -> list[Contention]:
    """Contention in every arm."""
    leads = [side[0] for side in sides]
    leads.sort(key=lambda arm: arm.role != "eager")
    return [row for rows in together(*(partial(_contention, side, leads) for side in sides)) for row in rows]


def _contention(side: Blocks, leads: list[Arm]) -> list[Contention]:
    """Contention in one arm; ``leads`` are the first blocks of all arms, an eager arm first.

    Moments of the run are resampled; of several traces these, each with solo durations of its own. Where kernels are
    hidden or records lost it is unknown who ran beside whom, and there are no rows.
    """
    if _hidden(side) or not any((block.work.kernels["overlapped"] > 0).any() for block in side):
        return []
    phases = [OUTSIDE, *_phases(side)]
    beside = [companions(block.work.kernels, block.work.kernels["group"]) for block in side]
    victims = [
        _victims(block, phases).with_columns(set=_sets(block, each)) for block, each in zip(side, beside, strict=True)
    ]
    if len(side) > 1:
        victims = [rows.with_columns(moment=pl.lit(i, pl.Int64)) for i, rows in enumerate(victims)]
    members = pl.concat([each.members for each in beside]).unique()
    rows = contention(pl.concat(victims), members, _references(side, leads, victims[0]))
    return contention_rows(rows, members, _kernels(side), side[0].letter, phases)


def _hidden(side: Blocks) -> bool:
    return any(block.trust.sums_withheld or block.trust.ranking_withheld for block in side)


def _phases(side: Blocks) -> list[str]:
    return sorted({name for block in side for name in block.figures["phase"]})


def _kernels(side: Blocks) -> dict[int, Kernel]:
    return named_kernels(pl.concat([block.labels for block in side]))


def _victims(block: Arm, phases: list[str]) -> pl.DataFrame:
    """Counted instances as contention.VICTIMS, without what ran beside them; phases are numbered as listed."""
    numbers = {name: number for number, name in enumerate(phases)}
    of_instances = block.figures.sort("instance")["phase"].replace_strict(numbers, return_dtype=pl.Int64)
    rows = block.counted
    return rows.select(
        "group",
        "overlapped",
        "solo",
        duration=DURATION,
        moment=block.moments,
        phase=of_instances.gather(rows["instance"]).fill_null(phases.index(OUTSIDE)),
    )


def _references(side: Blocks, leads: list[Arm], own: pl.DataFrame) -> list[pl.DataFrame]:
    """Where solo durations come from: the eager arm, the arm itself, the others; an eager arm is its own first."""
    if len(side) > 1:
        return []
    others = [_victims(arm, [OUTSIDE, *_phases([arm])]) for arm in leads if arm is not side[0]]
    elsewhere = side[0].role != "eager" and leads[0].role == "eager"
    return [*others[:elsewhere], own, *others[elsewhere:]]


def _sets(block: Arm, beside: Companions) -> pl.Series:
    return beside.of_instances.gather(block.counted["position"])


def overlap_sets_of(sides: list[Blocks]) -> list[OverlapSet]:
    """What overlap gained or lost by set of kernels, in every arm and phase: see ``phase_sets``."""
    return [row for rows in together(*(partial(_overlap_sets, side) for side in sides)) for row in rows]


def _overlap_sets(side: Blocks) -> list[OverlapSet]:
    if _hidden(side):
        return []
    kernels, operators = _kernels(side), _operators(side)
    rows = []
    for phase in _phases(side):
        sets, instances = phase_sets(side, phase)
        rows += set_rows(sets, kernels, operators, side[0].letter, phase, instances)
    return rows


def _operators(side: Blocks) -> dict[int, list[str]]:
    """The operators under which each group of kernels ran, as far as they are known."""
    named = [
        block.work.kernels.select("group", operator=operators_of(block.trace, block.trace.kernels).of_kernels)
        .drop_nulls()
        .unique()
        for block in side
    ]
    return dict(
        pl.concat(named)
        .unique()
        .sort("group", "operator")
        .group_by("group", maintain_order=True)
        .agg("operator")
        .iter_rows()
    )


def phase_sets(side: Blocks, phase: str) -> tuple[pl.DataFrame, int]:
    """Overlap by set (episode_sets.SETS), summed over the counted instances of a phase; how many those are.

    The instances are resampled; of a phase with one instance, blocks of its time; of several traces, these.
    """
    counted = [block.figures.filter((pl.col("phase") == phase) & ~pl.col("warm_up"))["instance"] for block in side]
    sizes = pl.Series([each.len() for each in counted])
    episodes, kernels = [], []
    for i, (block, instances) in enumerate(zip(side, counted, strict=True)):
        order = pl.DataFrame({"instance": instances}).with_row_index("block")
        rows = block.episodes.filter(pl.col("phase") == phase).join(order, on="instance", maintain_order="left")
        apart = pl.col("episode").cast(pl.Int64) + (i << 32)
        episodes.append(rows.with_columns(apart, trace=pl.lit(i)))
        kernels.append(block.found.kernels.with_columns(apart))
    rows, of_rows = pl.concat(episodes), pl.concat(kernels)
    if len(side) > 1:
        sets = sets_of(rows, of_rows, rows["trace"], sizes)
    elif sizes[0] > 1:
        sets = sets_of(rows, of_rows, rows["block"], pl.ones(sizes[0], eager=True))
    else:
        sets = sets_of(rows.with_columns(stratum=pl.lit(0)), of_rows, of_time(rows), None)
    return sets, int(sizes.sum())
