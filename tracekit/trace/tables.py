"""What every kind of export offers: named tables with typed columns."""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import polars as pl


class Tables(Protocol):
    """An opened export."""

    unreadable: Counter[tuple[str, str]]
    """(table, column) -> how many values had another type than the column's."""

    def tables(self) -> dict[str, dict[str, str]]:
        """Table -> {column: declared type}."""
        ...

    def read(self, table: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
        """The named columns of one table, each of which exists."""
        ...

    def close(self) -> None:
        """Release the files."""
        ...


class Export:
    """An export's tables by their base names, with absent ones and absent columns filled in.

    Newer exports add suffixes (``NVTX_EVENTS_V2``); ``resolved`` tells which table answers a name.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._columns = tables.tables()
        self.renamed: dict[str, str] = {}

    @property
    def unreadable(self) -> Counter[tuple[str, str]]:
        """(table, column) -> how many values had another type than the column's."""
        return self._tables.unreadable

    def find(self, base: str) -> str | None:
        """The table that holds ``base``: itself, its highest version (``base_V2``), or its only suffix."""
        if base in self._columns:
            return base
        suffixed = sorted(name for name in self._columns if name.startswith(base + "_"))
        versions = {int(n): name for name in suffixed if (n := name[len(base) + 2 :]).isdecimal()}
        if not versions and len(suffixed) != 1:
            return None
        name = versions[max(versions)] if versions else suffixed[0]
        self.renamed[base] = name
        return name

    def columns(self, base: str) -> frozenset[str]:
        """Columns of a table; empty when the table was not recorded."""
        name = self.find(base)
        return frozenset(self._columns[name]) if name else frozenset()

    def read(self, base: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
        """The named columns; those the export lacks are null, an absent table is an empty frame."""
        name = self.find(base)
        if name is None:
            return pl.DataFrame(schema=dict(columns))
        spelled = {column.lower(): column for column in self._columns[name]}
        present = {spelled[column.lower()]: kind for column, kind in columns.items() if column.lower() in spelled}
        if not present:
            return pl.DataFrame(schema=dict(columns))
        frame = self._tables.read(name, present)
        return frame.select(
            pl.col(spelled[column.lower()]).alias(column)
            if column.lower() in spelled
            else pl.lit(None, kind).alias(column)
            for column, kind in columns.items()
        )

    def close(self) -> None:
        """Release the files."""
        self._tables.close()
