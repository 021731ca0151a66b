"""Moments of a run: kernel instances of one moment met the same state of the machine and are not independent."""

import polars as pl

TIME_BLOCKS = 20
"""Moments that a trace's time is divided into where no repeated phase divides it."""


def moments(rows: pl.DataFrame, repeated: pl.Series) -> pl.Series:
    """The moment of each kernel instance: the phase instance it belongs to, if that is among ``repeated``.

    Any other belongs to a block of the trace's time, all of which are numbered below 0. ``rows`` have ``instance``.
    """
    in_phase = rows["instance"].is_in(repeated.implode()).fill_null(False)
    of_phase = rows["instance"].cast(pl.Int64)
    if in_phase.all():
        return of_phase.rename("moment")
    return (time_blocks(rows) - TIME_BLOCKS - 1).zip_with(~in_phase, of_phase).rename("moment")


def time_blocks(rows: pl.DataFrame) -> pl.Series:
    """The twentieth of all rows' time, from 0, in which each kernel instance started; a graph launch is of one."""
    if not rows["graph_node"].count():
        return _twentieths(rows["start"], rows)
    launched = pl.col("start").min().over("process", "correlation")
    begun = pl.when(pl.col("graph_node").is_not_null()).then(launched).otherwise("start")
    return _twentieths(rows.select(begun).to_series(), rows)


def of_time(rows: pl.DataFrame) -> pl.Series:
    """The twentieth of all rows' time, from 0, in which each started."""
    return _twentieths(rows["start"], rows)


def _twentieths(begun: pl.Series, rows: pl.DataFrame) -> pl.Series:
    if rows.is_empty():
        return pl.Series("moment", [], pl.Int64)
    first, last = rows.select(pl.col("start").min(), pl.col("end").max()).row(0)
    blocks: pl.Series = (begun - first) * TIME_BLOCKS // max(last - first, 1)
    return blocks.rename("moment")
