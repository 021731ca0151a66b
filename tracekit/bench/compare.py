"""Two kept results against each other, time by time. Pure: answers in, answer out."""

from collections.abc import Iterator

from tracekit import __version__
from tracekit.analysis.results import Bench, BenchCompare, BenchModel, Status
from tracekit.analysis.results.bench import BenchRow, Change, SpeedRow
from tracekit.analysis.statistics.ratios import Interval, status
from tracekit.bench.contrasts import Ratio, bounds, ratio_of
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
    return Change(
        name,
        old.time_ns if old else None,
        new.time_ns if new else None,
        ratio.value if ratio else None,
        bounds(ratio) if ratio else None,
        _status(ratio),
    )


def _status(ratio: Ratio | None) -> Status:
    """Same within MARGIN, slower or faster beyond it, interval included."""
    ends = bounds(ratio) if ratio else None
    return status(Interval(ratio.value, *ends) if ratio and ends else None, discovered=True)


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
