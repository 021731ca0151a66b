"""Numbers for the different rows of integer columns, in the order of their values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tracekit.intervals import Ints

_TABLE = 1 << 22
"""Whole numbers below this are ranked by a table of those that occur, others by sorting."""

_ROOM = 1 << 31
"""Two numbers below this make one of 64 bits."""


@dataclass(frozen=True)
class Numbers:
    """The number of each row, from 0, and ``count`` different ones."""

    of_rows: Ints
    count: int

    def first(self) -> Ints:
        """The position of the first row of each number."""
        first = np.empty(self.count, np.int64)
        # Of several values put in one place the last one stays.
        first[self.of_rows[::-1]] = np.arange(self.of_rows.size)[::-1]
        return first


def numbered(columns: Sequence[pl.Series]) -> Numbers:
    """Number rows alike that are equal in every column; rows are ordered column by column, null last.

    The columns are packed into one number a row, which is made small again before it would grow too large.
    """
    code, room = np.zeros(columns[0].len(), np.int64), 1
    for column in columns:
        least, most = column.min(), column.max()
        if least is None or (least == most and not column.null_count()):
            continue
        assert isinstance(least, int) and isinstance(most, int)
        values, size = _from_zero(column, least, most)
        if room * size > _TABLE:
            values, size = _ranked_by_table(values, size)
            code, room = _ranked_by_table(code, room)
        if room * size > _ROOM * _ROOM:
            code, room = _ranked(code)
        code = code * size + values
        room *= size
    return Numbers(*(_ranked_by_table(code, room) if room <= _TABLE else _ranked(code)))


def _from_zero(column: pl.Series, least: int, most: int) -> tuple[Ints, int]:
    """The column's values in their order as numbers from 0, null last, and the room they need."""
    known = column.fill_null(least).to_numpy()
    if most - least >= _ROOM:
        values, size = _ranked(known)
    else:
        values, size = np.subtract(known, least, dtype=np.int64), most - least + 1
    if column.null_count():
        return np.where(column.is_null(), size, values), size + 1
    return values, size


def _ranked_by_table(values: Ints, room: int) -> tuple[Ints, int]:
    """The rank of each value among the different ones, as far as a table of ``room`` numbers is worth it."""
    if room > _TABLE:
        return values, room
    occurs = np.zeros(room, np.bool_)
    occurs[values] = True
    rank = np.cumsum(occurs)
    return rank[values] - 1, int(rank[-1])


def _ranked(values: Ints) -> tuple[Ints, int]:
    """The same by sorting."""
    order = np.argsort(values)
    ordered = values[order]
    new = np.zeros(values.size, np.int64)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:], casting="unsafe")
    new = np.cumsum(new)
    ranks = np.empty(values.size, np.int64)
    ranks[order] = new
    return ranks, int(new[-1]) + 1
