"""Whether a comparison can be trusted: every check with its figure and limit, and what it keeps from being said."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tracekit.analysis.arms import Arm
from tracekit.analysis.phases.comparison import Side
from tracekit.analysis.results import ALL, OUTSIDE, Check, CheckOutcome
from tracekit.analysis.statistics.ratios import ratio_of_blocks, status
from tracekit.analysis.statistics.steadiness import drift, states_of_both, time_in_outliers, two_states
from tracekit.analysis.statistics.thresholds import (
    COVERAGE_LIMIT,
    DRIFT_CHANGE,
    FEWEST,
    FEWEST_BLOCKS,
    FEWEST_FOR_DRIFT,
    FEWEST_FOR_STATES,
    LEAST_EFFECT,
    OPAQUE_LIMIT,
    OUTLIER_SHARE,
    STATE_RATIO,
)
from tracekit.units import percent

INSTANCES = "instances"
"""The one check that verdicts tell of in their own words: without enough there is no interval."""

Blocks = Sequence[Arm]


def trust_checks(arms: Sequence[Blocks], phases: Mapping[str, Sequence[Side]]) -> list[Check]:
    """All checks of arms, each a list of blocks; ``phases`` has each phase's sides, one an arm."""
    letters = [blocks[0].letter for blocks in arms]
    checks = [*_alike(arms), *(check for blocks in arms for check in _recording(blocks))]
    for name, sides in phases.items():
        if name == OUTSIDE:
            continue
        for letter, side in zip(letters, sides, strict=True):
            checks += [check(name, letter, side) for check in (_instances, _drift, _states, _outliers) if side.count]
        for letter, side in zip(letters[1:], sides[1:], strict=True):
            if sides[0].count and side.count:
                checks += [*_states_of_both(name, letter, sides[0], side), _spread(name, letter, sides[0], side)]
    return checks


def withheld(checks: Sequence[Check], phase: str, letters: Sequence[str]) -> tuple[str, ...]:
    """Why no verdict is given on a phase of these arms, beyond too few instances."""
    return tuple(
        check.message
        for check in checks
        if check.withholds
        and check.failed
        and check.name != INSTANCES
        and check.phase in (phase, None)
        and check.arm in (*letters, None)
    )


def _instances(phase: str, letter: str, side: Side) -> Check:
    over_blocks = side.blocks > 1
    count, fewest = (side.times.size, FEWEST_BLOCKS) if over_blocks else (side.count, FEWEST)
    unit = "blocks" if over_blocks else "instances"
    message = f"{letter} has n = {count}, {fewest} {unit} are needed"
    if phase == ALL:
        message += ": without ranges the whole trace counts once"
    return Check(INSTANCES, letter, phase, count, unit, fewest, "pass" if count >= fewest else "fail", True, message)


def _drift(phase: str, letter: str, side: Side) -> Check:
    """Of the blocks where they are enough; else within each block, which their median bears."""
    of_blocks = side.times.size >= FEWEST_FOR_DRIFT or side.blocks == 1
    series = [side.times] if of_blocks else [work.times for work in side.works]
    trends = [trend for trend in map(drift, series) if trend is not None]
    if not trends:
        few = f"fewer than {FEWEST_FOR_DRIFT} times in a row are too few to see drift"
        return Check("drift", letter, phase, None, "share", DRIFT_CHANGE, "cannot tell", False, few)
    worst = max(trends, key=lambda trend: (trend.found, abs(trend.change)))
    outcome: CheckOutcome = "pass" if not worst.found else "fail" if of_blocks else "warn"
    where = "" if of_blocks else " in a block"
    message = f"{letter} has {worst}{where}"
    return Check("drift", letter, phase, round(worst.change, 6), "share", DRIFT_CHANGE, outcome, of_blocks, message)


def _states(phase: str, letter: str, side: Side) -> Check:
    states = two_states(side.times)
    if states is None:
        unit = "blocks" if side.blocks > 1 else "instances"
        few = f"two states cannot be told from noise in fewer than {FEWEST_FOR_STATES} {unit}"
        return Check("states", letter, phase, None, "ratio", STATE_RATIO, "cannot tell", False, few)
    ratio = round(states.high / states.low, 6) if states.low > 0 else None
    message = f"{letter} has {states}"
    outcome: CheckOutcome = "fail" if states.found else "pass"
    return Check("states", letter, phase, ratio, "ratio", STATE_RATIO, outcome, True, message)


def _states_of_both(phase: str, letter: str, a: Side, b: Side) -> Iterator[Check]:
    """Where the blocks of either arm are too few, those of both: machine states do not care for arms."""
    if min(a.blocks, b.blocks) < 2 or min(a.times.size, b.times.size) >= FEWEST_FOR_STATES:
        return
    states = states_of_both([a.times, b.times])
    if states is not None and states.found:
        message = f"the blocks of a and {letter} together are {states} (as times of a)"
        ratio = round(states.high / states.low, 6)
        yield Check("states of both", letter, phase, ratio, "ratio", STATE_RATIO, "fail", True, message)


