"""Whether the difference of two arms is the profiler's: told from times taken without it."""

from collections.abc import Mapping

import msgspec

from tracekit.analysis.results import Explanation, Outcome, Phase, ProfilerCost
from tracekit.analysis.statistics.thresholds import MARGIN
from tracekit.analysis.verdict.explanations import CARRIES, CONTRIBUTES, ordered
from tracekit.units import percent


def with_profiler_effect(phase: Phase, costs: Mapping[str, ProfilerCost]) -> Phase:
    """The phase with its ``profiler`` explanation tested; ``costs`` are by the arms' letters.

    The profiler made b as much longer than a as d = (profiled b / a) / (unprofiled b / a), over whole runs: of the
    phase's time in b, (1 - 1 / d) is its doing. It is ruled out while d lies within +-MARGIN.
    """
    a, b = costs.get("a"), costs.get(phase.arm)
    if a is None or b is None or phase.time_ns_a is None or phase.time_ns_b is None or not phase.explanations:
        return phase
    distortion = b.ratio / a.ratio
    ns = round(phase.time_ns_b * (1 - 1 / distortion))
    change = phase.time_ns_b - phase.time_ns_a
    told = (
        f"the profiler made a {a.ratio:.3f} and {phase.arm} {b.ratio:.3f} times as long: "
        f"{percent(distortion - 1)} of {phase.arm} against a"
    )
    share = round(ns / change, 4) + 0.0 if change else None
    tested = Explanation("profiler", _outcome(distortion, share), ns, None, None, share, told)
    others = [each for each in phase.explanations if each.cause != "profiler"]
    return msgspec.structs.replace(phase, explanations=ordered([*others, tested]))


def _outcome(distortion: float, share: float | None) -> Outcome:
    if abs(distortion - 1) <= MARGIN:
        return "ruled out"
    if share is None or abs(share) < CONTRIBUTES:
        return "cannot tell"
    return "carries" if share >= CARRIES else "contributes"
