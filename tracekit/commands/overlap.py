"""``tracekit overlap``."""

from contextlib import ExitStack
from typing import Annotated

import typer

from tracekit.commands import options, output
from tracekit.commands.selecting import selection


def overlap(
    trace: options.TraceArgument,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="An eager run of the same work, to know how long each kernel takes alone.", metavar="TRACE"
        ),
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
    output.check_output(path, force)
    wanted = selection(by, top, "total", kernel, phase, device, stream, begin, finish)
    with output.progress(f"reading {trace}"), ExitStack() as opened:
        from tracekit.analysis.side_by_side import overlaps_of
        from tracekit.report.views.overlap import document
        from tracekit.trace.source import open_trace

        main = opened.enter_context(open_trace(trace, cached=not no_cache))
        other = opened.enter_context(open_trace(baseline, cached=not no_cache)) if baseline else None
        answer = overlaps_of(main, other, wanted)
    output.write_answer(answer, document, form, path)
