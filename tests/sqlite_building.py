"""Small databases to read, and the two ways of reading them."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from tracekit.trace import sqlite_file
from tracekit.trace.pages import Unsupported, read_integers
from tracekit.trace.sqlite_file import ColumnType, SqliteFile


def build(path: Path, *script: str, rows: Iterable[Sequence[object]] = (), into: str = "t") -> Path:
    """A database: statements, then rows into a table."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in script:
        connection.execute(statement)
    rows = list(rows)
    if rows:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {into} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.execute("COMMIT")
    connection.close()
    return path


@contextmanager
def plain_reading() -> Iterator[None]:
    """SQLite alone reads; no pages are decoded."""

    def refuses(*_: object) -> pl.DataFrame:
        raise Unsupported

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_file, "read_integers", refuses)
        yield


@contextmanager
def watched_decoding() -> Iterator[list[pl.DataFrame]]:
    """The frames that came from decoded pages."""
    decoded = []

    def watched(descriptor: int, root: int, fields: Mapping[str, int]) -> pl.DataFrame:
        decoded.append(read_integers(descriptor, root, fields))
        return decoded[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_file, "read_integers", watched)
        yield decoded


def read_both_ways(path: Path, table: str, columns: Mapping[str, ColumnType]) -> tuple[pl.DataFrame, bool]:
    """The frame, the same both ways; and whether pages were decoded for it."""
    with watched_decoding() as decoded, SqliteFile(path) as file:
        frame = file.read(table, columns)
    with plain_reading(), SqliteFile(path) as file:
        plain = file.read(table, columns)
    assert frame.equals(plain)
    assert frame.schema == pl.Schema(columns)
    return frame, bool(decoded)


def integers(path: Path, column: str = "v", table: str = "t") -> tuple[list[int | None], bool]:
    frame, decoded = read_both_ways(path, table, {column: pl.Int64})
    return frame[column].to_list(), decoded
