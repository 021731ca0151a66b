"""From samples to a row with its marks. Pure: samples in, rows out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from tracekit.analysis.results.bench import BenchRow, Cell, Mark
from tracekit.analysis.statistics.steadiness import time_in_outliers, unsteady
from tracekit.analysis.statistics.thresholds import OUTLIER_SHARE
from tracekit.bench.contrasts import decided, ratio_of
from tracekit.bench.fit import Floats, median_interval, needed_length

FLOOR_SHARE = 0.5
"""From this share of a call's time on, the synchronisation is what was measured."""

HOST_SHARE = 2 / 3
"""From this share of an operation's time on that building it takes, the host may be what was measured."""


@dataclass(frozen=True)
class Measured:
    """The samples of one cell in the order of rounds (ns), and what is known of its loop.

    ``marks`` are those found while it was prepared; a cell that is ``merged`` or ``unbounded`` has no samples.
    """

    cell: Cell
    time_ns: Floats = field(default_factory=lambda: np.empty(0))
    overhead_ns: Floats = field(default_factory=lambda: np.empty(0))
    build_ns: Floats = field(default_factory=lambda: np.empty(0))
    bytes: int | None = None
    length: int | None = None
    marks: Sequence[Mark] = ()


def rows_of(measured: Sequence[Measured], bandwidth: float, floor_ns: float) -> list[BenchRow]:
    """One row a cell; ``bandwidth`` in bytes/s, ``floor_ns`` the time of waiting for an operation of no size."""
    rows = [_row(each, bandwidth, floor_ns) for each in measured]
    first: dict[Cell, BenchRow] = {}
    for row in sorted(rows, key=lambda row: row.m):
        first.setdefault(_series(row), row)
    rows = [msgspec.structs.replace(row, of_first=_over(row, first[_series(row)])) for row in rows]
    chains = {_like(row, "chain"): row for row in rows if row.method == "chain"}
    return [_marked_hidden(row, chains.get(_like(row, "chain"))) for row in rows]


def _row(measured: Measured, bandwidth: float, floor_ns: float) -> BenchRow:
    times = measured.time_ns
    time = float(np.median(times)) if times.size else None
    if time is not None and time <= 0:
        time = None
    interval = median_interval(times) if time is not None else None
    overhead = float(np.median(measured.overhead_ns)) if times.size else None
    build = float(np.median(measured.build_ns)) if times.size else None
    loop = measured.cell.method != "per-call"
    row = BenchRow(
        **msgspec.structs.asdict(measured.cell),
        n=times.size,
        time_ns=time,
        ci95=interval,
        of_first=None,
        bytes=measured.bytes,
        bytes_per_s=measured.bytes / time * 1e9 if measured.bytes and time else None,
        roofline_share=measured.bytes / time * 1e9 / bandwidth if measured.bytes and time else None,
        build_ns=build,
        overhead_ns=overhead if loop else None,
        length=measured.length,
        needed_length=_needed(measured.overhead_ns, time) if loop and time else None,
        marks=[],
        unsteady=unsteady(times) if times.size else None,
    )
    return msgspec.structs.replace(
        row, marks=[*measured.marks, *_marks(row, bandwidth, floor_ns), *_scatter(row, times)]
    )


def _needed(overheads: Floats, time: float) -> int | None:
    """None where the overhead is not told apart from noise about nothing."""
    bounds = median_interval(overheads)
    return None if bounds is None or bounds[0] < 0 else needed_length(float(np.median(overheads)), time)


def _marks(row: BenchRow, bandwidth: float, floor_ns: float) -> list[Mark]:
    """What one row shows by itself."""
    marks: list[Mark] = []
    if row.time_ns is None:
        # The long loop took no longer than the short one.
        return ["unsettled"] if row.n else marks
    slowest = row.ci95[1] if row.ci95 else row.time_ns
    if row.bytes and row.bytes / slowest * 1e9 > bandwidth:
        marks.append("above-roofline")
    if row.method == "per-call" and floor_ns >= FLOOR_SHARE * row.time_ns:
        marks.append("at-floor")
    if row.build_ns is not None and row.build_ns >= HOST_SHARE * row.time_ns:
        marks.append("host-bound")
    return marks


def _scatter(row: BenchRow, times: Floats) -> Iterator[Mark]:
    """What the order and the spread of the times show."""
    if row.unsteady:
        yield "unsteady"
    if (time_in_outliers(times) or 0) > OUTLIER_SHARE:
        yield "outliers"


def _marked_hidden(row: BenchRow, chain: BenchRow | None) -> BenchRow:
    """Batching hides time where the batched loop is decidedly quicker than the chain."""
    if row.method != "batched" or chain is None:
        return row
    ratio = ratio_of(chain, row)
    if ratio is None or ratio.value > 1 or not decided(ratio):
        return row
    return msgspec.structs.replace(row, marks=[*row.marks, "batching-hides"])


def _over(row: BenchRow, first: BenchRow) -> float | None:
    return row.time_ns / first.time_ns if row.time_ns and first.time_ns else None


def _series(row: BenchRow) -> Cell:
    return Cell(row.candidate, 0, row.block, row.weights, row.method)


def _like(row: BenchRow, method: str) -> Cell:
    return Cell(row.candidate, row.m, row.block, row.weights, method)  # type: ignore[arg-type]
