"""Who won each phase, and what can be done about it."""

from typing import Literal

from tracekit.analysis.arms import Arm
from tracekit.analysis.phases.comparison import PhasePair
from tracekit.analysis.results import ALL, OUTSIDE, Verdict
from tracekit.analysis.statistics.ratios import status
from tracekit.analysis.statistics.thresholds import FEWEST, FEWEST_BLOCKS, MARGIN
from tracekit.analysis.verdict.sentences import explain
from tracekit.analysis.verdict.waterfall import Waterfall
from tracekit.frameworks import Framework
from tracekit.units import duration, shortened

APART = 0.01
"""Share of kernel time beside other kernels up to which an arm's kernels run one after another."""

MOST_NAMED = 4
"""Phases named in one sentence."""

Winner = Literal["a", "b", "tie", "undecided"]


def winner_of(pair: PhasePair) -> Winner:
    """By the interval of the ratio of phase times: within +-2 % a tie, wholly outside a winner.

    Where a check of the data withholds it, nothing is decided.
    """
    if pair.withheld:
        return "undecided"
    decided: dict[str, Winner] = {"slower": "a", "faster": "b", "same": "tie", "undecided": "undecided"}
    return decided[status(pair.interval, True)]


def reason_of(pair: PhasePair, fall: Waterfall | None, a: Arm, b: Arm) -> str:
    """The verdict's reason in a few sentences: the times, then where the difference comes from."""
    if pair.name == OUTSIDE:
        return "not a phase: GPU work that no range holds"
    for arm, side in ((a, pair.a), (b, pair.b)):
        if side.time is None:
            return f"{arm.letter} has no counted instance of it"
    return " ".join(f"{sentence}." for sentence in [_times(pair, a, b), *explain(pair, fall, a, b)])


def _times(pair: PhasePair, a: Arm, b: Arm) -> str:
    times = f"{b.letter} takes {duration(pair.b.time)} against {duration(pair.a.time)} in {a.letter}"
    ratio = f"{pair.ratio:.3f}x"
    if pair.withheld:
        return f"Undecided, {', '.join(pair.withheld)}. {_tendency(times, ratio)}"
    if pair.interval is None:
        return f"Undecided, {_why_no_interval(pair)}. {_tendency(times, ratio)}"
    counts = f"n = {pair.a.count} and {pair.b.count}"
    if pair.a.blocks > 1:
        counts += f" in {pair.a.times.size} and {pair.b.times.size} blocks"
    interval = f"{ratio}, 95 % {pair.interval.low:.3f}-{pair.interval.high:.3f}, {counts}"
    if winner_of(pair) == "undecided":
        why = f"the interval reaches beyond and within +-{MARGIN:.0%}"
        return f"Undecided, {why}. {_tendency(times, interval)}"
    return f"{times} ({interval})"


def _tendency(times: str, figures: str) -> str:
    return f"Tendency: {times} ({figures})"


def _why_no_interval(pair: PhasePair) -> str:
    fewest = min(pair.a.count, pair.b.count)
    if pair.a.blocks > 1 or pair.b.blocks > 1:
        blocks = min(pair.a.times.size, pair.b.times.size)
        return f"no verdict from {blocks} block{'s' if blocks != 1 else ''} a side ({FEWEST_BLOCKS} are needed)"
    if pair.name == ALL:
        return (
            f"n = {fewest}: the whole trace counts once, and {FEWEST} instances a side are needed, so "
            "put NVTX ranges round the phases, each repeated"
        )
    return f"n = {fewest} is too few ({FEWEST} are needed a side)"


def verdict_of(
    pair: PhasePair, fall: Waterfall | None, a: Arm, b: Arm, framework: Framework | None, conflict: bool
) -> Verdict:
    """The verdict on one phase. ``conflict``: other phases have another winner, and the switch is one for all."""
    winner = winner_of(pair) if pair.name != OUTSIDE else "undecided"
    return Verdict(winner, reason_of(pair, fall, a, b), _advice(winner, pair, a, b, framework, conflict))


