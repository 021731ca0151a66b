"""Which API call launched each piece of GPU work."""

import numpy as np
import polars as pl

from tracekit.numbering import numbered
from tracekit.trace.schema import LAUNCH


def launch_calls(work: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """For each row of GPU work the row of ``calls`` that launched it; null where none is recorded.

    Both have ``process`` and ``correlation``, which work and its call share. Where calls share them too, as the
    runtime's and the driver's for one launch, it is the earliest one.
    """
    every = pl.concat([frame.select(LAUNCH) for frame in (calls, work)])
    numbers = numbered(every.get_columns())
    of_calls, of_work = np.split(numbers.of_rows, [calls.height])
    order = np.argsort(calls["start"].to_numpy())[::-1]
    earliest = np.full(numbers.count, -1, np.int64)
    # Of several values put in one place the last one stays.
    earliest[of_calls[order]] = order
    found = pl.Series(earliest[of_work])
    return found.set((found < 0) | work["process"].is_null() | work["correlation"].is_null(), None)
