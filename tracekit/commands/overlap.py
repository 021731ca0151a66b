"""``tracekit overlap``."""

from contextlib import ExitStack
from typing import Annotated

import typer

from tracekit.analysis.results import Overlap
from tracekit.commands import options, output
from tracekit.commands.remembering import remembered
from tracekit.commands.selecting import selection
from tracekit.report.views.overlap import document


def overlap(
    trace: options.TraceArgument,
    baseline: Annotated[
        str | None,
        typer.Option(help="An eager run of the same work, to know how long each kernel takes alone.", metavar="TRACE"),
    ] = None,
    by: options.ByOption = options.By.launch,
    top: options.TopOption = None,
    kernel: options.KernelOption = None,
    phase: options.PhaseOption = None,
    device: options.DeviceOption = None,
    stream: options.StreamOption = None,
    begin: options.FromOption = None,
    finish: options.ToOption = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """Which kernels ran at the same time, for how long, and whether that saved time or lost it.

    Devices are never merged. Solo durations come from the baseline, else from instances of this trace
    that ran alone; where neither knows a kernel, bounds are given.
    """
    output.check_output(path, force, [trace, *([baseline] if baseline else [])])
    wanted = selection(by, top, "total", kernel, phase, device, stream, begin, finish)
    traces = [trace] if baseline is None else [trace, baseline]

    def compute() -> Overlap:
        from tracekit.analysis.side_by_side import overlaps_of
        from tracekit.trace.source import open_trace

        with ExitStack() as stack:
            opened = [stack.enter_context(open_trace(each, cached=not no_cache)) for each in traces]
            return overlaps_of(opened[0], opened[1] if baseline else None, wanted)

    with output.progress(f"reading {trace}"):
        answer = remembered(Overlap, wanted, traces, compute, cached=not no_cache)
    output.write_answer(answer, document, form, path)
