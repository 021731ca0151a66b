"""Kernel keys: a number for each combination of names and launch configuration."""

import numpy as np
import polars as pl

from tracekit.intervals import Ints, distinct
from tracekit.trace import schema

_SOURCE = [*schema.NAME_COLUMNS, *schema.LAUNCH_SHAPE]
_ORDER = ["mangled_name", "name", "short_name", *schema.LAUNCH_SHAPE]


def number_keys(rows: pl.DataFrame, strings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the name and launch columns of kernel rows by ``key``.

    ``strings`` has columns ``id``, ``value``. Returns the rows and the keys (schema.KERNEL_KEYS), numbered
    in the order of their names and shapes, so that neither the order of rows nor of string ids matters.
    """
    combinations, position = _distinct(rows)
    used = pl.concat([combinations[column] for column in schema.NAME_COLUMNS]).unique()
    texts = strings.filter(pl.col("id").is_in(used.implode()))
    keys = (
        combinations.with_row_index("_position")
        .with_columns(
            pl.col(column).replace_strict(texts["id"], texts["value"], default=None, return_dtype=pl.String)
            for column in schema.NAME_COLUMNS
        )
        .rename({"mangledName": "mangled_name"})
        .with_columns(
            name=pl.coalesce("demangledName", "mangled_name", "shortName", pl.lit("(unnamed)")),
        )
        .with_columns(short_name=pl.coalesce("shortName", "name"))
        .sort(_ORDER, nulls_last=True)
        .with_columns(key=pl.struct(_ORDER).rle_id())
    )
    rows = rows.drop(_SOURCE).with_columns(key=keys.sort("_position")["key"].gather(position))
    keys = keys.unique("key", keep="first", maintain_order=True)
    return rows, keys.select(list(schema.KERNEL_KEYS)).cast(schema.KERNEL_KEYS)


def _distinct(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The distinct combinations, and for each row the position of its own.

    The columns are packed into one number a row, which is made small again whenever it would grow too large. Columns
    that never vary tell no rows apart, and most launch dimensions never vary; nor do those that the others determine,
    as one name of a kernel does its other names.
    """
    of_column = pl.col(_SOURCE)
    bounds = rows.select(
        of_column.min().name.suffix("_min"), of_column.max().name.suffix("_max"), of_column.null_count()
    ).row(0, named=True)
    code, room, dense = np.zeros(rows.height, np.int64), 1, False
    for column in ("demangledName", *schema.LAUNCH_SHAPE, "mangledName", "shortName"):
        least, most = bounds[f"{column}_min"], bounds[f"{column}_max"]
        if least is None or (least == most and not bounds[column]):
            continue
        values = rows[column].fill_null(least).to_numpy()
        values, size = _numbered(values) if most - least >= _ROOM else (values - least, most - least + 1)
        if bounds[column]:
            # Null is a value of its own.
            values, size = np.where(rows[column].is_null(), 0, values + 1), size + 1
        if room * size > _ROOM * _ROOM and not dense:
            code, room = _numbered(code)
            dense = True
        if dense and np.array_equal(values[_example(code, room)][code], values):
            continue
        code *= size
        code += values
        room *= size
        dense = False
    if not dense:
        code, room = _numbered(code)
    example = _example(code, room)
    return rows.select(_SOURCE)[example], pl.Series(code, dtype=pl.UInt32)


def _example(code: Ints, room: int) -> Ints:
    """A row of each code."""
    example = np.empty(room, np.int64)
    example[code] = np.arange(code.size)
    return example


_ROOM = 1 << 31
"""Two numbers below this make one of 64 bits."""


def _numbered(values: Ints) -> tuple[Ints, int]:
    """The rank of each value among the different ones, and how many those are."""
    different = distinct(values)
    return np.searchsorted(different, values), different.size
