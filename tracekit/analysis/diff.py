"""Answer of ``tracekit diff``: every arm against the first, phase by phase and kernel by kernel."""

from collections.abc import Sequence
from functools import partial

import numpy as np

import tracekit
from tracekit.analysis.arms import LETTERS, Arm, build_arms
from tracekit.analysis.gate import tripped
from tracekit.analysis.kernels.comparison import compare_kernels
from tracekit.analysis.kernels.regrouping import regrouped
from tracekit.analysis.overlap.beside import contention_of, overlap_sets_of
from tracekit.analysis.phases.comparison import PhasePair, Side, measure_phases, pair_of, phase_names
from tracekit.analysis.phases.mechanics import mechanics_of
from tracekit.analysis.results import OUTSIDE, Diff, Explanation, Number, Phase, Verdict, Warn
from tracekit.analysis.rows import known_number, number, rounded
from tracekit.analysis.statistics.ratios import ratio_of_blocks, ratio_of_medians, status
from tracekit.analysis.trust.checks import trust_checks, withheld
from tracekit.analysis.verdict.explanations import explanations
from tracekit.analysis.verdict.verdict import APART, overall, switch, verdict_of, winner_of
from tracekit.analysis.verdict.waterfall import Waterfall, waterfall
from tracekit.analysis.wanted import By
from tracekit.analysis.what_if.predictions import what_if
from tracekit.frameworks import Framework, detect
from tracekit.graph.dumps import Dump
from tracekit.together import together
from tracekit.trace.reader import Trace
from tracekit.units import percent, shortened

MUCH_OUTSIDE = 0.2
"""Share of kernel time outside of any phase from which it is said."""


def compare(
    arms: Sequence[Trace | Sequence[Trace]],
    pattern: str | None = None,
    warm_up: int = 1,
    gate: list[str] | None = None,
    questions: Sequence[str] = (),
    dumps: Sequence[Dump] = (),
    by: By = "launch",
) -> Diff:
    """Compare two or more arms, each a trace or several blocks recorded in turn with the other arms' blocks.

    ``warm_up`` instances of a repeated phase are left out. ``gate`` holds conditions as ``check_gate`` takes them;
    ``Diff.gate`` says which came true. ``questions`` are what-ifs; ``dumps`` show the edges of graphs. ``by`` is what
    kernels, sets of them and contention are told apart by; phases and verdicts do not depend on it.
    """
    sides = _measured(arms, pattern, warm_up)
    blocks = [block for side in sides for block in side]
    first, others = sides[0], sides[1:]
    told, unknown = regrouped(sides, by)
    framework = _framework(blocks)
    phases: list[Phase] = []
    kernels, only_a, only_b = [], [], []
    verdicts: list[Verdict] = []
    measured = measure_phases(sides, phase_names(blocks))
    checks = trust_checks(sides, {name: each for name, (_, each) in measured.items()})
    letters = [side[0].letter for side in sides]
    leaders = {name: [] if withheld(checks, name, letters) else _leaders(each) for name, (_, each) in measured.items()}
    serial_arms = {name: _serial_arm(sides, each) for name, (_, each) in measured.items()}
    for i, other in enumerate(others, start=1):
        pairs = [
            pair_of(
                name,
                basis,
                each[0],
                each[i],
                serial_arms[name],
                _eager(sides, each),
                withheld(checks, name, ("a", letters[i])),
            )
            for name, (basis, each) in measured.items()
        ]
        conflict = {"a", "b"} <= {winner_of(pair) for pair in pairs if pair.name != OUTSIDE}
        falls = together(*(partial(waterfall, pair) for pair in pairs))
        for pair, fall in zip(pairs, falls, strict=True):
            verdict = verdict_of(pair, fall, first[0], other[0], framework, conflict)
            found = explanations(pair, fall, verdict.winner, first[0], other[0])
            phases.append(_phase(pair, fall, other[0], leaders[pair.name], verdict, found))
        verdicts.append(overall(pairs, first[0], other[0], framework))
        both, mine, theirs = compare_kernels(told[0], told[i])
        kernels += both
        only_a += mine
        only_b += theirs
    lead = [side[0] for side in sides]
    return Diff(
        tracekit=tracekit.__version__,
        command="diff",
        traces=[block.trust.line for block in blocks],
        warnings=[*_warnings(sides, phases), *unknown],
        arms=[block.line() for block in blocks],
        phases=phases,
        kernels=kernels,
        only_a=only_a,
        only_b=only_b,
        verdict=verdicts[0] if len(others) == 1 else _over_all_arms(lead, leaders, phases),
        gate=tripped(phases, gate or []),
        profiler=[],
        what_if=what_if(sides, measured, serial_arms, questions, dumps),
        trust=checks,
        overlaps=overlap_sets_of(told),
        contention=contention_of(told),
        by=by,
        mechanics=mechanics_of(sides, {name: of_arms for name, (_, of_arms) in measured.items()}),
    )


