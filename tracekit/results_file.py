"""The results database: one SQLite file of the user's, its schema, and how it is opened and written.

A filing is one transaction that waits its turn, so any number of processes may file at once.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracekit.errors import UnusableInput

if TYPE_CHECKING:
    from sqlite_utils import Database

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
    (
        "CREATE TABLE benches (id INTEGER PRIMARY KEY, time TEXT NOT NULL, operation TEXT NOT NULL,"
        " device TEXT NOT NULL, answer TEXT NOT NULL)",
    ),
)
"""What lifts the schema by one version each; ``PRAGMA user_version`` counts those done. Columns that hold
lists and mappings hold JSON."""

_MEND = "move it away, or name another file with --db or TRACEKIT_DB"


def database_path(named: Path | None = None) -> Path:
    """The file named, else ``TRACEKIT_DB``, else ``results.db`` in the user's data folder."""
    if chosen := named or os.environ.get("TRACEKIT_DB"):
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("tracekit") / "results.db"


def filed(db: Path | None, write: Callable[["Database"], None]) -> str | None:
    """Write in one transaction. Never raises: returns None, or one line that says why nothing was filed."""
    path = database_path(db)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with opened(path) as database, _transaction(database):
            write(database)
    except Exception as error:  # Whatever it is, the answer that was to be filed stands.
        return f"not filed in the results database: {' '.join(str(error).split())}"
    return None


def utc(time: datetime) -> str:
    """As text that sorts by time."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@contextmanager
def opened(path: Path) -> Iterator["Database"]:
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
