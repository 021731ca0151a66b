"""What a person is shown of who slowed whom, and of what overlap gained or lost by set of kernels."""

from collections import Counter
from collections.abc import Sequence

from tracekit.analysis.results import Contention, Kernel, OverlapSet
from tracekit.report.document import Section
from tracekit.report.views.names import dimensions, ratio_interval
from tracekit.units import duration, shortened

MOST_ROWS = 10
"""Rows of either table; every one is in JSON."""

MOST_MEMBERS = 4
"""Kernels of a set that are named."""


def contention_section(rows: Sequence[Contention]) -> Section:
    """Kernels of one trace beside others, those with most overlapped time first."""
    beside = [row for row in rows if row.companions]
    shown = beside[:MOST_ROWS]
    cells = [
        [
            kernel_name(row.victim),
            ("of these, " if row.split else "") + _set(row.companions),
            row.band or "",
            str(row.instances),
            "unknown" if row.stretch is None else f"{row.stretch:.2f}x",
            ratio_interval(row.ci95, 2),
            row.note or "",
        ]
        for row in shown
    ]
    notes = ["overlapped share of the instances: up to half of their time, or over half of it"]
    if any(row.split for row in shown):
        notes.append("of these: the effect of one kernel, told apart over all sets that hold it")
    columns = ["kernel", "beside", "overlapped", "instances", "stretch", "95 %", "note"]
    return Section("Beside whom", columns, cells, text_columns=3, notes=_with_more(notes, beside) if cells else [])


def sets_section(rows: Sequence[OverlapSet]) -> Section:
    """Sets of kernels whose overlap gained or lost most; the arm and phase are named where there are any."""
    known = sorted(
        (row for row in rows if row.gain_ns is not None and row.members), key=lambda row: -abs(row.gain_ns or 0)
    )
    where = any(row.phase for row in known)
    cells = [
        [
            *([row.arm or "", shortened(row.phase or "")] if where else []),
            _members(row),
            f"{row.episodes:g}",
            duration(row.wall_ns / row.episodes),
            duration((row.solo_ns or 0) / row.episodes),
            duration(row.gain_ns),
            "-" if row.low_ns is None else f"{duration(row.low_ns)} to {duration(row.high_ns)}",
        ]
        for row in known[:MOST_ROWS]
    ]
    columns = [*(["arm", "phase"] if where else []), "kernels at once", "episodes"]
    columns += ["took each (W)", "in a row (S)", "overlap gained", "95 %"]
    whole = "per instance of the phase" if where else "over all episodes"
    notes = [f"gained: S - W {whole}; that of episodes of two kernels is the pair's, any other the set's as a whole"]
    if any((row.gain_ns or 0) < 0 for row in known[:MOST_ROWS]):
        notes.append("a negative gain is time lost")
    title = "What overlapping gained, by set of kernels"
    return Section(
        title, columns, cells, text_columns=3 if where else 1, notes=_with_more(notes, known) if cells else []
    )


def kernel_name(kernel: Kernel) -> str:
    """A kernel's base name with its grid."""
    name = shortened(kernel.short_name or kernel.name or "(unnamed)")
    return name if kernel.grid is None else f"{name} {dimensions(kernel.grid)}"


def _members(row: OverlapSet) -> str:
    if row.pair:
        return " beside ".join(kernel_name(kernel) for kernel in row.members)
    return f"{_set(row.members)}, more than two at once"


def _set(kernels: Sequence[Kernel]) -> str:
    """The kernels of a set; those of one name once, with their number."""
    names = Counter(map(kernel_name, kernels))
    listed = [name if count == 1 else f"{count} of {name}" for name, count in list(names.items())[:MOST_MEMBERS]]
    return ", ".join(listed) + (f" and {len(names) - MOST_MEMBERS} more" if len(names) > MOST_MEMBERS else "")


def _with_more(notes: list[str], rows: Sequence[object]) -> list[str]:
    more = len(rows) - MOST_ROWS
    return [*notes, f"{more} more: --format json lists all"] if more > 0 else notes
