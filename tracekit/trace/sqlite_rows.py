"""Rows of a SQLite cursor as a polars frame of declared types, whatever types the values have."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

ROWS_A_BATCH = 1 << 16

_INT64_END = 2.0**63


def _integer(value: object) -> int | None:
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and -_INT64_END <= value < _INT64_END:
        return int(value)
    return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) else None


_CONVERSIONS: dict[pl.DataType, Callable[[object], object]] = {
    pl.Int64(): _integer,
    pl.Float64(): _number,
    pl.String(): _text,
}


def frame_of(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> tuple[pl.DataFrame, Counter[str]]:
    """All rows of ``cursor`` as a frame, and the number of unreadable values by column.

    ``schema`` names the cursor's columns in order; its types are Int64, Float64 and String.
    A value that is not of its column's type becomes null and is counted: for Int64 anything but an
    integer or an integral REAL within 64 bits, for Float64 anything but a number, for String a BLOB.
    Numbers in a String column become their text. Errors of the cursor pass through.
    """
    unreadable: Counter[str] = Counter()
    batches = [pl.DataFrame(schema=schema)]
    while rows := cursor.fetchmany(ROWS_A_BATCH):
        batch = []
        for (name, dtype), values in zip(schema.items(), zip(*rows, strict=True), strict=True):
            column, count = _column(name, dtype, values)
            batch.append(column)
            if count:
                unreadable[name] += count
        batches.append(pl.DataFrame(batch))
    return pl.concat(batches), unreadable


def _column(name: str, dtype: pl.DataType, values: Sequence[Any]) -> tuple[pl.Series, int]:
    try:
        return pl.Series(name, values, dtype=dtype), 0
    except TypeError:
        column = pl.Series(name, [_CONVERSIONS[dtype](value) for value in values], dtype=dtype)
        return column, column.null_count() - sum(value is None for value in values)
