"""What ``tracekit bench`` does once it is understood: measure or compare, keep, render."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import typer

from tracekit.commands import options, output
from tracekit.errors import WrongUsage

if TYPE_CHECKING:
    from tracekit.bench.cells import Plan
    from tracekit.bench.generation import Request
    from tracekit.kept_benches import BenchAnswer
    from tracekit.report.document import Document

A = TypeVar("A", bound="BenchAnswer")


class Wanted(NamedTuple):
    """Where an answer goes."""

    form: options.Format
    path: Path | None
    db: Path | None


def time_operation(
    plan: "Plan", cache_basis: str, bandwidth: float | None, wanted: Wanted, figure: Path | None, *, profile: bool
) -> None:
    """Time an operation, under nsys too where asked, and draw it where asked."""
    from tracekit.bench.answer import benchmark
    from tracekit.report.svg import bench_figure
    from tracekit.report.views.bench import document

    with output.progress("timing"):
        answer = benchmark(plan, cache_basis, bandwidth * 1e9 if bandwidth else None)
    if profile:
        from tracekit.bench.in_trace import with_trace
        from tracekit.commands.bench_profile import recorded
        from tracekit.trace.source import open_trace

        with (
            output.progress("timing once more under nsys"),
            recorded(sys.argv[2:]) as export,
            open_trace(export, cached=False) as trace,
        ):
            answer = with_trace(answer, trace)
    if figure:
        output.put(figure, bench_figure(answer))
    _conclude(answer, document, wanted)


def time_model(request: "Request", own_arms: Sequence[str], processes: int, wanted: Wanted) -> None:
    """Time a model over arms."""
    from tracekit.bench.speeds import speed_arms, speeds
    from tracekit.report.views.bench_model import document

    with output.progress("timing the model"):
        answer = speeds(request, speed_arms(own_arms), processes)
    _conclude(answer, document, wanted)


def compare_results(old: str, new: str, wanted: Wanted) -> None:
    """Set two kept results against each other. Raises WrongUsage where they are of two kinds."""
    from tracekit.bench.compare import compare
    from tracekit.kept_benches import read_bench
    from tracekit.report.views.bench_compare import document

    before, after = read_bench(old, wanted.db), read_bench(new, wanted.db)
    if type(before) is not type(after):
        raise WrongUsage(f"{old} and {new}: one is of an operation, the other of a model: nothing to compare")
    output.write_answer(compare(before, after, old, new), document, wanted.form, wanted.path)


def _conclude(answer: A, view: "Callable[[A], Document]", wanted: Wanted) -> None:
    from tracekit.kept_benches import keep_bench

    kept = keep_bench(answer, wanted.db)
    output.write_answer(answer, view, wanted.form, wanted.path)
    if kept.trouble:
        typer.echo(f"tracekit: warning: {kept.trouble}", err=True)
    elif wanted.form is options.Format.table and wanted.path is None:
        typer.echo(f"\nkept as result {kept.number}: tracekit bench --compare {kept.number} NEW")
