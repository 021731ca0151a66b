"""The rows of an nsys export on their way into a file: string ids, order, bytes."""

import random
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from nsys_schema import ENUMS, TABLES, create_table, insert

Row = Sequence[int | float | str | None]
Batch = tuple[str, tuple[str, ...], Iterable[Row]]

_STRING_COLUMNS = {"demangledName", "shortName", "mangledName", "nameId", "textId"}


class ExportRows:
    """Rows gathered table by table; ``write`` puts them into a file.

    ``metadata`` holds the (name, value) rows of the META_DATA tables.
    """

    def __init__(self, metadata: dict[str, list[tuple[str, str]]]) -> None:
        self._metadata = metadata
        self._strings: dict[str, int] = {"[Unknown]": 0}
        self._rows: dict[tuple[str, str], list[Row]] = {}
        self._bulk: list[Batch] = []

    def string(self, text: str) -> int:
        """Id of ``text`` in StringIds, for rows given to ``bulk``."""
        return self._strings.setdefault(text, len(self._strings))

    def add(self, table: str, columns: str, row: Row) -> None:
        """One row of ``table``, holding the columns named in ``columns``; the others take usual values."""
        self._rows.setdefault((table, columns), []).append(row)

    def bulk(self, table: str, columns: Iterable[str], rows: Iterable[Row]) -> None:
        """Many rows of one table, holding ``columns``; ``rows`` is read once, when the file is written.

        Name columns hold ids from ``string``. Columns left out take usual values.
        """
        self._bulk.append((table, tuple(columns), rows))

    def write(self, path: Path, *, shuffle: int | None = None) -> Path:
        """Write the export to ``path``, replacing what is there, and return ``path``.

        The same content gives the same bytes. A ``shuffle`` seed reorders the rows of every event table
        and the string ids, without changing what they say.
        """
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA page_size = 4096")
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("BEGIN")
            self._fill(connection, shuffle)
            connection.execute("COMMIT")
        finally:
            connection.close()
        _forget_sqlite_version(path)
        return path

    def _fill(self, connection: sqlite3.Connection, shuffle: int | None) -> None:
        strings = [(id, text) for text, id in self._strings.items()]
        batches: list[Batch] = [(table, tuple(c.split()), rows) for (table, c), rows in self._rows.items()]
        batches += self._bulk
        if shuffle is not None:
            order = random.Random(shuffle)
            new_ids = order.sample(range(len(strings)), len(strings))
            strings = [(new_ids[id], text) for id, text in strings]
            batches = [_shuffled(order, new_ids, batch) for batch in batches]
            order.shuffle(batches)
        filled = {table for table, _, _ in batches}
        for table in (*(table for table in TABLES if table in filled), "StringIds", *self._metadata, *ENUMS):
            create_table(connection, table)
        for table, columns, rows in batches:
            insert(connection, table, columns, rows)
        insert(connection, "StringIds", ("id", "value"), strings)
        for table, settings in self._metadata.items():
            insert(connection, table, ("name", "value"), settings)
        for table, labels in ENUMS.items():
            insert(connection, table, ("id", "name", "label"), [(id, *names) for id, names in labels.items()])


def _shuffled(order: random.Random, new_ids: Sequence[int], batch: Batch) -> Batch:
    table, columns, rows = batch
    renamed = [
        [
            new_ids[cell] if column in _STRING_COLUMNS and isinstance(cell, int) else cell
            for column, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    order.shuffle(renamed)
    return table, columns, renamed


def _forget_sqlite_version(path: Path) -> None:
    """Blank the library version SQLite stamps into its header, lest the bytes depend on the machine."""
    with path.open("r+b") as file:
        file.seek(96)
        file.write(bytes(4))
