"""The way from one arm's phase time to another's, in steps that add up exactly.

In each instance of a phase, time = work of the kernels - what overlapping gained + copies + idle time, where work is
what the kernels take one after another, each alone. Work changes with the kernels that only one arm runs, with how
often the others are launched, and with how long each takes. All of these are means over the typical instances of
each arm (typical.py), so that each step is a difference of two means, or over blocks a mean of such differences.

Where nearly all kernels differ by one factor c, ``clocks`` is (c - 1) x the work of the kernels that both arms run,
whether they overlapped or not; solo durations carry the same factor (clocks.py), so overlap does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tracekit.analysis.phases.comparison import GAIN_COVERAGE, PhasePair
from tracekit.analysis.phases.work import PhaseWork
from tracekit.analysis.results.causes import Cause, Step
from tracekit.analysis.rows import number
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.verdict.clocks import CommonFactor, common_factor, comparable
from tracekit.analysis.verdict.phase_steps import OVERLAP, STEPS, step_values, terms_of
from tracekit.analysis.verdict.step_intervals import over_blocks, within

SIGN_SCORE = 3.0
"""Standard errors that a set's mean gain lies from zero before it counts as gain or loss by itself; the others, and
those seen once, count together, else noise about zero would pass for gain here and for loss there."""

MOSTLY_ALONE = 0.9
"""Share of a kernel's launches that ran alone from which their mean duration speaks for all."""


@dataclass(frozen=True)
class Waterfall:
    """``steps`` in the order of STEPS, and the figures behind them.

    ``kernels``: each ``group`` in a typical instance of a and (``_b``) of b, over all blocks: launches (``count``) and
    ``work`` (ns, ``unknown`` where a part of it is). ``clock``: the factor that nearly all of them differ by;
    ``clock_told``: enough ran alone in both arms to tell. ``lost``: sets of kernels whose overlap lost time.
    ``levels``: ns of each cause of time in a and in b; ``unattributed``: change of the idle time that could not be
    charged. ``known``: enough of the overlapped time has known solo durations. ``hidden``: what ran is not known.
    """

    steps: dict[Cause, Step]
    levels: dict[Cause, tuple[float, float]]
    kernels: pl.DataFrame
    clock: CommonFactor | None
    clock_told: bool
    lost: frozenset[int]
    known: bool
    hidden: bool
    unattributed: float


def waterfall(pair: PhasePair) -> Waterfall | None:
    """The steps from a to b; None where one of them has no counted instance."""
    works = [(a, b) for a, b in zip(pair.a.works, pair.b.works, strict=False) if a.times.size and b.times.size]
    if pair.a.time is None or pair.b.time is None or not works:
        return None
    change = pair.b.time - pair.a.time
    kernels = _joined(works)
    if any(work.hidden for both in works for work in both):
        return _hidden(change, kernels)
    known = min(pair.a.coverage, pair.b.coverage) >= GAIN_COVERAGE
    alone, whole = _ran_alone(kernels), float(kernels["work"].sum())
    clock = common_factor(alone, whole)
    lost = _losing([work for both in works for work in both])
    terms = [terms_of(_joined([both]), clock, lost, known) for both in works]
    values = [(step_values(a, of), step_values(b, of)) for (a, b), of in zip(works, terms, strict=True)]
    of_a, of_b = (
        np.array([_mean(both[side], of[side]) for both, of in zip(works, values, strict=True)]) for side in (0, 1)
    )
    means = of_b - of_a
    several = pair.a.blocks > 1 or pair.b.blocks > 1
    half = over_blocks(means) if several else within(works[0], values[0], pair, terms[0])
    absent = np.all([~of.any(axis=0) for both in values for of in both], axis=0)
    steps = _rounded(change, means.mean(axis=0), np.where(absent, 0.0, np.nan if half is None else half), known)
    idle = [_mean_of(b, "unattributed") - _mean_of(a, "unattributed") for a, b in works]
    levels = dict(zip(STEPS, zip(of_a.mean(axis=0).tolist(), of_b.mean(axis=0).tolist(), strict=True), strict=True))
    told = comparable(alone, whole)
    return Waterfall(steps, levels, kernels, clock, told, lost, known, False, float(np.mean(idle)))


