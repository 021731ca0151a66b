"""Why one arm took longer, in sentences a person can check against the figures."""

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.overlap.sets_in_words import called, set_sums
from tracekit.analysis.phases.comparison import GAIN_COVERAGE, PhasePair, Side
from tracekit.analysis.results import ALL
from tracekit.analysis.results.causes import Cause
from tracekit.analysis.statistics.thresholds import MARGIN
from tracekit.analysis.verdict.explanations import CONTRIBUTES, stretched_kernel, unknown_overlap
from tracekit.analysis.verdict.phase_steps import IDLE, OVERLAP
from tracekit.analysis.verdict.waterfall import Waterfall
from tracekit.units import duration, shortened, signed

SETS_SHOWN = 4
"""Sets of kernels named for one phase and arm."""

SET_WORTH = 0.005
"""Gain or loss, as a share of the phase's time, from which a set is named."""

SAME_SHARE = 0.05
"""Share of kernel time whose medians may differ where kernels are called unchanged."""

_FROM: dict[Cause, str] = {
    "overlap_lost": "from overlap that lost time",
    "overlap_gained": "from overlap that saved time",
    "kernels_alone": "from kernels alone",
    "one_side_only": "from kernels of one side only",
    "counts_differ": "from more or fewer launches",
    "clocks": "from one factor for all kernels",
    "gaps": "from gaps before work already launched",
    "launch_bound": "from waiting for launch calls",
    "setup": "from waiting for graph setup",
    "host_work": "from waiting for the host's own work",
    "copies": "from copies alone",
    "unexplained": "not explained",
}
"""How a sentence goes on after the size of a step."""


def explain(pair: PhasePair, fall: Waterfall | None, a: Arm, b: Arm) -> list[str]:
    """Sentences on where the difference between the arms comes from, the sum first."""
    if fall is None or fall.hidden:
        return []
    unknown = unknown_overlap(pair, a, b)
    return [
        *_parts(pair, fall, a, b),
        *_sets(pair, pair.a, a),
        *_sets(pair, pair.b, b),
        *([unknown] if unknown else []),
        *_sharing(pair),
        *_predictions(pair, a, b),
    ]


def _parts(pair: PhasePair, fall: Waterfall, a: Arm, b: Arm) -> list[str]:
    """The steps worth telling, largest first, and the rest of the difference."""
    assert pair.a.time is not None and pair.b.time is not None
    whole = pair.b.time - pair.a.time
    sizes = {cause: float(step.ns or 0) for cause, step in fall.steps.items()}
    size = max(map(abs, sizes.values()))
    if size < SET_WORTH * min(pair.a.time, pair.b.time):
        return []
    each = "" if pair.name == ALL else f" per {shortened(pair.name)}"
    told = sorted((cause for cause in sizes if abs(sizes[cause]) >= CONTRIBUTES * size), key=lambda x: -abs(sizes[x]))
    listed = [f"{signed(sizes[cause])} {_worded(cause, fall, a, b)}" for cause in told]
    gaps = sum(sizes[cause] for cause in IDLE)
    if set(told) <= set(IDLE) and abs(gaps) >= CONTRIBUTES * size and _medians_equal(pair):
        return [f"Kernels unchanged, gap time {signed(gaps)}{each}: {', '.join(listed)}"]
    rest = whole - sum(sizes[cause] for cause in told)
    if abs(rest) >= SET_WORTH * abs(whole):
        listed.append(f"{signed(rest)} from the rest")
    return [f"That is {signed(whole)}{each}: {', '.join(listed)}"]


def _worded(cause: Cause, fall: Waterfall, a: Arm, b: Arm) -> str:
    if cause == "clocks" and fall.clock is not None:
        return f"{_FROM[cause]}, {fall.clock.factor:.3f}x, as another clock makes it"
    if cause in OVERLAP:
        of_a, of_b = fall.levels[cause]
        return f"{_FROM[cause]} in {a.letter if abs(of_a) > abs(of_b) else b.letter}"
    return _FROM[cause]