def _advice(winner: Winner, pair: PhasePair, a: Arm, b: Arm, framework: Framework | None, conflict: bool) -> str:
    if pair.name == OUTSIDE:
        return "put ranges round this work if it should count"
    if winner == "tie":
        return f"keep either: {a.letter} and {b.letter} take the same time"
    if winner == "undecided" and (pair.a.lost or pair.b.lost):
        return "record again for a shorter time, so that no records are lost"
    if winner == "undecided" and (pair.a.unsteady or pair.b.unsteady):
        return "let clocks and temperature settle, record the arms in turn, and look for what changes between instances"
    if winner == "undecided" and pair.a.blocks > 1:
        return f"record at least {FEWEST} blocks of both arms in turn"
    if winner == "undecided":
        return f"record at least {FEWEST + 1} instances of the phase in both arms (the first is warm-up)"
    best, other = (a, b) if winner == "a" else (b, a)
    how = switch(best, other, framework)
    if not conflict:
        return how
    scope = f", or use {framework.scope}" if framework and framework.scope else ""
    return (
        f"{best.letter} for this phase only, while other phases want another arm and the switch is one for the "
        f"whole process: run the phases apart in processes of their own{scope} ({how})"
    )


def switch(best: Arm, other: Arm, framework: Framework | None) -> str:
    """How to get the better arm: only what can be done."""
    graphs = ("graph", "opaque graph", "mixed")
    if best.role == "eager" and other.role in graphs:
        return f"run without graphs: {framework.graphs_off if framework else 'use the switch of your framework'}"
    if best.role == "graph" and best.overlapped_share <= APART and best.max_depth <= 1:
        on = f" ({framework.graphs_on})" if framework and other.role == "eager" else ""
        return (
            f"launch graphs whose nodes run one after another, as {best.letter} does{on}; where the stock graphs run "
            "nodes side by side this needs a build that orders them (an edge from each node to the one before it)"
        )
    if best.role in graphs and other.role == "eager":
        return f"run with graphs: {framework.graphs_on if framework else 'use the switch of your framework'}"
    return f"prefer {best.letter}: both arms launch their kernels the same way, so the graph switch is not the cause"


def overall(pairs: list[PhasePair], a: Arm, b: Arm, framework: Framework | None) -> Verdict:
    """The verdict for the whole: the phases' when they agree, else that they differ."""
    judged = [(pair, winner_of(pair)) for pair in pairs if pair.name != OUTSIDE]
    won: dict[str, list[str]] = {}
    for pair, winner in judged:
        won.setdefault(winner, []).append(pair.name)
    told = "; ".join(
        f"{_called(winner, a, b)}: {_listed(names)}" for winner, names in sorted(won.items(), key=lambda w: w[0])
    )
    sides = [winner for winner in ("a", "b") if winner in won]
    if not judged:
        return Verdict("undecided", "no GPU work to compare", "record a run that launches kernels")
    if len(sides) == 2:
        scope = f", or use {framework.scope}" if framework and framework.scope else ""
        return Verdict(
            "undecided",
            f"the answer differs by phase: {told}",
            f"the graph switch is one for the whole process: run the phases apart, each with its better arm{scope}",
        )
    if len(sides) == 1:
        best, other = (a, b) if sides == ["a"] else (b, a)
        return Verdict("a" if sides == ["a"] else "b", told, switch(best, other, framework))
    if "tie" in won and "undecided" not in won:
        return Verdict("tie", told, f"keep either: {a.letter} and {b.letter} take the same time")
    return Verdict(
        "undecided",
        told,
        f"record at least {FEWEST + 1} instances of each phase in both arms (the first is warm-up)",
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(_quoted(shortened(name)) for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name or ";" in name else name


def _called(winner: str, a: Arm, b: Arm) -> str:
    return {
        "a": f"{a.letter} ({a.role}) is faster in",
        "b": f"{b.letter} ({b.role}) is faster in",
        "tie": "no difference in",
        "undecided": "undecided for",
    }[winner]
