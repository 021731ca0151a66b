"""Hold what tracekit answers against what is true. Only its public answer is read."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from proving.run_record import run_record
from proving.scenario import LETTERS, Expected, Played, Scenario
from proving.truth import Account, causes
from tracekit.analysis.diff import compare
from tracekit.analysis.results import OUTSIDE, Diff, Phase
from tracekit.commands.sides import with_profiler_cost
from tracekit.trace.source import open_trace

SAME = 0.02
"""Share of a phase's time within which two arms are the same for every practical purpose, as tracekit has it."""

CLEAR = 0.03
"""Share from which a difference has to be decided."""

CLOSE = 0.05
"""Share of a true size within which the stated one has to lie; the size of a cause may also lie in its interval."""

SHOWN = 0.1
"""Causes below this share of the largest are not listed."""

TOLD = ("carries", "contributes")
"""Outcomes by which an explanation is named."""

ALIKE = {"overlap_gained": ("overlap_gained", "plain_sharing"), "plain_sharing": ("plain_sharing", "overlap_gained")}
"""Plain sharing is overlap that gained, told by how long its kernels took: either names the other."""


class Judged(NamedTuple):
    """One phase of a scenario: the causes to name, what is true, what was said, what is wrong, if anything."""

    phase: str
    expected: str
    truth: str
    said: str
    wrong: str


def answer_to(exports: Sequence[Sequence[Path]], walls: Sequence[Sequence[tuple[int, int]]] = ()) -> Diff:
    """What ``tracekit diff`` answers about the arms; ``walls`` as ``Played`` has them."""
    with ExitStack() as stack:
        arms = [[stack.enter_context(open_trace(file, cached=False)) for file in blocks] for blocks in exports]
        return with_profiler_cost(compare(arms), run_record(walls) if walls else None)


def judge(plan: Scenario, played: Played, answer: Diff) -> list[Judged]:
    """Judge b against a in every phase, and the best of all arms where there are more."""
    judged = []
    for name, expected in plan.expected.items():
        (phase,) = (row for row in answer.phases if row.name == name and row.arm == "b")
        a, b = (accounts[name] for accounts in played.accounts[:2])
        sizes = causes(a, b, plan.arms[1].clock / plan.arms[0].clock)
        problems = [
            *_wrong_winner(phase, a, b, expected),
            *_wrong_causes(phase, expected),
            *_wrong_sizes(phase, sizes, expected),
            *([f"best arm {phase.best}, not {expected.best}"] if expected.best not in (None, phase.best) else []),
            *_wrong_prediction(phase, played, expected),
        ]
        judged.append(Judged(name, _told(expected), _truth(a, b, sizes), said(phase), "; ".join(problems)))
    return judged


def claims(answer: Diff) -> list[str]:
    """Everything the answer claims to differ between the arms."""
    phases = [row for row in answer.phases if row.name != OUTSIDE]
    found = [f"{row.name}: {row.verdict.winner} wins" for row in phases if row.verdict.winner in ("a", "b")]
    found += [
        f"{row.name}: {each.cause} carries" for row in phases for each in row.explanations if each.outcome == "carries"
    ]
    found += [f"{row.short_name} is {row.status}" for row in answer.kernels if row.status in ("slower", "faster")]
    return found


def overlap_loss(answer: Diff, name: str) -> tuple[float | None, float | None, float | None]:
    """What overlap costs in a more than in b (ns an instance) with its 95 % interval, as the waterfall has it."""
    (phase,) = (row for row in answer.phases if row.name == name)
    steps = [step for step in phase.waterfall if step.cause in ("overlap_lost", "overlap_gained") and step.ns != 0]
    bounds = [(step.ns, step.low_ns, step.high_ns) for step in steps]
    if not bounds or any(None in each for each in bounds):
        return None, None, None
    ns, low, high = (-sum(each[i] or 0 for each in bounds) for i in range(3))
    return ns, high, low


def said(phase: Phase) -> str:
    """What the answer says of a phase, in short."""
    told = [f"{each.cause} {each.outcome} {_us(each.ns)}" for each in phase.explanations if each.outcome in TOLD]
    return "; ".join([f"winner {phase.verdict.winner}", *told])


def _wrong_winner(phase: Phase, a: Account, b: Account, expected: Expected) -> list[str]:
    winner = phase.verdict.winner
    change = b.time / a.time - 1
    if expected.undecided:
        return [f"{winner} wins, though the recordings carry no verdict"] if winner in ("a", "b") else []
    if abs(change) <= SAME:
        return [f"{winner} wins, though the arms are the same"] if winner in ("a", "b") else []
    faster = "a" if change > 0 else "b"
    if winner in ("a", "b") and winner != faster:
        return [f"{winner} wins, though {faster} is faster"]
    return [f"{winner}, though {faster} is clearly faster"] if abs(change) >= CLEAR and winner != faster else []


def _wrong_causes(phase: Phase, expected: Expected) -> list[str]:
    told = [each.cause for each in phase.explanations if each.outcome in TOLD]
    if expected.dominant is None and not expected.named:
        return [
            f"{each.cause} carries, though nothing does" for each in phase.explanations if each.outcome == "carries"
        ]
    problems = [f"{cause} is not named" for cause in expected.named if not set(told) & set(ALIKE.get(cause, (cause,)))]
    if expected.dominant is not None:
        right = ALIKE.get(expected.dominant, (expected.dominant,))
        if not told or told[0] not in right:
            problems.append(f"{told[0] if told else 'nothing'} is named first, not {expected.dominant}")
    return problems


def _wrong_sizes(phase: Phase, sizes: dict[str, float], expected: Expected) -> list[str]:
    """Causes that had to be named and are, with a size that is not theirs."""
    problems = []
    for each in phase.explanations:
        true = sizes.get(each.cause)
        if each.cause not in (expected.dominant, *expected.named) or true is None or each.ns is None:
            continue
        stated = each.low_ns is not None and each.high_ns is not None and each.low_ns <= true <= each.high_ns
        if not stated and abs(each.ns - true) > CLOSE * abs(true):
            problems.append(f"{each.cause} is {_us(true)}, not {_us(each.ns)}")
    return problems


def _wrong_prediction(phase: Phase, played: Played, expected: Expected) -> list[str]:
    """The time predicted for a's kernels one after another, against the arm that ran them so."""
    if expected.serial is None:
        return []
    true, predicted = played.accounts[LETTERS.index(expected.serial)][phase.name].time, phase.what_if_serial_ns_a
    if predicted is not None and abs(predicted / true - 1) <= CLOSE:
        return []
    return [f"serial is predicted at {_us(predicted)}, not {_us(true)}"]


def _told(expected: Expected) -> str:
    causes = [cause for cause in (expected.dominant, *expected.named) if cause]
    return ", ".join(causes) or "nothing"


def _truth(a: Account, b: Account, sizes: dict[str, float]) -> str:
    """The difference and what makes up most of it."""
    whole = max(abs(size) for size in sizes.values())
    largest = sorted(
        (cause for cause in sizes if abs(sizes[cause]) >= SHOWN * whole), key=lambda each: -abs(sizes[each])
    )
    parts = ", ".join(f"{cause} {_us(sizes[cause])}" for cause in largest)
    return f"{_us(b.time - a.time)} of {_us(a.time)[1:]}: {parts}"


def _us(ns: float | None) -> str:
    return "?" if ns is None else f"{ns / 1000:+,.1f} us"
