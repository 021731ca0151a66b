"""What was recorded and compared: filed in the results database, and read back as the history."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracekit import __version__
from tracekit.analysis.results import Diff, Kernel, KernelComparison, Warn
from tracekit.errors import WrongUsage
from tracekit.filed import Entry, History, KernelPoint, PhasePoint, Point, Run
from tracekit.results_file import database_path, filed, opened, utc

if TYPE_CHECKING:
    from sqlite_utils import Database

T = TypeVar("T")
P = TypeVar("P", bound=Point)

_JSON = {"command", "arms", "roles", "traces", "traces_a", "traces_b", "gpus", "versions", "wall_ns", "ci95", "kernel"}


def file_run(run: Mapping[str, object], db: Path | None = None) -> str | None:
    """File a recorded run; ``run`` has the keys of ``Run`` (``time`` may be ISO 8601), others are not stored.

    Never raises: returns None, or one line that says why nothing was filed.
    """
    try:
        known = msgspec.convert(run, Run)
    except msgspec.ValidationError as error:
        return f"not filed in the results database: the facts of the run are incomplete ({error})"
    return filed(db, partial(_insert_run, run=known))


def file_diff(answer: Diff, workload: str, db: Path | None = None) -> str | None:
    """File a comparison of the arms of a workload.

    Never raises: returns None, or one line that says why nothing was filed.
    """
    return filed(db, partial(_insert_diff, answer=answer, workload=workload))


def read_history(
    workload: str | None = None, *, compare: bool = False, kernel: str | None = None, db: Path | None = None
) -> History:
    """What is filed, of one workload or all; with ``compare`` also phases, with ``kernel`` (a pattern) also kernels.

    A database that does not exist is an empty one and is not created. Raises UnusableInput where the file is
    damaged, foreign or newer than this tracekit, WrongUsage for a workload without entries.
    """
    path = database_path(db)
    entries: list[Entry] = []
    phases: list[PhasePoint] = []
    kernels: list[KernelPoint] = []
    if path.exists():
        with opened(path) as database:
            entries = _entries(database)
            if compare:
                phases = _points(database, "phases", PhasePoint)
            if kernel is not None:
                kernels = _kernels(database, kernel)
    filed = sorted({entry.workload for entry in entries})
    if workload is not None and workload not in filed:
        raise WrongUsage(f"no workload {workload!r} is filed in {path}: there are: {', '.join(filed) or 'none'}")
    empty = Warn("nothing_filed", f"{path}: nothing is filed here yet: 'run' and 'diff' file their results", 0)
    wanted = filed if workload is None else [workload]
    return History(
        tracekit=__version__,
        command="history",
        traces=[],
        warnings=[] if entries else [empty],
        entries=[entry for entry in entries if entry.workload in wanted],
        phases=[point for point in phases if point.workload in wanted] if compare else None,
        kernels=[point for point in kernels if point.workload in wanted] if kernel is not None else None,
    )


def _entries(database: "Database") -> list[Entry]:
    arms = ", ".join(
        f"(SELECT json_group_{gathered} FROM (SELECT * FROM arms WHERE diff = d.id ORDER BY rowid)) AS {name}"
        for name, gathered in (
            ("arms", "array(arm)"),
            ("roles", "object(arm, role)"),
            ("traces", "object(arm, json(traces))"),
        )
    )
    rows = chain(
        database.query("SELECT 'run' AS kind, * FROM runs ORDER BY id DESC"),
        database.query(f"SELECT 'diff' AS kind, *, {arms} FROM diffs d ORDER BY id DESC"),
    )
    return sorted((_typed(row, Entry) for row in rows), key=lambda entry: entry.time, reverse=True)


def _points(database: "Database", table: str, kind: type[P], condition: str = "", *values: str) -> list[P]:
    """Newest first, those of one comparison in its own order. A kernel that only ``a`` ran stands beside no arm.

    Traces compared once more with the same result are one point, not two.
    """
    rows = database.query(
        "SELECT d.time, d.workload, d.gpus, a.role AS role_a, a.traces AS traces_a, b.role AS role_b,"
        f" b.traces AS traces_b, x.* FROM {table} x JOIN diffs d ON d.id = x.diff"
        " JOIN arms a ON a.diff = d.id AND a.arm = 'a'"
        " LEFT JOIN arms b ON b.diff = d.id AND b.arm = x.arm AND x.arm <> 'a'"
        f" {condition} ORDER BY d.time DESC, d.id DESC, x.rowid",
        values,
    )
    points: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        result = tuple(value for column, value in row.items() if column not in ("time", "diff"))
        points.setdefault(result, row)
    return [_typed(row, kind) for row in points.values()]


def _typed(row: dict[str, Any], kind: type[T]) -> T:
    decoded = {
        column: msgspec.json.decode(value) if column in _JSON and value is not None else value
        for column, value in row.items()
    }
    return msgspec.convert(decoded, kind)


def _kernels(database: "Database", pattern: str) -> list[KernelPoint]:
    """Those whose base name matches; with '::' or '<' in the pattern, whose whole name does."""
    database.conn.create_function(
        "regexp", 2, lambda asked, name: name is not None and re.search(asked, name) is not None, deterministic=True
    )
    name = "name" if "::" in pattern or "<" in pattern else "short_name"
    return _points(database, "kernels", KernelPoint, f"WHERE json_extract(kernel, '$.{name}') REGEXP ?", pattern)


def _insert_run(database: "Database", run: Run) -> None:
    row = {**msgspec.structs.asdict(run), "time": utc(run.time), "gpus": [run.gpu] if run.gpu else []}
    del row["gpu"]
    database.table("runs").insert(row)


def _insert_diff(database: "Database", answer: Diff, workload: str) -> None:
    head = {
        "time": utc(datetime.now(UTC)),
        "workload": workload,
        "gpus": list(dict.fromkeys(gpu for line in answer.traces for gpu in line.gpus)),
        "versions": {"tracekit": answer.tracekit},
        "winner": answer.verdict.winner,
        "reason": answer.verdict.reason,
    }
    diff = database.table("diffs").insert(head).last_pk
    for table, rows in (
        ("arms", _arm_rows(answer)),
        ("phases", _phase_rows(answer)),
        ("kernels", _kernel_rows(answer)),
    ):
        database.table(table).insert_all({"diff": diff, **row} for row in rows)


def _arm_rows(answer: Diff) -> Iterator[dict[str, object]]:
    """One row an arm, which may stand in the answer once for each of its blocks."""
    roles: dict[str, str] = {}
    for line in answer.arms:
        roles.setdefault(line.arm, line.role)
    for arm, role in roles.items():
        yield {"arm": arm, "role": role, "traces": [line.path for line in answer.arms if line.arm == arm]}


def _phase_rows(answer: Diff) -> Iterator[dict[str, object]]:
    same = ("arm", "name", "n_a", "n_b", "time_basis", "time_ns_a", "time_ns_b", "ratio", "ci95")
    for phase in answer.phases:
        yield {**{field: getattr(phase, field) for field in same}, "winner": phase.verdict.winner}


def _kernel_rows(answer: Diff) -> Iterator[dict[str, object]]:
    stored = [field for field in KernelPoint.__struct_fields__ if field in KernelComparison.__struct_fields__]
    # A kernel that only the first arm ran is listed once for each arm that lacks it.
    alone = [*(("a", row) for row in dict.fromkeys(answer.only_a)), *(("b", row) for row in answer.only_b)]
    for row in answer.kernels:
        yield {"arm": row.arm, "kernel": _key(row)} | {field: getattr(row, field) for field in stored}
    for side, one in alone:
        figures = {f"count_{side}": one.count, f"median_ns_{side}": one.median_ns}
        yield dict.fromkeys(stored) | {"arm": one.arm, "kernel": _key(one), "phase": one.phase} | figures


def _key(row: Kernel) -> dict[str, object]:
    return {field: getattr(row, field) for field in Kernel.__struct_fields__}
