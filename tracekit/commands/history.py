"""``tracekit history``."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from tracekit.commands import options, output
from tracekit.commands.selecting import checked_pattern
from tracekit.errors import WrongUsage
from tracekit.report.document import Document, Section
from tracekit.report.views.names import dimensions, kernel_names, warning_lines
from tracekit.units import duration, percent, shortened

if TYPE_CHECKING:
    from tracekit.filed import Entry, History, KernelPoint, PhasePoint, Point

DatabaseOption = Annotated[
    Path | None,
    typer.Option(
        "--db", help="The results database, if not TRACEKIT_DB or the one in your data folder.", metavar="FILE"
    ),
]


def history(
    workload: Annotated[str | None, typer.Argument(help="Only this workload.", metavar="WORKLOAD")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Show how each phase's times and ratio went on.")] = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="With --compare: also the medians of kernels whose base name matches this regular expression"
            " (with '::' or '<' in it: whole name).",
            metavar="PATTERN",
        ),
    ] = None,
    db: DatabaseOption = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
) -> None:
    """What was recorded and compared so far, newest first, and how the results went on.

    Every 'run' and every 'diff' is filed. With --compare a ratio is b / a; comparisons on different GPUs stand
    in one table, so look at its GPU column.
    """
    from tracekit.results_file import database_path
    from tracekit.store import read_history

    output.check_output(path, force, [str(database_path(db))])
    if kernel is not None and not compare:
        raise WrongUsage("--kernel shows how a kernel went on: add --compare")
    answer = read_history(workload, compare=compare, kernel=checked_pattern(kernel, "--kernel"), db=db)
    output.write_answer(answer, document, form, path)


def document(answer: "History") -> Document:
    """The list, or the trend of each phase and kernel."""
    if answer.phases is None:
        sections = [_entries(answer.entries)]
    else:
        sections = [*_phase_trends(answer.phases), *_kernel_trends(answer.kernels or [])]
        if not answer.phases:
            sections.append(Section("", notes=["no comparison with phases is filed: 'tracekit diff' files them"]))
        if answer.kernels is not None:
            sections.append(
                Section("", notes=[_STATUS if answer.kernels else "no kernel of these comparisons matches"])
            )
    return Document("history", sections, warning_lines(answer.warnings))


def _entries(entries: "list[Entry]") -> Section:
    rows = [
        [
            _when(entry.time),
            entry.kind,
            entry.workload,
            ", ".join(dict.fromkeys(entry.gpus)) or "-",
            ", ".join(entry.arms),
            entry.folder or " against ".join(_files(traces) for traces in (entry.traces or {}).values()),
            _result(entry),
        ]
        for entry in entries
    ]
    notes = ["result of a run: median wall time without the profiler"] if rows else []
    columns = ["time (UTC)", "kind", "workload", "GPU", "arms", "what", "result"]
    return Section("", columns, rows, text_columns=len(columns), notes=notes)


def _result(entry: "Entry") -> str:
    if entry.wall_ns is not None:
        return ", ".join(f"{arm} {duration(median(times))}" for arm, times in entry.wall_ns.items() if times) or "-"
    won = {"a": "a wins", "b": "b wins", "tie": "no difference"} if len(entry.arms) == 2 else {}
    return won.get(entry.winner or "", entry.reason or "")


def _phase_trends(points: "list[PhasePoint]") -> list[Section]:
    trends: dict[str, list[PhasePoint]] = {}
    for point in points:
        trends.setdefault(f"{point.workload}: {shortened(point.name)}", []).append(point)
    columns = [*_COMPARED, "n a", "n b", "time a", "time b", "ratio", "95 %", "winner"]
    return [
        Section(
            title,
            columns,
            [
                [
                    *_compared(point),
                    str(point.n_a),
                    str(point.n_b),
                    duration(point.time_ns_a),
                    duration(point.time_ns_b),
                    *_ratio(point),
                    point.winner,
                ]
                for point in trend
            ],
            text_columns=len(_COMPARED),
        )
        for title, trend in trends.items()
    ]


def _kernel_trends(points: "list[KernelPoint]") -> list[Section]:
    keys = list(dict.fromkeys(point.kernel for point in points))
    names = dict(zip(keys, kernel_names(keys), strict=True))
    trends: dict[str, list[KernelPoint]] = {}
    for point in points:
        title = f"{point.workload}: {names[point.kernel]} {dimensions(point.kernel.grid)}"
        trends.setdefault(title, []).append(point)
    columns = [*_COMPARED, "phase", "count a", "count b", "median a", "p25-p75 a", "median b", "p25-p75 b"]
    columns += ["ratio", "95 %", "status", "overlapped", "solo"]
    return [
        Section(
            title,
            columns,
            [
                [
                    *_compared(point),
                    shortened(point.phase),
                    "-" if point.count_a is None else str(point.count_a),
                    "-" if point.count_b is None else str(point.count_b),
                    duration(point.median_ns_a),
                    _quartiles(point.p25_ns_a, point.p75_ns_a),
                    duration(point.median_ns_b),
                    _quartiles(point.p25_ns_b, point.p75_ns_b),
                    *_ratio(point),
                    point.status or "one side only",
                    f"{percent(point.overlapped_fraction_a, 0)} | {percent(point.overlapped_fraction_b, 0)}",
                    duration(point.solo_ns),
                ]
                for point in trend
            ],
            text_columns=len(_COMPARED) + 1,
        )
        for title, trend in trends.items()
    ]


_STATUS = "status is of a kernel's median alone: a slower median is not a loss of time, see the phases"
_COMPARED = ["time (UTC)", "GPU", "a", "b"]


def _compared(point: "Point") -> list[str]:
    b = "-" if point.role_b is None else f"{point.role_b} {_files(point.traces_b or [])}"
    gpus = ", ".join(dict.fromkeys(point.gpus)) or "-"
    return [_when(point.time), gpus, f"{point.role_a} {_files(point.traces_a)}", b]


def _ratio(point: "Point") -> list[str]:
    interval = "-" if point.ci95 is None else "{:.3f}-{:.3f}".format(*point.ci95)
    return ["-" if point.ratio is None else f"{point.ratio:.3f}", interval]


def _quartiles(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{duration(low)}-{duration(high)}"


def _files(traces: list[str]) -> str:
    """The name of the first and how many more there are."""
    first = Path(traces[0]).name
    return first if len(traces) == 1 else f"{first} and {len(traces) - 1} more"


def _when(time: str) -> str:
    return time[:19].replace("T", " ")
