"""Time over M as an SVG picture, both axes logarithmic: one line for each way of timing."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from tracekit.analysis.results import Bench
from tracekit.analysis.results.bench import BenchRow
from tracekit.report.document import printable
from tracekit.units import duration

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 230, 40, 50
DASHES = {"chain": "", "batched": "8 4", "per-call": "2 4"}
"""Methods by the stroke of their lines."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#999999", "#000000")
"""Of candidate, weights and block together: Okabe and Ito's palette, which colour-blind people tell apart."""

Line = tuple[str, str, str, str]
"""Candidate, weights, block, method."""


def bench_figure(answer: Bench) -> str:
    """The picture as a document of its own; intervals are vertical bars."""
    rows = [row for row in answer.rows if row.time_ns is not None and row.time_ns > 0]
    lines: dict[Line, list[BenchRow]] = {}
    for row in sorted(rows, key=lambda row: row.m):
        lines.setdefault((row.candidate, row.weights, row.block, row.method), []).append(row)
    kinds = list(dict.fromkeys(line[:3] for line in lines))
    x = _scale([row.m for row in rows], LEFT, WIDTH - RIGHT)
    y = _scale([end for row in rows for end in _ends(row)], HEIGHT - BOTTOM, TOP)
    parts = [*_frame(f"bench of {answer.operation}", rows, x, y)]
    for index, (line, points) in enumerate(lines.items()):
        parts += _line(line, points, COLOURS[kinds.index(line[:3]) % len(COLOURS)], index, x, y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    return "\n".join([f'{head} font-size="12">', *parts, "</svg>"]) + "\n"


class _Scale:
    """A logarithmic axis from pixel to pixel."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self._start + share * (self._end - self._start), 1)


def _scale(values: Sequence[float], start: float, end: float) -> _Scale:
    """With some room at both ends, and more where all values are one."""
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    room = max((high / low) ** 0.05, 1.1)
    return _Scale(low / room, high * room, start, end)


def _ends(row: BenchRow) -> list[float]:
    """The time and its interval's ends, as far as a logarithmic axis has room for them."""
    assert row.time_ns is not None
    return [row.time_ns, *(float(end) for end in row.ci95 or () if end > 0)]


def _frame(title: str, rows: Sequence[BenchRow], x: _Scale, y: _Scale) -> Iterator[str]:
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield _text(LEFT, TOP - 16, title, size=15)
    yield f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#444"/>'
    for m in sorted({row.m for row in rows}):
        yield _text(x(m), HEIGHT - BOTTOM + 18, str(m), anchor="middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "M", anchor="middle")
    for time in _round_times(y.low, y.high) if rows else ():
        yield f'<path d="M{LEFT} {y(time)}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        yield _text(LEFT - 8, y(time) + 4, duration(time), anchor="end")


def _round_times(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten between the two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [times * 10**power for power in powers for times in (1.0, 2.0, 5.0) if low <= times * 10**power <= high]


def _line(line: Line, rows: Sequence[BenchRow], colour: str, index: int, x: _Scale, y: _Scale) -> Iterator[str]:
    candidate, weights, block, method = line
    stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{DASHES[method]}" fill="none"'
    points = " ".join(f"{x(row.m)},{y(row.time_ns)}" for row in rows if row.time_ns)
    yield f'<polyline points="{points}" {stroke}/>'
    for row in rows:
        ends = _ends(row)
        yield f'<path d="M{x(row.m)} {y(min(ends))}V{y(max(ends))}" stroke="{colour}"/>'
        yield f'<circle cx="{x(row.m)}" cy="{y(ends[0])}" r="3" fill="{colour}"/>'
    top = TOP + 18 * index
    yield f'<path d="M{WIDTH - RIGHT + 16} {top}h28" {stroke}/>'
    label = f"{method}, {weights}" + ("" if block == "bare" else f", {block}")
    yield _text(WIDTH - RIGHT + 52, top + 4, f"{candidate}: {label}")


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(printable(words))}</text>'
