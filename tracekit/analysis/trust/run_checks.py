"""What the record of a run tells of its traces' worth: the profiler's cost, the order of blocks, throttling."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from tracekit.analysis.results import Check, CheckOutcome, ProfilerCost
from tracekit.analysis.statistics.thresholds import MARGIN, PROFILER_COSTLY, PROFILER_NOTED
from tracekit.capture.run_folder import Manifest

PROFILER = "profiler"

THROTTLING = ("thermal_slowdown", "hw_slowdown", "power_brake_slowdown", "power_cap")
"""How NVML's names of reasons end for which a GPU runs below the clocks it was asked for (nvmlClocksEventReasons)."""


def run_checks(manifest: Manifest, costs: Sequence[ProfilerCost], letters: Mapping[str, str]) -> list[Check]:
    """Checks of a whole run; ``letters`` tells by which letter a comparison calls each arm."""
    return [
        *(_profiler(cost, letters.get(cost.arm, cost.arm)) for cost in costs),
        *_order(costs),
        *_turns(manifest),
        *_throttling(manifest),
    ]


def _profiler(cost: ProfilerCost, letter: str) -> Check:
    noted = cost.ratio > PROFILER_NOTED
    outcome: CheckOutcome = "fail" if cost.ratio > PROFILER_COSTLY else "warn" if noted else "pass"
    limit = PROFILER_COSTLY if outcome == "fail" else PROFILER_NOTED
    message = f"{cost.arm}: the profiler made it {cost.ratio:.2f} times as long"
    if noted:
        message += ": overlap is indicative only"
    return Check(PROFILER, letter, None, cost.ratio, "ratio", limit, outcome, False, message)


def _order(costs: Sequence[ProfilerCost]) -> Iterator[Check]:
    """Whether the faster of two arms is the slower one when nothing looks."""
    for one, other in combinations(costs, 2):
        plain, profiled = (
            other.plain_wall_s / one.plain_wall_s,
            other.profiled_wall_s / one.profiled_wall_s,
        )
        flips = min(plain, profiled) < 1 - MARGIN and max(plain, profiled) > 1 + MARGIN
        message = (
            f"{other.arm} takes {plain:.3f} times as long as {one.arm} unprofiled and {profiled:.3f} times profiled"
        )
        outcome: CheckOutcome = "fail" if flips else "pass"
        yield Check("order of arms", None, None, round(plain / profiled, 6), "ratio", None, outcome, True, message)


def _turns(manifest: Manifest) -> Iterator[Check]:
    """Whether the arms were recorded in turn: block by block, so that drift meets all alike."""
    if len({block.arm for block in manifest.blocks}) < 2:
        return
    back = sum(later.block < earlier.block for earlier, later in pairwise(manifest.blocks))
    message = "the arms were recorded one after another, not in turn: drift looks like a difference"
    if not back:
        message = "the arms were recorded in turn"
    yield Check("turns", None, None, back, "steps back", 0, "warn" if back else "pass", False, message)


def _throttling(manifest: Manifest) -> Iterator[Check]:
    states = [*manifest.machine.before, *manifest.machine.after]
    if not states:
        yield Check("throttling", None, None, None, "GPU states", 0, "cannot tell", False, "clocks were not recorded")
        return
    reasons = sorted({reason for state in states for reason in state.throttle_reasons if reason.endswith(THROTTLING)})
    count = sum(any(reason in reasons for reason in state.throttle_reasons) for state in states)
    message = f"a GPU was slowed before or after the run: {', '.join(reasons)}" if reasons else "no GPU was slowed"
    yield Check("throttling", None, None, count, "GPU states", 0, "warn" if reasons else "pass", False, message)
