"""A SQLite export, opened so that nothing in it or beside it changes, read into polars frames."""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from tracekit.errors import UnusableInput
from tracekit.trace.pages import ROWID, Unsupported, page_size, read_integers
from tracekit.trace.sqlite_rows import frame_of

ColumnType = pl.DataType | type[pl.DataType]

_MAGIC = b"SQLite format 3\0"
_GIT_LFS_POINTER = b"version https://git-lfs"

_EXPORT_AGAIN = "export the report again: nsys export --type sqlite REPORT.nsys-rep"
_BEING_WRITTEN = "another process is writing it; wait until it has finished, then try again"
_WRITE_INTERRUPTED = f"a write to it was interrupted; {_EXPORT_AGAIN}"
_DAMAGED = f"the file is damaged; {_EXPORT_AGAIN}"
_EXPLANATIONS = {
    sqlite3.SQLITE_BUSY: _BEING_WRITTEN,
    sqlite3.SQLITE_PROTOCOL: _BEING_WRITTEN,
    sqlite3.SQLITE_READONLY: _WRITE_INTERRUPTED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
}


class SqliteFile:
    """A SQLite export opened for reading only: nothing is created or changed, nor locked beyond the reading.

    One state of the file is seen from opening to closing: a SHARED lock is held where SQLite's locks
    apply, and a file that changes all the same is refused. ``unreadable`` counts, by (table, column),
    the values that are null in a frame because they are not of the column's type; values read by
    ``query`` count under the table ``""``.

    Threads may use it one after another. Opening and every method raise UnusableInput where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: Counter[tuple[str, str]] = Counter()
        with ExitStack() as undone, self._errors_explained():
            self._open(undone)
            self._open_things = undone.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the lock and remove the private copy, if there was one. May be called twice."""
        self._open_things.close()

    def tables(self) -> dict[str, dict[str, str]]:
        """The tables, each with its columns and their declared types, in the order of creation; no views."""
        found: dict[str, dict[str, str]] = {}
        with self._errors_explained(), self._unchanged():
            for table, column, declared in self._connection.execute(
                "SELECT t.name, c.name, c.type FROM sqlite_master t, pragma_table_xinfo(t.name) c"
                " WHERE t.type = 'table' AND t.rootpage > 0 AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
                " ORDER BY t.rowid, c.cid"
            ):
                found.setdefault(table, {})[column] = declared
        return found

    def read(self, table: str, columns: Mapping[str, ColumnType]) -> pl.DataFrame:
        """Columns (Int64, Float64 or String) that a table has, in the order of its rows."""
        schema = pl.Schema(columns)
        with self._errors_explained(), self._unchanged():
            decoded = self._decoded(table, [name for name, dtype in schema.items() if dtype == pl.Int64])
            others = {name: dtype for name, dtype in schema.items() if name not in decoded.columns}
            if not others:
                return decoded
            # NOT INDEXED: a covering index would be scanned in its own order.
            selected = ", ".join(map(_quoted, others))
            cursor = self._connection.execute(f"SELECT {selected} FROM {_quoted(table)} NOT INDEXED")
            rows, unreadable = frame_of(cursor, others)
        if decoded.columns and decoded.height != rows.height:
            raise self._unusable(_DAMAGED)
        for column, count in unreadable.items():
            self.unreadable[table, column] = count
        return pl.concat([decoded, rows], how="horizontal").select(schema.names())

    def query(self, sql: str, parameters: Sequence[object], schema: Mapping[str, ColumnType]) -> pl.DataFrame:
        """The rows of one SELECT; ``schema`` names and types its columns in order. For small results."""
        with self._errors_explained(), self._unchanged():
            frame, unreadable = frame_of(self._connection.execute(sql, parameters), pl.Schema(schema))
        for column, count in unreadable.items():
            self.unreadable["", column] = count
        return frame

    def _decoded(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        """Integer columns, straight from the pages; none where that cannot be done."""
        try:
            root, fields = self._stored(table, columns)
            return read_integers(self._descriptor, root, fields)
        except Unsupported:
            return pl.DataFrame()

    def _stored(self, table: str, columns: Sequence[str]) -> tuple[int, dict[str, int]]:
        """A table's root page, and where in its records the columns are."""
        execute = self._connection.execute
        root = execute("SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
        # Columns hidden for another reason than 3 (generated and stored) are not in the record.
        described = execute("SELECT name, pk, hidden FROM pragma_table_xinfo(?)", (table,)).fetchall()
        stored = [name for name, _, hidden in described if hidden in (0, 3)]
        fields = {name: position for position, name in enumerate(stored)}
        # A primary key without an index is the row id itself; its place in the record holds NULL.
        if not execute("SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", (table,)).fetchone():
            fields |= {name: ROWID for name, key, _ in described if key}
        if not columns or not root or not fields.keys() >= set(columns):
            raise Unsupported("no stored columns of a table")
        return root[0], {name: fields[name] for name in columns}

    def _open(self, undone: ExitStack) -> None:
        """Open the file or its private copy; ``undone`` closes in reverse order what was opened."""
        if not stat.S_ISREG(self.path.stat().st_mode):
            kind = "a folder" if self.path.is_dir() else "not a regular file"
            raise self._unusable(f"this is {kind}; name the .sqlite file itself")
        # SQLite keeps its companions beside the file that a symbolic link leads to.
        source = self.path.resolve()
        wal = Path(f"{source}-wal")
        if wal.exists() and wal.stat().st_size > 0:
            folder = undone.enter_context(tempfile.TemporaryDirectory(prefix="tracekit-"))
            source = self._merged_copy(source, wal, Path(folder, "export.sqlite"))
        # Closing any descriptor of a file drops all locks of the process on it (POSIX): this one closes last.
        self._descriptor = os.open(source, os.O_RDONLY)
        undone.callback(os.close, self._descriptor)
        self._source, self._state = source, _state(os.fstat(self._descriptor))
        header = os.pread(self._descriptor, 100, 0)
        self._check_header(header)
        # A database in WAL mode that is opened in any other way gets companion files beside it.
        options = "immutable=1" if 2 in header[18:20] else "mode=ro"
        self._connection = sqlite3.connect(
            f"{source.as_uri()}?{options}", uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        undone.callback(self._connection.close)
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def _merged_copy(self, source: Path, wal: Path, copy: Path) -> Path:
        """A private copy with the commits that are still in the write-ahead log."""
        before = _state(source.stat()), _state(wal.stat())
        shutil.copyfile(source, copy)
        shutil.copyfile(wal, f"{copy}-wal")
        if (_state(source.stat()), _state(wal.stat())) != before:
            raise self._unusable(_BEING_WRITTEN)
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return copy

    def _check_header(self, header: bytes) -> None:
        if not header:
            raise self._unusable(f"the file is empty; {_EXPORT_AGAIN}")
        if header.startswith(_GIT_LFS_POINTER):
            raise self._unusable("this is a Git LFS pointer, not the file itself; fetch it with: git lfs pull")
        if not header.startswith(_MAGIC[: len(header)]):
            raise self._unusable(f"this is not a SQLite file; {_EXPORT_AGAIN}")
        size = os.fstat(self._descriptor).st_size
        # The page count is meant only where the change counter was copied along with it.
        counted = header[24:28] == header[92:96]
        if size < 512 or (counted and size < int.from_bytes(header[28:32]) * page_size(header)):
            raise self._unusable(f"the file is cut short ({size} bytes); copy it anew, or {_EXPORT_AGAIN}")

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        try:
            yield
        finally:
            # Looked at after a failure too: what seems damage is then a file half written.
            if _state(self._source.stat()) != self._state:
                raise self._unusable(_BEING_WRITTEN)

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            unforeseen = f"the file cannot be read ({error}); copy it to a local disk, or {_EXPORT_AGAIN}"
            explanation = _EXPLANATIONS.get(primary, unforeseen)
            raise self._unusable(explanation) from error
        except UnicodeDecodeError as error:
            # A damaged name in SQLite's own message.
            raise self._unusable(_DAMAGED) from error
        except MemoryError as error:
            # SQLite also says so when a damaged length asks for more than there is.
            raise self._unusable(f"memory ran out, or {_DAMAGED}") from error
        except FileNotFoundError as error:
            raise self._unusable("no such file; check the path") from error
        except PermissionError as error:
            raise self._unusable("no permission to read it; change its mode or owner") from error
        except OSError as error:
            raise self._unusable(f"the file cannot be read ({error})") from error

    def _unusable(self, explanation: str) -> UnusableInput:
        message = f"{self.path}: {explanation}"
        # Damaged files put anything into SQLite's messages.
        return UnusableInput("".join(c if c.isprintable() else "?" for c in message))


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
