"""NVTX rows as closed, named ranges."""

import polars as pl

from tracekit.trace import schema
from tracekit.trace.tables import Export

PUSH_POP, START_END, DOMAIN = 59, 60, 75
"""Event types of NVTX_EVENTS that matter here (ENUM_NSYS_EVENT_TYPE); marks and categories have no length."""


def closed_ranges(export: Export, strings: pl.DataFrame) -> pl.DataFrame:
    """Ranges that were both opened and closed: schema.RANGES, by start.

    A name is the row's own text, else its registered string, else ``(unnamed)``. A domain's name is in
    a row of its own, which is no range; domain ids are counted per process.
    """
    rows = export.read(
        schema.RANGE_TABLE,
        {
            "start": pl.Int64,
            "end": pl.Int64,
            "eventType": pl.Int64,
            "text": pl.String,
            "textId": pl.Int64,
            "globalTid": pl.Int64,
            "domainId": pl.Int64,
        },
    ).with_columns(process=pl.col("globalTid") // schema.PROCESS_UNIT, domainId=pl.col("domainId").fill_null(0))
    rows = rows.join(strings.rename({"value": "_registered"}), left_on="textId", right_on="id", how="left")
    rows = rows.with_columns(name=pl.coalesce("text", "_registered", pl.lit("(unnamed)")))
    domains = (
        rows.filter(pl.col("eventType") == DOMAIN)
        .select("process", "domainId", domain="name")
        .sort(pl.all())
        .unique(["process", "domainId"], keep="first", maintain_order=True)
    )
    kind = pl.col("eventType").fill_null(PUSH_POP)
    return (
        rows.filter(kind.is_in([PUSH_POP, START_END]) & (pl.col("end") >= pl.col("start")))
        .join(domains, on=["process", "domainId"], how="left", nulls_equal=True)
        .select(
            "start", "end", "process", "name", "domain", thread="globalTid",
            nested=kind == PUSH_POP,
        )
        .select(list(schema.RANGES))
        .cast(schema.RANGES)
        .sort(pl.all(), nulls_last=True)
    )  # fmt: skip
