"""The results database: every recorded run and every comparison, in one SQLite file of the user's.

A filing is one transaction that waits its turn, so any number of processes may file at once.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracekit import __version__
from tracekit.analysis.results import Diff, Kernel, KernelComparison, Warn
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.filed import Entry, History, KernelPoint, PhasePoint, Point, Run

if TYPE_CHECKING:
    from sqlite_utils import Database

T = TypeVar("T")
P = TypeVar("P", bound=Point)

PATIENCE_S = 10.0
"""How long to wait for other processes that write."""

APPLICATION_ID = 0x7472_6B74
"""Marks a SQLite file as a results database (``PRAGMA application_id``)."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE runs (id INTEGER PRIMARY KEY, time TEXT NOT NULL, workload TEXT NOT NULL, folder TEXT NOT NULL,"
        " command TEXT NOT NULL, arms TEXT NOT NULL, gpus TEXT NOT NULL, versions TEXT NOT NULL,"
        " wall_ns TEXT NOT NULL)",
        "CREATE TABLE diffs (id INTEGER PRIMARY KEY, time TEXT NOT NULL, workload TEXT NOT NULL,"
        " gpus TEXT NOT NULL, versions TEXT NOT NULL, winner TEXT NOT NULL, reason TEXT NOT NULL)",
        "CREATE TABLE arms (diff INTEGER NOT NULL REFERENCES diffs, arm TEXT NOT NULL, role TEXT NOT NULL,"
        " traces TEXT NOT NULL, PRIMARY KEY (diff, arm))",
        "CREATE TABLE phases (diff INTEGER NOT NULL REFERENCES diffs, arm TEXT NOT NULL, name TEXT NOT NULL,"
        " n_a INTEGER NOT NULL, n_b INTEGER NOT NULL, time_basis TEXT, time_ns_a NUMERIC, time_ns_b NUMERIC,"
        " ratio REAL, ci95 TEXT, winner TEXT NOT NULL)",
        "CREATE TABLE kernels (diff INTEGER NOT NULL REFERENCES diffs, arm TEXT NOT NULL, kernel TEXT NOT NULL,"
        " phase TEXT NOT NULL, count_a INTEGER, count_b INTEGER, median_ns_a NUMERIC, median_ns_b NUMERIC,"
        " p25_ns_a NUMERIC, p75_ns_a NUMERIC, p25_ns_b NUMERIC, p75_ns_b NUMERIC, ratio REAL, ci95 TEXT, status TEXT,"
        " overlapped_fraction_a REAL, overlapped_fraction_b REAL, solo_ns NUMERIC)",
        "CREATE INDEX phases_of_a_diff ON phases (diff)",
        "CREATE INDEX kernels_of_a_diff ON kernels (diff)",
    ),
)
"""What lifts the schema by one version each; ``PRAGMA user_version`` counts those done. Columns that hold
lists and mappings hold JSON."""

_MEND = "move it away, or name another file with --db or TRACEKIT_DB"

_JSON = {"command", "arms", "roles", "traces", "traces_a", "traces_b", "gpus", "versions", "wall_ns", "ci95", "kernel"}


def database_path(named: Path | None = None) -> Path:
    """The file named, else ``TRACEKIT_DB``, else ``results.db`` in the user's data folder."""
    if chosen := named or os.environ.get("TRACEKIT_DB"):
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("tracekit") / "results.db"


def file_run(run: Mapping[str, object], db: Path | None = None) -> str | None:
    """File a recorded run; ``run`` has the keys of ``Run`` (``time`` may be ISO 8601), others are not stored.

    Never raises: returns None, or one line that says why nothing was filed.
    """
    try:
        known = msgspec.convert(run, Run)
    except msgspec.ValidationError as error:
        return f"not filed in the results database: the facts of the run are incomplete ({error})"
    return _filed(db, partial(_insert_run, run=known))


def file_diff(answer: Diff, workload: str, db: Path | None = None) -> str | None:
    """File a comparison of the arms of a workload.

    Never raises: returns None, or one line that says why nothing was filed.
    """
    return _filed(db, partial(_insert_diff, answer=answer, workload=workload))


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
        with _opened(path) as database:
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


def _filed(db: Path | None, write: Callable[["Database"], None]) -> str | None:
    path = database_path(db)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _opened(path) as database, _transaction(database):
            write(database)
    except Exception as error:  # Whatever it is, the answer that was to be filed stands.
        return f"not filed in the results database: {' '.join(str(error).split())}"
    return None


def _insert_run(database: "Database", run: Run) -> None:
    row = {**msgspec.structs.asdict(run), "time": _utc(run.time), "gpus": [run.gpu] if run.gpu else []}
    del row["gpu"]
    database.table("runs").insert(row)


def _insert_diff(database: "Database", answer: Diff, workload: str) -> None:
    head = {
        "time": _utc(datetime.now(UTC)),
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


def _utc(time: datetime) -> str:
    """As text that sorts by time."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@contextmanager
def _opened(path: Path) -> Iterator["Database"]:
    """The database with the present schema. Raises UnusableInput; a file that is not ours stays as it is."""
    from sqlite_utils import Database

    try:
        _refuse_foreign(path)
        with closing(sqlite3.connect(path, timeout=PATIENCE_S)) as connection:
            database = Database(connection, recursive_triggers=False, execute_plugins=False)
            if _version(database, path) < len(MIGRATIONS):
                _migrate(database, path)
            yield database
    except (OSError, sqlite3.Error, msgspec.MsgspecError) as error:
        busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        mend = "another process is writing it, try again" if busy else _MEND
        raise UnusableInput(f"{path}: cannot be used as results database ({error}): {mend}") from error


def _refuse_foreign(path: Path) -> None:
    """Look at the first bytes: SQLite itself may write to what it opens, or beside it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        header = file.read(100)
    if header and not header.startswith(b"SQLite format 3\0"):
        raise UnusableInput(f"{path}: is not a SQLite database: {_MEND}")
    if header and int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise UnusableInput(f"{path}: is a SQLite database but not one of tracekit's results: {_MEND}")


def _version(database: "Database", path: Path) -> int:
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise UnusableInput(
            f"{path}: was written by a newer tracekit (schema {version}, this one knows {len(MIGRATIONS)}): "
            "update tracekit, or name another file with --db or TRACEKIT_DB"
        )
    return version


def _migrate(database: "Database", path: Path) -> None:
    with _transaction(database):
        # Another process may have been quicker.
        for statement in chain.from_iterable(MIGRATIONS[_version(database, path) :]):
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextmanager
def _transaction(database: "Database") -> Iterator[None]:
    """The right to write is taken at once: SQLite refuses a transaction that reads first, rather than let it wait."""
    with database.conn:
        database.conn.execute("BEGIN IMMEDIATE")
        yield
