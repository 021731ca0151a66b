"""What a person is shown of a comparison."""

import re

from tracekit.analysis.results import Diff, KernelComparison, KernelOnOneSide, Number, Phase, Verdict
from tracekit.report.document import Document, Section
from tracekit.report.views.contention import sets_section
from tracekit.report.views.mechanics import mechanics_section
from tracekit.report.views.names import dimensions, kernel_names, ratio_interval, trace_notes, warning_lines
from tracekit.report.views.trust import trust_section
from tracekit.report.views.waterfall import tested, waterfall_section
from tracekit.report.views.what_if import what_if_section
from tracekit.units import duration, percent, shortened

_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z0-9])")

MOST_KERNELS = 25
"""Kernels shown to a person for each arm; every one is in the other formats."""


def document(answer: Diff) -> Document:
    """Verdict first, then phases, then kernels."""
    letters = _letters(answer)
    others = letters[1:]
    sections = [Section("", notes=trace_notes(answer.traces)), _arms(answer), _verdict(answer)]
    if len(others) > 1:
        sections.append(_phase_by_arm(answer))
    for arm in others:
        phases = [row for row in answer.phases if row.arm == arm]
        sections += [_phases(phases, arm), _phase_parts(phases, arm), waterfall_section(phases, arm)]
        sections.append(_reasons(phases, arm))
    sections.append(sets_section(answer.overlaps))
    hidden = [line.arm for line in answer.arms if line.role == "opaque graph"]
    if hidden:
        note = f"withheld: most GPU time of {', '.join(dict.fromkeys(hidden))} is inside graphs traced as a whole"
        sections.append(Section("Kernels", notes=[f"{note}; record with: nsys profile --cuda-graph-trace=node"]))
    for arm in others if not hidden else []:
        sections.append(_kernels([row for row in answer.kernels if row.arm == arm], arm))
    for title, rows in (
        ("Kernels only in a", answer.only_a),
        ("Kernels only in the other arm", answer.only_b),
    ):
        if rows and not hidden:
            sections.append(_only(title, rows))
    if answer.profiler:
        sections.append(_profiler(answer))
    sections.append(what_if_section(answer))
    sections += [mechanics_section(answer), trust_section(answer)]
    names = " against ".join(_called(answer, letter) for letter in letters)
    if answer.gate:
        sections.append(Section("Gate", notes=[f"tripped by {answer.gate}"]))
    return Document(f"diff of {names}", sections, warning_lines(answer.warnings))


def _letters(answer: Diff) -> list[str]:
    """The arms, each once however many blocks it has."""
    return list(dict.fromkeys(line.arm for line in answer.arms))


def _called(answer: Diff, letter: str) -> str:
    paths = [line.path for line in answer.arms if line.arm == letter]
    return paths[0] if len(paths) == 1 else f"{letter} ({len(paths)} blocks)"


def _arms(answer: Diff) -> Section:
    rows = [
        [
            line.arm,
            line.role,
            line.path,
            percent(line.graph_share),
            str(line.graph_launches),
            str(line.streams),
            str(line.max_depth),
        ]
        for line in answer.arms
    ]
    columns = ["arm", "role", "trace", "time in graphs", "graph launches", "streams", "max depth"]
    return Section("Arms", columns, rows, text_columns=3)


def _verdict(answer: Diff) -> Section:
    verdict = answer.verdict
    won = f"{_winner(verdict, 'b')}: " if len(_letters(answer)) == 2 and verdict.winner != "undecided" else ""
    return Section("Verdict", notes=[won + verdict.reason, f"advice: {verdict.advice}"])


def _winner(verdict: Verdict, arm: str) -> str:
    return {"a": "a wins", "b": f"{arm} wins", "tie": "no difference"}.get(verdict.winner, "undecided")


def _phase_by_arm(answer: Diff) -> Section:
    """Median time of each phase in each arm, the best one marked."""
    times: dict[str, dict[str, Number | None]] = {}
    leaders: dict[str, list[str]] = {}
    for row in answer.phases:
        if row.time_basis is None:
            continue
        times.setdefault(row.name, {"a": row.time_ns_a})[row.arm] = row.time_ns_b
        leaders[row.name] = row.leaders if len(row.leaders) < len(_letters(answer)) else []
    arms = _letters(answer)
    rows = [
        [shortened(name), *(duration(of.get(arm)) + ("*" if arm in leaders[name] else " ") for arm in arms)]
        for name, of in times.items()
    ]
    notes = ["* the best, or not set apart from it: the other arms are slower by more than 2 %, interval included"]
    return Section("Phase time by arm", ["phase", *arms], rows, notes=notes)


