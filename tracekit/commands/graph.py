"""``tracekit graph``."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tracekit.analysis.results import GraphAnswer
from tracekit.commands import drawing, options, output
from tracekit.commands.remembering import remembered
from tracekit.report.views.graph import document


def graph(
    trace: options.TraceArgument,
    dot: options.DotOption = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="An eager run of the same work, to know how long each kernel takes alone.", metavar="TRACE"),
    ] = None,
    launch: Annotated[
        int | None,
        typer.Option(
            help="Show the graph of this launch, counted from 1 by time; else the longest launch of the graph "
            "that takes most time.",
            min=1,
        ),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the graph shown into this file; needs graphviz.", dir_okay=False)
    ] = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """The shapes of CUDA graphs: what waits for what, how many nodes could run at once, and how many did.

    Launches that ran the same kernels in the same order of nodes are one graph. Its edges are those of the DOT dump
    with the same kernels, else they are inferred: a node counts as before another when it had ended in every replay.
    """
    traces = [trace, *([baseline] if baseline else [])]
    output.check_output(path, force, traces)
    output.check_output(svg, force, traces)
    if svg:
        drawing.check_graphviz()
    from tracekit.graph.dumps import dump_files, read_dumps

    files = dump_files(dot or [])

    def compute() -> GraphAnswer:
        from tracekit.analysis.graphs import graphs_of
        from tracekit.trace.source import open_trace

        with ExitStack() as stack:
            opened = [stack.enter_context(open_trace(each, cached=not no_cache)) for each in traces]
            return graphs_of(opened[0], opened[1] if baseline else None, read_dumps(files), launch)

    with output.progress(f"reading {trace}"):
        question = (len(traces), launch)
        answer = remembered(GraphAnswer, question, [*traces, *files], compute, cached=not no_cache)
        if svg:
            from tracekit.report.graph_drawing import dot_source

            output.put(svg, drawing.svg_of(dot_source(answer)))
    output.write_answer(answer, document, form, path)
