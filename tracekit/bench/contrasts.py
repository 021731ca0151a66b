"""What rows say against one another: method against method, cold against hot, candidate against candidate, M by M.

Pure: rows in, results out. A row's interval carries into every ratio; a row without one decides nothing.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from tracekit.analysis.results import Number
from tracekit.analysis.results.bench import BenchRow, Cell, Contrast, Crossover, Flip, SizeStep
from tracekit.analysis.statistics.thresholds import MARGIN

STEP = 1.1
"""Ratio from one M to the next from which a rise is a step; a fall is one beyond MARGIN."""

PROPORTIONAL = 0.9
"""A rise of at least this share of the rise of M and at most its inverse is work in proportion, not a step."""

T = TypeVar("T")


class Ratio(NamedTuple):
    """b / a with the interval that those of a and b carry into it; None where one of them has none."""

    value: float
    low: float | None
    high: float | None


class Timed(Protocol):
    """A median time (ns) with its 95 % interval."""

    @property
    def time_ns(self) -> float | None: ...  # noqa: D102

    @property
    def ci95(self) -> tuple[Number, Number] | None: ...  # noqa: D102


def ratio_of(a: Timed, b: Timed) -> Ratio | None:
    """Times of b over a. Distances to the interval's ends add up as squares, on a logarithmic scale.

    That is propagation of independent errors; rounds that both went through make the true interval narrower.
    None where one has no time.
    """
    if not a.time_ns or not b.time_ns:
        return None
    value = b.time_ns / a.time_ns
    if a.ci95 is None or b.ci95 is None or a.ci95[0] <= 0 or b.ci95[0] <= 0:
        return Ratio(value, None, None)
    down = math.hypot(math.log(b.time_ns / b.ci95[0]), math.log(a.ci95[1] / a.time_ns))
    up = math.hypot(math.log(b.ci95[1] / b.time_ns), math.log(a.time_ns / a.ci95[0]))
    return Ratio(value, value * math.exp(-down), value * math.exp(up))


def decided(ratio: Ratio) -> bool:
    """Whether the interval does not hold 1."""
    return ratio.low is not None and ratio.high is not None and (ratio.low > 1 or ratio.high < 1)


def contrasts(rows: Sequence[BenchRow]) -> list[Contrast]:
    """Batched and per-call against chain, cold against hot, the block against the bare call, the other candidate
    against the first."""
    ground = {"method": "chain", "weights": "hot", "block": "bare", "candidate": rows[0].candidate if rows else ""}
    found = []
    for kind, value in ground.items():
        for group in _alike_but(rows, kind):
            first = next((row for row in group if getattr(row, kind) == value), None)
            others = [row for row in group if row is not first] if first else []
            found += [_contrast(kind, first, row, ratio) for row in others if first and (ratio := ratio_of(first, row))]
    return found


def flips(rows: Sequence[BenchRow]) -> list[Flip]:
    """Comparisons that the chain decides one way and another method the other way."""
    pairs: list[tuple[BenchRow, BenchRow]] = []
    for group in _alike_but(rows, "candidate"):
        pairs += [(group[0], row) for row in group[1:]]
    sizes = [pair for group in _sweeps(rows) for pair in pairwise(group)]
    return [*_flips("candidates", pairs), *_flips("sizes", sizes)]


def _flips(between: str, pairs: Sequence[tuple[BenchRow, BenchRow]]) -> Iterator[Flip]:
    for group in _groups(pairs, lambda pair: tuple(_without(row, "method") for row in pair)):
        of = {a.method: (a, b, ratio) for a, b in group if (ratio := ratio_of(a, b)) and decided(ratio)}
        if "chain" not in of:
            continue
        a, b, chained = of.pop("chain")
        for method, (_, _, other) in of.items():
            if (chained.value > 1) != (other.value > 1):
                yield Flip(between, _cell(a), _cell(b), chained.value, method, other.value)  # type: ignore[arg-type]


def steps(rows: Sequence[BenchRow]) -> list[SizeStep]:
    """Jumps over M: a rise that is neither small nor in proportion to M, or a fall."""
    found = []
    for group in _sweeps(rows):
        for a, b in pairwise(group):
            ratio = ratio_of(a, b)
            if ratio and decided(ratio) and _jumps(ratio.value, b.m / a.m):
                found.append(SizeStep(_cell(a), _cell(b), ratio.value, bounds(ratio)))
    return found


def _jumps(ratio: float, growth: float) -> bool:
    if ratio < 1:
        return ratio < 1 - MARGIN
    in_proportion = PROPORTIONAL <= ratio / growth <= 1 / PROPORTIONAL
    return ratio > STEP and not in_proportion


def crossovers(rows: Sequence[BenchRow]) -> list[Crossover]:
    """Where the ranking of two candidates changes with M, for each method by itself.

    A change counts where the candidates differ decidedly on both sides of it.
    """
    found: list[Crossover] = []
    for group in _groups(rows, lambda row: (row.block, row.weights, row.method)):
        names = list(dict.fromkeys(row.candidate for row in group))
        for other in names[1:]:
            found += _crossings(_ratios(group, names[0], other), group[0], names[0], other)
    return found


def _ratios(rows: Sequence[BenchRow], a: str, b: str) -> list[tuple[int, Ratio]]:
    """Times of b over a by M."""
    of = {(row.candidate, row.m): row for row in rows}
    sizes = sorted({row.m for row in rows})
    both = [(m, of[a, m], of[b, m]) for m in sizes if (a, m) in of and (b, m) in of]
    return [(m, ratio) for m, one, other in both if (ratio := ratio_of(one, other))]


def _crossings(ratios: list[tuple[int, Ratio]], like: BenchRow, a: str, b: str) -> Iterator[Crossover]:
    sure = [index for index, (_, ratio) in enumerate(ratios) if decided(ratio)]
    for left, right in pairwise(sure):
        before, after = ratios[left][1].value, ratios[right][1].value
        if (before > 1) == (after > 1):
            continue
        between = ratios[left : right + 1]
        ends = [_crossing([(m, getattr(ratio, end)) for m, ratio in between]) for end in ("low", "high")]
        known = sorted(end for end in ends if end is not None)
        yield Crossover(
            like.block,
            like.weights,
            like.method,
            a if before > 1 else b,
            b if before > 1 else a,
            _crossing([(m, ratio.value) for m, ratio in between]) or between[0][0],
            known[0] if len(known) == 2 else None,
            known[1] if len(known) == 2 else None,
        )


def _crossing(points: list[tuple[int, float | None]]) -> float | None:
    """First M at which the ratio is 1, both on logarithmic scales."""
    for (m, value), (next_m, next_value) in pairwise(points):
        if value is None or next_value is None:
            return None
        start, end = math.log(value), math.log(next_value)
        if start == 0:
            return float(m)
        if start * end <= 0:
            return float(m * (next_m / m) ** (start / (start - end)))
    return None


def _sweeps(rows: Sequence[BenchRow]) -> list[list[BenchRow]]:
    """Rows that differ in M only, by M."""
    return [sorted(group, key=lambda row: row.m) for group in _alike_but(rows, "m")]


def _alike_but(rows: Sequence[BenchRow], field: str) -> list[list[BenchRow]]:
    return _groups(rows, lambda row: _without(row, field))


def _groups(items: Sequence[T], key: Callable[[T], object]) -> list[list[T]]:
    groups: dict[object, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _without(row: BenchRow, field: str) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in Cell.__struct_fields__ if name != field)


def _cell(row: BenchRow) -> Cell:
    return Cell(*(getattr(row, name) for name in Cell.__struct_fields__))


def bounds(ratio: Ratio) -> tuple[float, float] | None:
    """The ends of its interval."""
    return None if ratio.low is None or ratio.high is None else (ratio.low, ratio.high)


def _contrast(kind: str, a: BenchRow, b: BenchRow, ratio: Ratio) -> Contrast:
    return Contrast(kind, _cell(a), _cell(b), ratio.value, bounds(ratio), decided(ratio))  # type: ignore[arg-type]
