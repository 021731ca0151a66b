"""Intervals of the steps between two arms: over blocks, or within one trace a side."""

import math

import numpy as np
import polars as pl

from tracekit.analysis.phases.comparison import PhasePair
from tracekit.analysis.phases.work import PhaseWork
from tracekit.analysis.statistics.ratios import Floats, t_half, worth
from tracekit.analysis.statistics.thresholds import FEWEST, FEWEST_BLOCKS
from tracekit.analysis.statistics.typical import resampled_deviations
from tracekit.analysis.verdict.phase_steps import STEPS, Terms, in_sets

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normally distributed values: solo durations are medians."""


def over_blocks(differences: Floats) -> Floats | None:
    """Half the 95 % t-interval of the mean of paired differences; a row a block."""
    return None if differences.shape[0] < FEWEST_BLOCKS else t_half(differences)


def within(
    works: tuple[PhaseWork, PhaseWork], values: tuple[Floats, Floats], pair: PhasePair, terms: Terms
) -> Floats | None:
    """Half the 95 % interval of the steps between two traces, from resampled instances.

    Welch's t-interval with bootstrap standard errors. The instances that solo durations were measured in are
    resampled with it: an instance that ran slow there makes all that it measured slow.
    """
    from scipy.special import stdtrit

    a, b = works
    if min(a.times.size, b.times.size) < FEWEST:
        return None
    samples = {"a": (a, values[0].copy(), -1), "b": (b, values[1].copy(), 1)}
    for letter, sign in (("a", -1), ("b", 1)):
        used = samples[letter][0]
        beside, steps = _beside(used), _share_of_steps(used, terms)
        for source, measured in _solo_sources(pair, letter, works):
            if source not in samples:
                samples[source] = (measured, np.zeros((measured.times.size, len(STEPS))), 1)
            _, matrix, direction = samples[source]
            matrix += direction * sign * np.outer(_solo_errors(beside, measured), steps)
            beside = beside.join(measured.kernels.filter("alone"), on="group", how="anti")
    errors, free = [], []
    for letter, (work, matrix, _) in samples.items():
        count = work.times.size
        if count < 2:
            continue
        moved = resampled_deviations(work.times, matrix, letter)
        errors.append(moved.std(axis=0) ** 2 * count / (count - 1) / worth(work.times))
        free.append(count - 1)
    squares = np.array(errors)
    total = squares.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = total**2 / (squares**2 / np.array(free)[:, np.newaxis]).sum(axis=0)
    half: Floats = stdtrit(np.nan_to_num(degrees, nan=1.0), 0.975) * np.sqrt(total)
    return half


def _solo_sources(pair: PhasePair, letter: str, works: tuple[PhaseWork, PhaseWork]) -> list[tuple[str, PhaseWork]]:
    """Where an arm's solo durations were measured, in order: the eager arm, its own trace, the other arm."""
    sides = dict(zip("ab", works, strict=True))
    own, other = sides[letter], "b" if letter == "a" else "a"
    ordered = [(letter, own), (other, sides[other])]
    if own.arm.role == "eager" or pair.eager is None:
        return ordered
    eager = pair.eager.works[0]
    if eager.arm.letter == sides[other].arm.letter:
        return ordered[::-1]
    return [("e", eager), *ordered]


def _beside(work: PhaseWork) -> pl.DataFrame:
    """Kernels that overlapped in a typical instance: ``group`` and how many (``beside``)."""
    return work.typical_kernels.select("group", beside=pl.col("count") - pl.col("alone")).filter(pl.col("beside") > 0)


def _solo_errors(beside: pl.DataFrame, measured: PhaseWork) -> Floats:
    """How much more S would be had each instance of ``measured``, by itself, given the solo durations.

    The mean of the n_g durations of kernel g is off by the mean over the instances of
    sum(duration - mean) x instances / n_g, which is linear in what each of them measured.
    """
    count = measured.times.size
    duration = pl.col("duration")
    alone = measured.kernels.filter("alone").join(beside, on="group")
    rows = alone.select(
        "row", more=(duration - duration.mean().over("group")) * pl.col("beside") * count / pl.len().over("group")
    )
    errors: Floats = np.bincount(rows["row"].to_numpy(), rows["more"].to_numpy(), count).astype(np.float64)
    return MEDIAN_ERROR * errors


def _share_of_steps(work: PhaseWork, terms: Terms) -> Floats:
    """What each step (STEPS) gains per ns that S of ``work`` is more: overlap loses what kernels alone win."""
    steps = np.zeros(len(STEPS))
    if terms.known:
        solo = float(work.episodes["solo"].sum())
        losing = float(work.episodes.filter(in_sets(terms.lost))["solo"].sum()) / solo if solo else 0.0
        steps[STEPS.index("overlap_lost")] = -losing
        steps[STEPS.index("overlap_gained")] = losing - 1
        steps[STEPS.index("kernels_alone")] = 1
    return steps
