"""Which NVTX range was open when and where something happened on the host.

Ranges have ``range`` (a number), ``start``, ``end``, ``process`` and ``thread``; moments have ``call`` (ns),
``process`` and ``thread``.
"""

import polars as pl

DEEPEST = 64
"""Levels of nesting looked through."""


def levels(ranges: pl.DataFrame, owner: str) -> pl.DataFrame:
    """Add ``level``: 0 for ranges that no earlier one of their owner still holds, then the same within."""
    rest = ranges.sort("start", "end", "range", descending=[False, True, False])
    found = []
    for level in range(DEEPEST):
        held = pl.col("end").cum_max().shift(1).over(owner)
        rest = rest.with_columns(free=held.is_null() | (pl.col("start") >= held))
        found.append(rest.filter("free").with_columns(level=pl.lit(level)))
        rest = rest.filter(~pl.col("free"))
        if rest.is_empty():
            break
    return pl.concat(found).drop("free")


def range_of_calls(launches: pl.DataFrame, chosen: pl.DataFrame, innermost: bool) -> pl.DataFrame:
    """Add to each launch the ``range`` open on its thread, else (``by_process``) on its process."""
    with_ranges = chosen["thread"].unique()
    has_own = pl.col("thread").is_in(with_ranges.implode())
    own = open_range(launches.filter(has_own), chosen, "thread", innermost)
    others = open_range(launches.filter(~has_own.fill_null(False)), chosen, "process", innermost)
    return pl.concat(
        [
            own.with_columns(by_process=pl.lit(False)),
            others.with_columns(by_process=pl.col("range").is_not_null()),
        ]
    )


def open_range(calls: pl.DataFrame, ranges: pl.DataFrame, owner: str, innermost: bool) -> pl.DataFrame:
    """The range of the same owner open when each call began: start <= call < end. Column ``range``."""
    nested = levels(ranges, owner)
    calls = calls.sort("call").with_columns(range=pl.lit(None, pl.UInt32))
    for (_,), level in sorted(nested.partition_by("level", as_dict=True).items()):
        candidates = level.select(owner, "start", until="end", candidate="range").sort("start")
        calls = calls.join_asof(
            candidates,
            left_on="call",
            right_on="start",
            by=owner,
            strategy="backward",
            check_sortedness=False,
        )
        inside = pl.when(pl.col("call") < pl.col("until")).then("candidate")
        deeper = pl.coalesce(inside, "range") if innermost else pl.coalesce("range", inside)
        calls = calls.with_columns(range=deeper).drop("candidate", "until", "start", strict=False)
    return calls