def _eager(sides: list[list[Arm]], of_phase: list[Side]) -> Side | None:
    """The phase in the first eager arm."""
    return next((side for arm, side in zip(sides, of_phase, strict=True) if arm[0].role == "eager"), None)


def _serial_arm(sides: list[list[Arm]], of_phase: list[Side]) -> tuple[str, float] | None:
    """The letter and phase time of the arm whose graphs ran without overlap while another arm's overlapped."""
    shares = [max(block.overlapped_share for block in side) if side[0].role == "graph" else None for side in sides]
    if not any(share and share > APART for share in shares):
        return None
    for side, share, phase in zip(sides, shares, of_phase, strict=True):
        if share is not None and share <= APART and phase.time is not None:
            return side[0].letter, phase.time
    return None


def _measured(arms: Sequence[Trace | Sequence[Trace]], pattern: str | None, warm_up: int) -> list[list[Arm]]:
    """Every arm's blocks, measured."""
    traces = [[arm] if isinstance(arm, Trace) else list(arm) for arm in arms]
    letters = [letter for letter, of in zip(LETTERS, traces, strict=False) for _ in of]
    blocks = iter(build_arms([trace for of in traces for trace in of], pattern, warm_up, letters))
    return [[next(blocks) for _ in of] for of in traces]


def _framework(arms: list[Arm]) -> Framework | None:
    kernels = sorted({name for arm in arms for name in arm.trace.kernel_keys["name"]})
    ranges = sorted({name for arm in arms for name in arm.trace.ranges["name"].unique()})
    return detect(kernels, ranges)


def _phase(
    pair: PhasePair,
    fall: Waterfall | None,
    other: Arm,
    leaders: list[str],
    verdict: Verdict,
    found: list[Explanation],
) -> Phase:
    interval = pair.interval
    values: dict[str, Number | None] = {}
    for letter, side in (("a", pair.a), ("b", pair.b)):
        values |= {f"{field}_{letter}": known_number(value) for field, value in side.medians.items()}
    return Phase(
        name=pair.name,
        arm=other.letter,
        n_a=pair.a.count,
        n_b=pair.b.count,
        warm_up_a=pair.a.warm_up,
        warm_up_b=pair.b.warm_up,
        time_basis=pair.basis,
        time_ns_a=known_number(pair.a.time),
        time_ns_b=known_number(pair.b.time),
        ratio=rounded(pair.ratio),
        ci95=None if interval is None else (round(interval.low, 6), round(interval.high, 6)),
        interval_basis=f"over {pair.a.blocks} and {pair.b.blocks} blocks"
        if pair.a.blocks > 1 or pair.b.blocks > 1
        else "within this run: one trace a side",
        **values,
        what_if_serial_ns_a=known_number(pair.a.serial and pair.a.serial.value),
        what_if_serial_ns_b=known_number(pair.b.serial and pair.b.serial.value),
        what_if_serial_interval_a=_bounds(pair.a),
        what_if_serial_interval_b=_bounds(pair.b),
        overlap_coverage_a=round(pair.a.coverage, 6) if pair.a.count else None,
        overlap_coverage_b=round(pair.b.coverage, 6) if pair.b.count else None,
        kernel_rows_a=pair.a.kernel_rows,
        kernel_rows_b=pair.b.kernel_rows,
        kernel_ns_a=pair.a.kernel_ns,
        kernel_ns_b=pair.b.kernel_ns,
        best=leaders[0] if len(leaders) == 1 else None,
        leaders=leaders,
        verdict=verdict,
        waterfall=list(fall.steps.values()) if fall else [],
        explanations=found,
    )


