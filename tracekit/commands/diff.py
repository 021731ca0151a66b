"""``tracekit diff``."""

from contextlib import ExitStack
from typing import Annotated

import typer

from tracekit.analysis.gate import check_gate
from tracekit.analysis.results import Diff
from tracekit.commands import options, output
from tracekit.commands.remembering import remembered
from tracekit.commands.selecting import checked_pattern
from tracekit.errors import GATE_TRIPPED, WrongUsage
from tracekit.report.views.diff import document

MOST_ARMS = 26
"""Arms are called by letters."""


def diff(
    traces: Annotated[
        list[str],
        typer.Argument(help="Two or more traces of the same work, each launched another way.", metavar="A B [C...]"),
    ],
    phase: options.PhasesOption = None,
    warm_up: Annotated[int, typer.Option(help="Instances of a repeated phase left out at its beginning.", min=0)] = 1,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 when a phase is 'slower>5%', 'faster>5%' or 'undecided'. May be repeated.",
            metavar="CONDITION",
        ),
    ] = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """Compare runs of the same work: which way of launching wins each phase, by how much, and why.

    Every trace is compared with the first. Which one used CUDA graphs is worked out from the traces.
    """
    output.check_output(path, force, traces)
    if len(traces) < 2:
        raise WrongUsage("diff needs two or more traces: tracekit diff GRAPHS-ON.sqlite GRAPHS-OFF.sqlite")
    if len(traces) > MOST_ARMS:
        raise WrongUsage(f"diff compares at most {MOST_ARMS} traces, {len(traces)} are given: compare fewer at a time")
    pattern = checked_pattern(phase, "--phase")
    gate = [check_gate(condition) for condition in fail_on or []]

    def compute() -> Diff:
        from tracekit.analysis.diff import compare
        from tracekit.trace.source import open_trace

        with ExitStack() as stack:
            opened = [stack.enter_context(open_trace(each, cached=not no_cache)) for each in traces]
            return compare(opened, pattern, warm_up, gate)

    with output.progress(f"comparing {', '.join(traces)}"):
        answer = remembered(Diff, (pattern, warm_up, gate), traces, compute, cached=not no_cache)
    output.write_answer(answer, document, form, path)
    if answer.gate:
        typer.echo(f"tracekit: gate tripped by {answer.gate}", err=True)
        raise typer.Exit(GATE_TRIPPED)