def _hidden(change: float, kernels: pl.DataFrame) -> Waterfall:
    """All of the difference unexplained."""
    steps = {cause: Step(cause, None, None, None) for cause in STEPS[:-1]}
    steps["unexplained"] = Step("unexplained", number(change), None, None)
    return Waterfall(steps, {}, kernels, None, False, frozenset(), False, True, 0.0)


def _mean(work: PhaseWork, values: Floats) -> Floats:
    means: Floats = work.weights @ values
    return means


def _mean_of(work: PhaseWork, column: str) -> float:
    return float(work.weights @ work.instances[column].to_numpy())


def _joined(works: list[tuple[PhaseWork, PhaseWork]]) -> pl.DataFrame:
    """Kernels of typical instances of both arms, means over blocks; columns as in ``PhaseWork``, of b with ``_b``."""
    a, b = (_over_works(side) for side in zip(*works, strict=True))
    return a.join(b, on="group", how="full", suffix="_b", coalesce=True).sort("group")


def _over_works(works: Sequence[PhaseWork]) -> pl.DataFrame:
    sums = pl.col("count", "alone", "alone_ns", "work").sum() / len(works)
    every = pl.concat([work.typical_kernels for work in works])
    return every.group_by("group").agg(sums, unknown=pl.col("work").is_null().any())


def _ran_alone(kernels: pl.DataFrame) -> pl.DataFrame:
    """Durations of kernels that ran alone in both arms, as ``common_factor`` takes them.

    Those that did so now and then are left out: they may be of another kind of work than those that overlapped.
    """
    mostly = [pl.col(f"alone{side}") >= MOSTLY_ALONE * pl.col(f"count{side}") for side in ("", "_b")]
    return kernels.filter((pl.col("alone") > 0) & (pl.col("alone_b") > 0) & mostly[0] & mostly[1]).select(
        "group", a=pl.col("alone_ns") / pl.col("alone"), b=pl.col("alone_ns_b") / pl.col("alone_b"), time="alone_ns"
    )


def _losing(works: list[PhaseWork]) -> frozenset[int]:
    """Sets of kernels whose overlap lost time over all blocks."""
    lost = pl.col("wall") - pl.col("solo")
    sums = (
        pl.concat([work.episodes.with_columns(work=pl.lit(i)) for i, work in enumerate(works)])
        .group_by("set", "work", "cluster")
        .agg(lost=lost.sum())
        .group_by("set")
        .agg(pl.col("lost").sum(), mean=pl.col("lost").mean(), error=pl.col("lost").std() / pl.len().sqrt())
        .with_columns(clear=(pl.col("mean").abs() > SIGN_SCORE * pl.col("error")).fill_null(False))
    )
    rest = float(sums.filter(~pl.col("clear"))["lost"].sum())
    losing = sums.filter(pl.when("clear").then(pl.col("lost") > 0).otherwise(rest > 0))
    return frozenset(losing["set"])


def _rounded(change: float, means: Floats, half: Floats, known: bool) -> dict[Cause, Step]:
    """Steps in whole ns; the last takes what they leave of the change of the median times.

    ``half`` of each interval is nan where there is none, and 0 for what neither arm has any of.
    """
    steps: dict[Cause, Step] = {}
    told = 0
    for i, cause in enumerate(STEPS[:-1]):
        if cause in OVERLAP and not known:
            steps[cause] = Step(cause, None, None, None)
            continue
        value = round(float(means[i]))
        told += value
        steps[cause] = Step(cause, value, *_ends(value, value, half, i))
    rest, measured = change - told, float(means[-1])
    steps["unexplained"] = Step("unexplained", number(rest), *_ends(min(rest, measured), max(rest, measured), half, -1))
    return steps


def _ends(low: float, high: float, half: Floats, column: int) -> tuple[int | None, int | None]:
    if not math.isfinite(half[column]):
        return None, None
    return math.floor(low - half[column]), math.ceil(high + half[column])
