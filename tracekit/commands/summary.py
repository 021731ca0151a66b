"""``tracekit summary``."""

from enum import Enum
from typing import Annotated

import typer

from tracekit.analysis.results import Summary
from tracekit.commands import options, output
from tracekit.commands.remembering import remembered
from tracekit.commands.selecting import selection
from tracekit.report.views.summary import document

MOST_KERNELS = 50
"""Kernels shown to a person who does not say how many; every one is in the other formats."""


class Sort(Enum):
    """Order of the kernels, largest first but for names."""

    total = "total"
    count = "count"
    median = "median"
    mean = "mean"
    max = "max"
    overlapped = "overlapped"
    name = "name"


def summary(
    trace: options.TraceArgument,
    by: options.ByOption = options.By.launch,
    top: options.TopOption = None,
    sort: Annotated[Sort, typer.Option(help="Order of the kernels.")] = Sort.total,
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
    """Every kernel of a trace: count, total, median, spread, overlap; and the time of its devices.

    The overlapped share is measured against everything that ran on the device, whatever is selected.
    Device lines cover the selected phase, device, stream and window.
    """
    output.check_output(path, force, [trace])
    if form in (options.Format.table, options.Format.markdown):
        top = top or MOST_KERNELS
    wanted = selection(by, top, sort.value, kernel, phase, device, stream, begin, finish)

    def compute() -> Summary:
        from tracekit.analysis.summary import summarise_trace
        from tracekit.trace.source import open_trace

        with open_trace(trace, cached=not no_cache) as opened:
            return summarise_trace(opened, wanted)

    with output.progress(f"reading {trace}"):
        answer = remembered(Summary, wanted, [trace], compute, cached=not no_cache)
    output.write_answer(answer, document, form, path)
