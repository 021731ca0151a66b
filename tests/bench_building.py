"""Rows of a benchmark with planted times, and the answer that holds them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tracekit.analysis.results import Bench
from tracekit.analysis.results.bench import BenchRow, Block, Method, Residency, Surroundings
from tracekit.bench.contrasts import contrasts, crossovers, flips, steps
from tracekit.report import table
from tracekit.report.views.bench import document

EXACT = 0.0
"""Figures published without their spread are taken as exact."""


def row(
    time_ms: float | None,
    *,
    m: int = 1,
    method: Method = "chain",
    candidate: str = "stock",
    spread: float | None = EXACT,
    weights: Residency = "hot",
    block: Block = "bare",
    **others: Any,  # noqa: ANN401
) -> BenchRow:
    """A time in ms with an interval of ``spread`` to both sides, as a share; None for no interval."""
    time = None if time_ms is None else time_ms * 1e6
    bounds = None if time is None or spread is None else (time * (1 - spread), time * (1 + spread))
    plain = BenchRow(
        candidate, m, block, weights, method, n=15, time_ns=time, ci95=bounds, of_first=None, bytes=None,
        bytes_per_s=None, roofline_share=None, build_ns=None, overhead_ns=None, length=None, needed_length=None,
        marks=[], unsteady=None,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **others)


def answer(rows: Sequence[BenchRow]) -> Bench:
    """An answer with these rows and what they say of one another."""
    return Bench(
        tracekit="0",
        command="bench",
        traces=[],
        warnings=[],
        operation=" against ".join(dict.fromkeys(each.candidate for each in rows)),
        shape={"k": 5120, "n": 17408},
        link="pair",
        surroundings=Surroundings("planted", {"mlx": "0"}, 1 << 20, "given", 8e11, "given", 1e5, [], [], []),
        rows=list(rows),
        contrasts=contrasts(rows),
        flips=flips(rows),
        steps=steps(rows),
        crossovers=crossovers(rows),
        checks=[],
    )


def told(rows: Sequence[BenchRow]) -> str:
    """What a person is shown of these rows."""
    return table.render(document(answer(rows)))
