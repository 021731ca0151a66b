"""What a person is shown of how the arms launched their work."""

from tracekit.analysis.results import Diff, Mechanics, Number
from tracekit.report.document import Section
from tracekit.units import duration, percent, shortened

MOST_PHASES = 10
"""Phases shown to a person; every one is in the other formats."""

MOST_KINDS = 2
"""Kinds of calls named in one cell, those with the most time."""


def mechanics_section(answer: Diff) -> Section:
    """A row a phase and arm, the arms of a phase together."""
    phases = list(dict.fromkeys(row.phase for row in answer.mechanics))
    shown = [row for phase in phases[:MOST_PHASES] for row in answer.mechanics if row.phase == phase]
    rows = [
        [
            shortened(row.phase),
            row.arm,
            _count(row.launches),
            _count(row.graph_launches),
            _nodes(row.nodes_per_launch),
            "-" if row.executables is None else str(row.executables),
            f"{_count(row.instantiations)} | {_count(row.updates)}",
            _calls(row.api_ns),
            duration(row.gaps_ns),
            duration(row.launch_bound_ns),
            duration(row.setup_ns),
            duration(row.host_work_ns),
            _share(row),
        ]
        for row in shown
    ]
    columns = ["phase", "arm", "launches", "graph launches", "nodes each", "execs", "instantiate | update"]
    columns += ["most time in calls", "idle: device", "idle: launching", "idle: setup", "idle: host", "no call, no GPU"]
    notes = ["means of one instance; idle time of the GPU is charged to what the next work waited for"]
    if len(phases) > MOST_PHASES:
        notes.append(f"{len(phases) - MOST_PHASES} more phases: --format json lists all")
    return Section("Graph mechanics", columns, rows, text_columns=2, notes=notes if rows else [])


def _count(value: Number | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _nodes(histogram: dict[str, int] | None) -> str:
    if not histogram:
        return "-"
    sizes = sorted(map(int, histogram))
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}"


def _calls(times: dict[str, Number] | None) -> str:
    """Waiting is left out: it costs nothing by itself."""
    if times is None:
        return "-"
    longest = sorted((-time, role) for role, time in times.items() if role != "wait")[:MOST_KINDS]
    return ", ".join(f"{role} {duration(-time)}" for time, role in longest) or "-"


def _share(row: Mechanics) -> str:
    if row.host_ns is None or not row.time_ns:
        return "-"
    return f"{duration(row.host_ns)} ({percent(row.host_ns / row.time_ns, 0)})"
