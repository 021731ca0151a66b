"""A ``parquetdir`` export: a folder with one Parquet file a table."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tracekit.errors import UnusableInput


class ParquetFolder:
    """Tables of ``nsys export --type parquetdir``; they have the columns of the SQLite export.

    Raises UnusableInput when the folder holds no table or a file is not Parquet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: Counter[tuple[str, str]] = Counter()
        self._files = {file.stem: file for file in sorted(path.glob("*.parquet"))}
        if not self._files:
            raise UnusableInput(f"{path}: a folder without Parquet files: name a .sqlite export or a parquetdir export")

    def tables(self) -> dict[str, dict[str, str]]:
        """Table -> {column: type}."""
        return {
            name: {column: str(kind) for column, kind in self._schema(file).items()}
            for name, file in self._files.items()
        }

    def read(self, table: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
        """The columns, ids given as unsigned numbers included, in the types asked for."""
        try:
            rows = pl.read_parquet(self._files[table], columns=list(columns))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unusable(self._files[table]) from error
        frame = rows.cast(pl.Schema(columns), strict=False)
        for column in columns:
            lost = frame[column].null_count() - rows[column].null_count()
            self.unreadable[table, column] += lost
        return frame

    def close(self) -> None:
        """Nothing is held open."""

    def _schema(self, file: Path) -> pl.Schema:
        try:
            return pl.Schema(pl.read_parquet_schema(file))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unusable(file) from error

    @staticmethod
    def _unusable(file: Path) -> UnusableInput:
        return UnusableInput(f"{file}: not a readable Parquet file: export the report again")
