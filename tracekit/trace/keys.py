"""Kernel keys: a number for each combination of names and launch configuration."""

import polars as pl

from tracekit.trace import schema

_SOURCE = [*schema.NAME_COLUMNS, *schema.LAUNCH_SHAPE]
_ORDER = ["mangled_name", "name", "short_name", *schema.LAUNCH_SHAPE]


def number_keys(rows: pl.DataFrame, strings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the name and launch columns of kernel rows by ``key``.

    ``strings`` has columns ``id``, ``value``. Returns the rows and the keys (schema.KERNEL_KEYS), numbered
    in the order of their names and shapes, so that neither the order of rows nor of string ids matters.
    """
    distinct = _distinct(rows)
    used = pl.concat([distinct[column] for column in schema.NAME_COLUMNS]).unique()
    texts = strings.filter(pl.col("id").is_in(used.implode()))
    keys = (
        distinct.with_columns(
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
    rows = _join(rows, distinct, keys.sort("_distinct")["key"])
    keys = keys.unique("key", keep="first", maintain_order=True)
    return rows, keys.select(list(schema.KERNEL_KEYS)).cast(schema.KERNEL_KEYS)


def _distinct(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(_SOURCE).unique().with_row_index("_distinct")


def _join(rows: pl.DataFrame, distinct: pl.DataFrame, key: pl.Series) -> pl.DataFrame:
    """Columns that never vary tell no rows apart, and most launch dimensions never vary."""
    bounds = distinct.select(_SOURCE)
    varying = [column for column in _SOURCE if bounds[column].n_unique() > 1]
    named = distinct.select(*varying, key=key)
    if not varying:
        only = pl.lit(named["key"][0] if named.height else 0, pl.UInt32)
        return rows.drop(_SOURCE).with_columns(key=only)
    return rows.join(named, on=varying, how="left", nulls_equal=True).drop(_SOURCE)