def _medians_equal(pair: PhasePair) -> bool:
    """Whether kernels with nearly all of the phase's kernel time have the same median in both arms."""
    a, b = (side.works[0].medians for side in (pair.a, pair.b))
    both = a.join(b, on="group", how="full", suffix="_b", coalesce=True)
    same = (pl.col("median_b") / pl.col("median") - 1).abs() <= MARGIN
    time = pl.sum_horizontal("total", "total_b")
    whole = int(both.select(time).sum().item())
    return bool(whole) and int(both.filter(same.fill_null(False)).select(time).sum().item()) >= (1 - SAME_SHARE) * whole


def _sets(pair: PhasePair, side: Side, arm: Arm) -> list[str]:
    """What overlap lost and saved in one arm, by the sets of kernels that did so most."""
    if side.coverage < GAIN_COVERAGE or side.time is None:
        return []
    sums = set_sums(side.works)
    if sums.is_empty():
        return []
    told = []
    for lost, verb in ((True, "lost"), (False, "saved")):
        sets = sums.filter((pl.col("lost") > 0) == lost)
        whole = abs(float(sets["lost"].sum()))
        shown = sets.filter(pl.col("lost").abs() >= SET_WORTH * side.time).head(SETS_SHOWN)
        if shown.is_empty():
            continue
        rows = shown.rows(named=True)
        listed = [_set(row, side, amount=len(sets) > 1) for row in rows]
        rest = whole - abs(float(shown["lost"].sum()))
        if rest >= SET_WORTH * side.time:
            listed.append(f"{duration(rest)} other sets")
        told.append(f"In {arm.letter}, overlap {verb} {duration(whole)}: {', '.join(listed)}")
    if not told:
        wall = duration(float(sums["wall"].sum()))
        return [f"In {arm.letter}, overlap ({wall}) neither saved nor lost time"]
    return told


def _set(row: dict[str, float], side: Side, *, amount: bool) -> str:
    """A set with its W and S: of each episode, or of all where their members are the same instances."""
    count = row["episodes"]
    apart = row["clusters"] > 0.99 * count
    wall, solo = (row[name] / (count if apart else 1) for name in ("wall", "solo"))
    episodes = f"{count:.3g} episode{'' if round(count, 2) == 1 else 's'}"
    figures = f"{episodes}, {'' if apart else 'in all '}W {duration(wall)} against S {duration(solo)}"
    size = f"{duration(abs(row['lost']))} is " if amount else ""
    return f"{size}{called(row, side.works)} ({figures})"


def _sharing(pair: PhasePair) -> list[str]:
    """Say of the longest kernel that shared the GPU, slower where the phase is not, that this is no loss of time."""
    if pair.interval is None:
        return []
    found = stretched_kernel(pair)
    if found is None:
        return []
    return [
        f"The median of `{found.name}` in {found.letter} is {found.beside / found.alone:.2f}x "
        f"({duration(found.alone)} -> {duration(found.beside)}), which is sharing the GPU, not lost time"
    ]


def _predictions(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    """What-if serial, where there is overlap that it would undo."""
    sentences = []
    for arm, side in ((a, pair.a), (b, pair.b)):
        if side.time is None or not side.medians["overlapped_ns"]:
            continue
        if side.serial is not None:
            low, high = (duration(bound, 4) for bound in (side.serial.low, side.serial.high))
            sentences.append(
                f"With its kernels one after another, {arm.letter} is predicted at {duration(side.serial.value)} "
                f"[{low}, {high}]{_held_against(pair, side.serial.value)}"
            )
        elif side.coverage >= GAIN_COVERAGE:
            sentences.append(
                f"With its kernels one after another, {arm.letter} cannot be predicted: it has no pause between "
                "dependent kernels to measure"
            )
    return sentences


def _held_against(pair: PhasePair, predicted: float) -> str:
    if pair.serial_arm is None:
        return ""
    letter, time = pair.serial_arm
    error = f"{predicted / time - 1:+.1%}"
    return f"; measured with {letter}, whose graph nodes run one after another: {duration(time)} ({error})"
