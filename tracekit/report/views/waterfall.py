"""Where a phase's time goes between two arms, as a person is shown it."""

from tracekit.analysis.results import Cause, Number, Phase, Step
from tracekit.report.document import Section
from tracekit.units import duration, percent, shortened, signed

WORTH_SHOWING = 0.005
"""Share of the phase's time from which a step is shown; the smaller ones are one row."""

MOST_PHASES = 8
"""Phases shown to a person; every one is in the JSON."""

STEP_NAMES: dict[Cause, str] = {
    "overlap_lost": "overlap lost",
    "overlap_gained": "overlap saved",
    "kernels_alone": "kernels alone",
    "clocks": "one factor for all kernels",
    "one_side_only": "kernels of one side",
    "counts_differ": "launches more or fewer",
    "gaps": "gaps, next work launched",
    "launch_bound": "waiting for launch calls",
    "setup": "waiting for graph setup",
    "host_work": "waiting for host work",
    "copies": "copies alone",
    "unexplained": "not explained",
}


CAUSE_NAMES: dict[Cause, str] = {
    **STEP_NAMES,
    "overlap_lost": "loss by overlap",
    "overlap_gained": "gain by overlap",
    "plain_sharing": "sharing the GPU",
    "profiler": "the profiler",
    "drift": "drift",
}


def tested(phase: Phase) -> str | None:
    """Which causes were ruled out, and which cannot be told; the others are told of by the verdict."""
    told = []
    for outcome in ("ruled out", "cannot tell"):
        names = [CAUSE_NAMES[each.cause] for each in phase.explanations if each.outcome == outcome]
        if names:
            told.append(f"{outcome}: {', '.join(names)}")
    return "; ".join(told) or None


def waterfall_section(phases: list[Phase], arm: str) -> Section:
    """The steps from a's time to the arm's, phase by phase."""
    parts = [rows for phase in phases if (rows := _rows(phase, arm))]
    notes = [f"{len(parts) - MOST_PHASES} more phases: --format json lists all"] if len(parts) > MOST_PHASES else []
    return Section(
        f"Where the time goes, {arm} against a",
        ["phase", "step", "time", "95 %", "of the difference"],
        [row for rows in parts[:MOST_PHASES] for row in rows],
        text_columns=2,
        notes=notes,
    )


def _rows(phase: Phase, arm: str) -> list[list[str]]:
    """The time of a, each step worth showing, the others together, the time of the arm; none where nothing is."""
    if not phase.waterfall or phase.time_ns_a is None or phase.time_ns_b is None:
        return []
    least = WORTH_SHOWING * min(phase.time_ns_a, phase.time_ns_b)
    shown = [step for step in phase.waterfall if abs(step.ns or 0) >= least]
    if not shown:
        return []
    change = phase.time_ns_b - phase.time_ns_a
    rest = change - sum(step.ns or 0 for step in shown)
    steps = [[STEP_NAMES[step.cause], _signed(step.ns), _interval(step), _share(step.ns, change)] for step in shown]
    if rest:
        steps.append(["all other steps", _signed(rest), "", _share(rest, change)])
    return [
        [shortened(phase.name), "time of a", duration(phase.time_ns_a), "", ""],
        *(["", *step] for step in steps),
        ["", f"time of {arm}", duration(phase.time_ns_b), "", _share(change, change)],
    ]


def _signed(ns: Number | None) -> str:
    return "-" if ns is None else signed(ns)


def _interval(step: Step) -> str:
    if step.low_ns is None or step.high_ns is None:
        return "-"
    return f"{_signed(step.low_ns)} to {_signed(step.high_ns)}"


def _share(ns: Number | None, change: Number) -> str:
    return "-" if ns is None or not change else percent(ns / change, 0)
