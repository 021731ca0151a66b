"""Kernel keys: a number for each combination of names and launch configuration."""

import polars as pl

from tracekit.numbering import Numbers, numbered
from tracekit.trace import schema


def number_keys(rows: pl.DataFrame, strings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace the name and launch columns of kernel rows by ``key``.

    ``strings`` has columns ``id``, ``value``. Returns the rows and the keys (schema.KERNEL_KEYS), numbered
    in the order of their names and shapes, so that neither the order of rows nor of string ids matters.
    """
    number, names = _number_names(rows, strings)
    keys = numbered([number, *(rows[column] for column in schema.LAUNCH_SHAPE)])
    first = keys.first()
    table = pl.concat(
        [names[number.gather(first)], rows.select(schema.LAUNCH_SHAPE)[first]], how="horizontal"
    ).with_columns(key=pl.int_range(keys.count, dtype=pl.UInt32))
    kept = rows.drop(*schema.NAME_COLUMNS, *schema.LAUNCH_SHAPE)
    return kept.with_columns(key=_positions(keys)), table.select(list(schema.KERNEL_KEYS)).cast(schema.KERNEL_KEYS)


def _number_names(rows: pl.DataFrame, strings: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """Number the different names of the rows in their order, and tell what each number's names are."""
    ids = numbered([rows[column] for column in schema.NAME_COLUMNS])
    names = rows.select(schema.NAME_COLUMNS)[ids.first()]
    used = pl.concat([names[column] for column in schema.NAME_COLUMNS]).unique()
    texts = strings.filter(pl.col("id").is_in(used.implode()))
    names = (
        names.with_columns(pl.all().replace_strict(texts["id"], texts["value"], default=None, return_dtype=pl.String))
        .select(
            mangled_name="mangledName",
            name=pl.coalesce("demangledName", "mangledName", "shortName", pl.lit("(unnamed)")),
            short_name="shortName",
        )
        .with_columns(short_name=pl.coalesce("short_name", "name"))
    )
    order = numbered([names[column].rank("dense") for column in names.columns])
    return pl.Series(order.of_rows).gather(_positions(ids)), names[order.first()]


def _positions(numbers: Numbers) -> pl.Series:
    return pl.Series(numbers.of_rows, dtype=pl.UInt32)