def _bounds(side: Side) -> tuple[Number, Number] | None:
    return None if side.serial is None else (number(side.serial.low), number(side.serial.high))


def _leaders(sides: list[Side]) -> list[str]:
    """The letters of the arm with the least phase time, first, and of those not set apart from it."""
    times = {letter: side.times for letter, side in zip(LETTERS, sides, strict=False) if side.count}
    method = ratio_of_blocks if any(side.blocks > 1 for side in sides) else ratio_of_medians
    if len(times) < 2:
        return []
    ordered = sorted(times, key=lambda letter: (float(np.median(times[letter])), letter))
    least = ordered[0]
    return [
        letter for letter in ordered if letter == least or status(method(times[least], times[letter]), True) != "slower"
    ]


def _over_all_arms(arms: list[Arm], leaders: dict[str, list[str]], phases: list[Phase]) -> Verdict:
    """With more than two arms: the best arm of each phase. The winner is about the first against the best."""
    by_letter = {arm.letter: arm for arm in arms}
    judged = {name: of for name, of in leaders.items() if name != OUTSIDE}
    told = "; ".join(f"{shortened(name)}: {_led(of, by_letter)}" for name, of in judged.items())
    common = set.intersection(*(set(of) for of in judged.values())) if judged else set()
    ahead = {name for name, of in judged.items() if len(of) < len(arms)}
    if ahead and len(common) == 1:
        best = common.pop()
        other = by_letter[best if best != "a" else next(row.arm for row in phases if row.name in ahead)]
        how = switch(by_letter[best], arms[0] if best != "a" else other, _framework(arms))
        return Verdict("a" if best == "a" else "b", f"best arm by phase: {told}", how)
    return Verdict(
        "undecided",
        f"best arm by phase: {told}",
        "see each phase: a switch is for a whole process, so other winners mean running the phases apart"
        if len(judged) > 1 and ahead
        else phases[0].verdict.advice,
    )


def _led(leaders: list[str], arms: dict[str, Arm]) -> str:
    if not leaders or len(leaders) == len(arms):
        return "no arm is set apart"
    if len(leaders) == 1:
        return arms[leaders[0]].name
    return f"{' and '.join(arms[letter].name for letter in leaders)}, not set apart from each other"


def _warnings(sides: list[list[Arm]], phases: list[Phase]) -> list[Warn]:
    arms = [block for side in sides for block in side]
    warnings = [
        Warn(warning.code, f"{arm.letter}: {warning.message}", warning.count)
        for arm in arms
        for warning in arm.trust.warnings
    ]
    for arm in arms:
        found = arm.phases
        if found.unmatched:
            warnings.append(Warn("no_phase", f"{arm.letter}: {found.basis}", 0))
        if found.by_process:
            message = (
                f"{arm.letter}: {found.by_process} pieces of GPU work were launched by threads without ranges and "
                "belong to the range open in their process"
            )
            warnings.append(Warn("range_by_process", message, found.by_process))
        if found.unlaunched:
            message = f"{arm.letter}: the launch call of {found.unlaunched} pieces of GPU work is not recorded: outside"
            warnings.append(Warn("launch_not_recorded", message, found.unlaunched))
        warm = int(arm.figures["warm_up"].sum())
        if warm:
            warnings.append(
                Warn(
                    "warm_up",
                    f"{arm.letter}: {warm} of {arm.figures.height} phase instances left out as warm-up",
                    warm,
                )
            )
    if any(arm.trust.line.granularity == "node" for arm in arms):
        message = (
            "graph nodes were traced one by one, which can itself change what runs side by side: "
            "compare with unprofiled times"
        )
        warnings.append(Warn("node_tracing", message, 0))
    outside = next((row for row in phases if row.name == OUTSIDE), None)
    second = sides[1][0].letter
    of_pair = [row for row in phases if row.arm == second]
    for letter, time, whole in (
        ("a", outside and outside.kernel_ns_a, sum(row.kernel_ns_a for row in of_pair)),
        (second, outside and outside.kernel_ns_b, sum(row.kernel_ns_b for row in of_pair)),
    ):
        if time and time > MUCH_OUTSIDE * whole:
            message = f"{letter}: {percent(time / whole)} of kernel time is outside of any phase"
            warnings.append(Warn("outside_phases", message, 0))
    return warnings