def _outliers(phase: str, letter: str, side: Side) -> Check:
    shares = [share for share in (time_in_outliers(work.times) for work in side.works) if share is not None]
    if not shares:
        few = f"outliers cannot be told in fewer than {FEWEST} instances"
        return Check("outliers", letter, phase, None, "share", OUTLIER_SHARE, "cannot tell", False, few)
    share = max(shares)
    message = f"{percent(share)} of the time of {letter} is in outliers"
    outcome: CheckOutcome = "pass" if share <= OUTLIER_SHARE else "warn"
    return Check("outliers", letter, phase, round(share, 6), "share", OUTLIER_SHARE, outcome, False, message)


def _spread(phase: str, letter: str, a: Side, b: Side) -> Check:
    """Arms that are the same may be as close as they like."""
    interval = ratio_of_blocks(a.times, b.times) if min(a.blocks, b.blocks) > 1 else None
    if interval is None:
        few = f"how much runs differ needs {FEWEST_BLOCKS} blocks a side: what is said holds within these runs"
        return Check("spread of blocks", letter, phase, None, "ratio", LEAST_EFFECT, "cannot tell", False, few)
    pairs = min(a.times.size, b.times.size)
    logs = np.log(b.times[:pairs] / a.times[:pairs])
    spread = float(np.std(logs, ddof=1))
    effect = abs(float(logs.mean())) / spread if spread else None
    apart = effect is None or effect >= LEAST_EFFECT or status(interval, True) == "same"
    message = f"a and {letter} are {percent(abs(float(logs.mean())))} apart, their blocks vary by {percent(spread)}"
    outcome: CheckOutcome = "pass" if apart else "fail"
    figure = None if effect is None else round(effect, 6)
    return Check("spread of blocks", letter, phase, figure, "ratio", LEAST_EFFECT, outcome, True, message)


def _recording(blocks: Blocks) -> Iterator[Check]:
    """What the traces of one arm lack."""
    letter = blocks[0].letter
    recordings = [block.trust.recording for block in blocks]
    known = [each.launch_coverage for each in recordings if each.launch_coverage is not None]
    if known:
        least = min(known)
        message = f"GPU records of {letter} were lost, so times are too short ({percent(least, 0)} are there)"
        kept: CheckOutcome = "pass" if least >= COVERAGE_LIMIT else "fail"
        if kept == "pass":
            message = f"{percent(least)} of the GPU records of {letter} are there"
        yield Check("lost records", letter, None, round(least, 6), "share", COVERAGE_LIMIT, kept, True, message)
    yield _hidden(letter, [each.opaque_share for each in recordings])
    invalid = sum(sum(each.invalid_rows.values()) for each in recordings)
    believed: CheckOutcome = "warn" if invalid else "pass"
    message = f"{invalid} kernel rows of {letter} have impossible times and were left out"
    yield Check("impossible times", letter, None, invalid, "rows", 0, believed, False, message)


def _hidden(letter: str, shares: Sequence[float | None]) -> Check:
    if None in shares:
        unknown = f"how much of the GPU time of {letter} is inside graphs recorded whole is not known"
        return Check("hidden kernels", letter, None, None, "share", OPAQUE_LIMIT, "cannot tell", False, unknown)
    most = max(share or 0.0 for share in shares)
    outcome: CheckOutcome = "pass" if not most else "warn" if most <= OPAQUE_LIMIT else "fail"
    message = f"{percent(most)} of the GPU time of {letter} is inside graphs recorded whole"
    return Check("hidden kernels", letter, None, round(most, 6), "share", OPAQUE_LIMIT, outcome, False, message)


def _alike(arms: Sequence[Blocks]) -> Iterator[Check]:
    """Whether the same machine and the same tools recorded every arm."""
    blocks = [block for of in arms for block in of]
    yield _same("same GPU", [", ".join(block.trust.line.gpus) or None for block in blocks], "GPUs", fatal=True)
    yield _same("same driver", [block.trace.facts.driver_version for block in blocks], "drivers")
    yield _same("same nsys", [block.trust.line.nsys_version for block in blocks], "versions of nsys")
    traced = [block.trust.line.granularity for block in blocks if block.trust.line.granularity != "none"]
    known = [None if each == "unknown" else each for each in traced]
    yield _same("same tracing of graphs", known, "ways of tracing graphs")


def _same(name: str, values: Sequence[str | None], what: str, *, fatal: bool = False) -> Check:
    different = sorted({value for value in values if value is not None})
    if len(different) > 1:
        message = f"the arms were recorded with different {what}: {', '.join(different)}"
        return Check(name, None, None, len(different), what, 1, "fail" if fatal else "warn", fatal, message)
    if None in values:
        return Check(name, None, None, None, what, 1, "cannot tell", fatal, f"not every trace tells its {what}")
    return Check(name, None, None, len(different), what, 1, "pass", fatal, f"{what}: {', '.join(different) or 'none'}")
