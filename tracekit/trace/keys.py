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
    distinct, position = _distinct(rows)
    used = pl.concat([distinct[column] for column in schema.NAME_COLUMNS]).unique()
    texts = strings.filter(pl.col("id").is_in(used.implode()))
    keys = (
        distinct.with_row_index("_position")
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

    Columns that never vary tell no rows apart, and most launch dimensions never vary. The others are packed
    into one number as long as their ranges allow: grouping by it is several times faster.
    """
    if rows.is_empty():
        return rows.select(_SOURCE), pl.Series([], dtype=pl.UInt32)
    code, room = pl.lit(0, pl.Int64), 1
    numbered = rows.select(_SOURCE)
    loose: list[str] = []
    of_column = pl.col(_SOURCE)
    bounds = numbered.select(
        of_column.min().name.suffix("_min"), of_column.max().name.suffix("_max"), of_column.null_count()
    ).row(0, named=True)
    for column in _SOURCE:
        least, most = bounds[f"{column}_min"], bounds[f"{column}_max"]
        if least is None or (least == most and not bounds[column]):
            continue
        size = most - least + 2
        if room * size >= 1 << 62:
            loose.append(column)
            continue
        code = code * size + (pl.col(column) - (least - 1)).fill_null(0)
        room *= size
    combination = ["_code", *loose]
    numbered = numbered.with_columns(_code=code).select(combination)
    first = numbered.with_row_index("_row").group_by(combination).agg(pl.col("_row").first()).sort("_row")
    positions = numbered.join(
        first.with_row_index("_position"), on=combination, how="left", nulls_equal=True, maintain_order="left"
    )["_position"]
    return rows.select(_SOURCE)[first["_row"]], positions