def _phases(phases: list[Phase], arm: str) -> Section:
    rows = [
        [
            shortened(row.name),
            str(row.n_a),
            str(row.n_b),
            duration(row.time_ns_a),
            duration(row.time_ns_b),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            ratio_interval(row.ci95),
            {"a": "a", "b": arm}.get(row.verdict.winner, row.verdict.winner),
        ]
        for row in phases
    ]
    of_basis: dict[str, list[str]] = {}
    for row in phases:
        if row.time_basis:
            of_basis.setdefault(row.time_basis, []).append(shortened(row.name))
    notes = [f"time of {_few(names)}: {basis}" for basis, names in of_basis.items()]
    if phases:
        notes.append(f"medians over counted instances; intervals {phases[0].interval_basis}")
    columns = ["phase", "n a", f"n {arm}", "time a", f"time {arm}", "ratio", "95 %", "winner"]
    return Section(f"Phases, {arm} against a", columns, rows, notes=notes)


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _phase_parts(phases: list[Phase], arm: str) -> Section:
    rows = [
        [
            shortened(row.name),
            _both(row.gpu_span_ns_a, row.gpu_span_ns_b),
            _both(row.wall_ns_a, row.wall_ns_b),
            _both(row.busy_ns_a, row.busy_ns_b),
            _both(row.overlapped_ns_a, row.overlapped_ns_b),
            _both(row.idle_ns_a, row.idle_ns_b),
            f"{_count(row.launches_a)} | {_count(row.launches_b)}",
            _both(row.overlap_gain_ns_a, row.overlap_gain_ns_b),
            _both(row.what_if_serial_ns_a, row.what_if_serial_ns_b),
        ]
        for row in phases
        if row.time_basis
    ]
    columns = [
        "phase",
        "GPU span",
        "wall",
        "busy",
        "overlapped",
        "idle",
        "launches",
        "overlap gained",
        "serial predicted",
    ]
    return Section(f"Inside the phases, a | {arm}", columns, rows)


def _count(value: Number | None) -> str:
    return "-" if value is None else f"{round(value, 2):g}"


def _both(a: Number | None, b: Number | None) -> str:
    return f"{duration(a)} | {duration(b)}"


def _reasons(phases: list[Phase], arm: str) -> Section:
    notes = []
    for row in phases:
        notes.append(f"{shortened(row.name)}: {_winner(row.verdict, arm)}")
        notes += [f"  {sentence}" for sentence in _SENTENCE_END.split(row.verdict.reason)]
        if causes := tested(row):
            notes.append(f"  {causes}")
        notes.append(f"  advice: {row.verdict.advice}")
    return Section(f"Why, {arm} against a", notes=notes)


def _kernels(rows: list[KernelComparison], arm: str) -> Section:
    columns = ["kernel", "grid", "phase", "each a", f"each {arm}", "total a", f"total {arm}", "median a"]
    columns += [f"median {arm}", "ratio", "95 %", "status", "overlapped", "solo", "stretch", "note"]
    shown = rows[:MOST_KERNELS]
    cells = [
        [
            name,
            dimensions(row.grid),
            shortened(row.phase),
            _count(row.per_iteration_a),
            _count(row.per_iteration_b),
            "withheld" if row.total_ns_a is None else duration(row.total_ns_a),
            "withheld" if row.total_ns_b is None else duration(row.total_ns_b),
            duration(row.median_ns_a),
            duration(row.median_ns_b),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            ratio_interval(row.ci95),
            row.status,
            f"{percent(row.overlapped_fraction_a, 0)} | {percent(row.overlapped_fraction_b, 0)}",
            duration(row.solo_ns),
            f"{_times(row.stretch_a)} | {_times(row.stretch_b)}",
            row.note or "",
        ]
        for name, row in zip(kernel_names(shown), shown, strict=True)
    ]
    notes = ["status is of a kernel's median alone: a slower median is not a loss of time, see the phases"]
    if len(rows) > MOST_KERNELS:
        notes.append(f"{len(rows) - MOST_KERNELS} more kernels: --format csv or json lists all")
    return Section(f"Kernels, {arm} against a", columns, cells, text_columns=3, notes=notes if rows else [])


def _times(stretch: float | None) -> str:
    return "-" if stretch is None else f"{stretch:.2f}x"


def _profiler(answer: Diff) -> Section:
    rows = [
        [
            line.arm,
            str(line.blocks),
            f"{line.plain_wall_s:.3f} s",
            f"{line.profiled_wall_s:.3f} s",
            f"{line.ratio:.2f}x",
        ]
        for line in answer.profiler
    ]
    columns = ["arm", "blocks", "unprofiled wall", "profiled wall", "profiler's cost"]
    return Section("Wall time without and with the profiler", columns, rows)


def _only(title: str, rows: list[KernelOnOneSide]) -> Section:
    shown = rows[:MOST_KERNELS]
    cells = [
        [
            name,
            dimensions(row.grid),
            row.arm,
            shortened(row.phase),
            str(row.count),
            duration(row.total_ns),
            duration(row.median_ns),
        ]
        for name, row in zip(kernel_names(shown), shown, strict=True)
    ]
    notes = [f"{len(rows) - MOST_KERNELS} more"] if len(rows) > MOST_KERNELS else []
    return Section(
        title,
        ["kernel", "grid", "arm", "phase", "count", "total", "median"],
        cells,
        text_columns=4,
        notes=notes,
    )
