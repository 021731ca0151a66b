"""``tracekit diff``."""

from contextlib import ExitStack
from typing import Annotated

import typer

from tracekit.analysis.gate import check_gate
from tracekit.analysis.results import Diff
from tracekit.commands import options, output
from tracekit.commands.remembering import remembered
from tracekit.commands.selecting import checked_pattern, checked_question
from tracekit.commands.sides import sides_of, with_profiler_cost
from tracekit.errors import GATE_TRIPPED
from tracekit.report.views.diff import document
from tracekit.store import file_diff


def diff(
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two or more traces of the same work, each launched another way; or one run folder.",
            metavar="[A B [C...] | RUN]",
            show_default=False,
        ),
    ] = None,
    a: Annotated[
        list[str] | None, typer.Option("--a", help="A trace of side a; repeated for its blocks.", metavar="TRACE")
    ] = None,
    b: Annotated[
        list[str] | None, typer.Option("--b", help="A trace of side b; repeated for its blocks.", metavar="TRACE")
    ] = None,
    by: options.ByOption = options.By.launch,
    phase: options.PhasesOption = None,
    warm_up: Annotated[int, typer.Option(help="Instances of a repeated phase left out at its beginning.", min=0)] = 1,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 1 when a phase is 'slower>5%', 'faster>5%' or 'undecided'. May be repeated.",
            metavar="CONDITION",
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Predict each phase of graphs with its kernels one after another ('serial'), with those whose base "
            "name matches beside no other ('no-overlap-of PATTERN'), or bound by the order of nodes alone "
            "('critical-path'). May be repeated.",
            metavar="QUESTION",
        ),
    ] = None,
    dot: options.DotOption = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """Compare runs of the same work: which way of launching wins each phase, by how much, and why.

    Every arm is compared with the first. Which one used CUDA graphs is worked out from the traces. Several files of
    one side, or the blocks of a run folder, are paired in their order, and intervals are then over blocks.
    """
    sides = sides_of(traces or [], a or [], b or [])
    output.check_output(path, force, sides.files)
    pattern = checked_pattern(phase, "--phase")
    gate = [check_gate(condition) for condition in fail_on or []]
    questions = [checked_question(each) for each in what_if or []]
    dumps: list[str] = []
    if dot:
        from tracekit.graph.dumps import dump_files

        dumps = dump_files(dot)

    def compute() -> Diff:
        from tracekit.analysis.diff import compare
        from tracekit.graph.dumps import read_dumps
        from tracekit.trace.source import open_trace

        with ExitStack() as stack:
            opened = [
                [stack.enter_context(open_trace(each, cached=not no_cache)) for each in arm] for arm in sides.arms
            ]
            return compare(opened, pattern, warm_up, gate, questions, read_dumps(dumps), by.value)

    with output.progress(f"comparing {', '.join(sides.files)}"):
        shape = tuple(map(len, sides.arms))
        question = (pattern, warm_up, gate, questions, by.value, shape)
        answer = remembered(Diff, question, [*sides.files, *dumps], compute, cached=not no_cache)
    answer = with_profiler_cost(answer, sides.manifest)
    output.write_answer(answer, document, form, path)
    if trouble := file_diff(answer, sides.workload):
        typer.echo(f"tracekit: warning: {trouble}", err=True)
    if answer.gate:
        typer.echo(f"tracekit: gate tripped by {answer.gate}", err=True)
        raise typer.Exit(GATE_TRIPPED)
