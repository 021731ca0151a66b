"""Answer of ``tracekit diff``: every arm against the first, phase by phase and kernel by kernel."""

import numpy as np

import tracekit
from tracekit.analysis.arms import LETTERS, Arm, build_arms
from tracekit.analysis.gate import tripped
from tracekit.analysis.kernel_diff import compare_kernels
from tracekit.analysis.phase_diff import PhasePair, Side, measure_phases, pair_of, phase_names
from tracekit.analysis.results import OUTSIDE, Diff, Number, Phase, Verdict, Warn
from tracekit.analysis.rows import number
from tracekit.analysis.statistics import ratio_of_medians, status
from tracekit.analysis.verdict import overall, switch, verdict_of, winner_of
from tracekit.frameworks import Framework, detect
from tracekit.trace.reader import Trace
from tracekit.units import percent, shortened


def compare(traces: list[Trace], pattern: str | None = None, warm_up: int = 1, gate: list[str] | None = None) -> Diff:
    """Compare two or more traces; ``warm_up`` instances of a repeated phase are left out.

    ``gate`` holds conditions as ``check_gate`` takes them; ``Diff.gate`` says which came true.
    """
    arms = build_arms(traces, pattern, warm_up)
    names = phase_names(arms)
    first, others = arms[0], arms[1:]
    framework = _framework(arms)
    phases: list[Phase] = []
    kernels, only_a, only_b = [], [], []
    verdicts: list[Verdict] = []
    measured = measure_phases(arms, names)
    leaders = {name: _leaders(sides) for name, (_, sides) in measured.items()}
    for i, other in enumerate(others, start=1):
        pairs = [pair_of(name, basis, sides[0], sides[i]) for name, (basis, sides) in measured.items()]
        conflict = {"a", "b"} <= {winner_of(pair, first, other) for pair in pairs if pair.name != OUTSIDE}
        phases += [
            _phase(pair, other, leaders[pair.name], verdict_of(pair, first, other, framework, conflict))
            for pair in pairs
        ]
        verdicts.append(overall(pairs, first, other, framework))
        both, mine, theirs = compare_kernels(first, other)
        kernels += both
        only_a += mine
        only_b += theirs
    answer = verdicts[0] if len(others) == 1 else _over_all_arms(arms, leaders, phases)
    return Diff(
        tracekit=tracekit.__version__,
        command="diff",
        traces=[arm.trust.line for arm in arms],
        warnings=_warnings(arms, phases),
        arms=[arm.line() for arm in arms],
        phases=phases,
        kernels=kernels,
        only_a=only_a,
        only_b=only_b,
        verdict=answer,
        gate=tripped(phases, gate or []),
    )


def _framework(arms: list[Arm]) -> Framework | None:
    kernels = sorted({name for arm in arms for name in arm.trace.kernel_keys["name"]})
    ranges = sorted({name for arm in arms for name in arm.trace.ranges["name"].unique()})
    return detect(kernels, ranges)


def _phase(pair: PhasePair, other: Arm, leaders: list[str], verdict: Verdict) -> Phase:
    interval = pair.interval
    values: dict[str, Number | None] = {}
    for letter, side in (("a", pair.a), ("b", pair.b)):
        values |= {f"{field}_{letter}": _number(value) for field, value in side.medians.items()}
    return Phase(
        name=pair.name,
        arm=other.letter,
        n_a=pair.a.count,
        n_b=pair.b.count,
        warm_up_a=pair.a.warm_up,
        warm_up_b=pair.b.warm_up,
        time_basis=pair.basis,
        time_ns_a=_number(pair.a.time),
        time_ns_b=_number(pair.b.time),
        ratio=None if pair.ratio is None else round(pair.ratio, 6),
        ci95=None if interval is None else (round(interval.low, 6), round(interval.high, 6)),
        interval_basis="within this run: one trace a side",
        **values,
        what_if_serial_ns_a=_number(pair.a.serial and pair.a.serial.value),
        what_if_serial_ns_b=_number(pair.b.serial and pair.b.serial.value),
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
    )


def _number(value: float | None) -> Number | None:
    return None if value is None else number(value)


def _bounds(side: Side) -> tuple[Number, Number] | None:
    return None if side.serial is None else (number(side.serial.low), number(side.serial.high))


def _leaders(sides: list[Side]) -> list[str]:
    """The letters of the arm with the least phase time, first, and of those not set apart from it."""
    times = {letter: side.times for letter, side in zip(LETTERS, sides, strict=False) if side.count}
    if len(times) < 2 or any(side.unsteady for side in sides):
        return []
    ordered = sorted(times, key=lambda letter: (float(np.median(times[letter])), letter))
    least = ordered[0]
    return [
        letter
        for letter in ordered
        if letter == least or status(ratio_of_medians(times[least], times[letter]), True) != "slower"
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
        "see each phase: a switch is for a whole process, so other winners mean running the phases apart",
    )


def _led(leaders: list[str], arms: dict[str, Arm]) -> str:
    if not leaders or len(leaders) == len(arms):
        return "no arm is set apart"
    if len(leaders) == 1:
        return arms[leaders[0]].name
    return f"{' and '.join(arms[letter].name for letter in leaders)}, not set apart from each other"


def _warnings(arms: list[Arm], phases: list[Phase]) -> list[Warn]:
    warnings = [
        Warn(warning.code, f"{arm.letter}: {warning.message}", warning.count)
        for arm in arms
        for warning in arm.trust.warnings
    ]
    for arm in arms:
        found = arm.phases
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
    for arm, time in ((arms[0], outside.kernel_ns_a), (arms[1], outside.kernel_ns_b)) if outside else ():
        whole = sum(
            row.kernel_ns_a if arm is arms[0] else row.kernel_ns_b for row in phases if row.arm == arms[1].letter
        )
        if whole and time / whole > 0.2:
            message = f"{arm.letter}: {percent(time / whole)} of kernel time is outside of any phase"
            warnings.append(Warn("outside_phases", message, 0))
    return warnings
