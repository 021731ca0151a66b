"""Two kept results against each other, time by time. Pure: answers in, answer out."""

from collections.abc import Iterator
from typing import Literal

from tracekit import __version__
from tracekit.analysis.results import Bench, BenchCompare, BenchModel
from tracekit.analysis.results.bench import BenchRow, Change, SpeedRow
from tracekit.analysis.statistics.thresholds import MARGIN
from tracekit.bench.contrasts import Ratio, ratio_of
from tracekit.bench.naming import cell_name

Row = BenchRow | SpeedRow
Compared = Bench | BenchModel


def compare(old: Compared, new: Compared, old_name: str, new_name: str) -> BenchCompare:
    """Every time of either; ratios are new / old."""
    before, after = _rows(old), _rows(new)
    names = dict.fromkeys([*before, *after])
    return BenchCompare(
        tracekit=__version__,
        command="benchcompare",
        traces=[],
        warnings=[],
        old=old_name,
        new=new_name,
        differences=list(_differences(old, new)),
        rows=[_change(name, before.get(name), after.get(name)) for name in names],
    )


def _rows(answer: Compared) -> dict[str, Row]:
    if isinstance(answer, Bench):
        return {cell_name(row): row for row in answer.rows}
    return {f"{row.workload} {row.arm}": row for row in answer.rows}


def _change(name: str, old: Row | None, new: Row | None) -> Change:
    ratio = ratio_of(old, new) if old and new else None
    interval = (ratio.low, ratio.high) if ratio and ratio.low is not None and ratio.high is not None else None
    return Change(
        name,
        old.time_ns if old else None,
        new.time_ns if new else None,
        ratio.value if ratio else None,
        interval,
        _status(ratio),
    )


def _status(ratio: Ratio | None) -> Literal["slower", "faster", "same", "undecided"]:
    """Same within MARGIN, slower or faster beyond it, interval included."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return "undecided"
    if ratio.low > 1 + MARGIN:
        return "slower"
    if ratio.high < 1 - MARGIN:
        return "faster"
    return "same" if ratio.low >= 1 - MARGIN and ratio.high <= 1 + MARGIN else "undecided"


def _differences(old: Compared, new: Compared) -> Iterator[str]:
    """What else differs, so that a change of time may have another cause."""
    before, after = _facts(old), _facts(new)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'none')} | {after.get(name, 'none')}"


def _facts(answer: Compared) -> dict[str, str]:
    if isinstance(answer, Bench):
        facts = {"operation": answer.operation, "link": answer.link, "device": answer.surroundings.device}
        facts |= {name: str(value) for name, value in answer.shape.items()}
        return facts | answer.surroundings.versions
    return {"phase": answer.phase, "model": answer.model, "device": answer.device} | answer.versions
