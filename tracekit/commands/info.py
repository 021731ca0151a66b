"""``tracekit info``."""

from tracekit.analysis.results import Info
from tracekit.commands import options, output
from tracekit.commands.remembering import remembered
from tracekit.commands.selecting import checked_pattern
from tracekit.report.views.info import document


def info(
    trace: options.TraceArgument,
    phase: options.PhasesOption = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """What a trace is: versions, GPU, how graphs were traced, processes, row counts, phases, warnings.

    Environment variables, hosts, users and command lines that a raw export holds are never read.
    """
    output.check_output(path, force, [trace])
    pattern = checked_pattern(phase, "--phase")

    def compute() -> Info:
        from tracekit.analysis.inventory import inventory
        from tracekit.trace.source import open_trace

        with open_trace(trace, cached=not no_cache) as opened:
            return inventory(opened, pattern)

    with output.progress(f"reading {trace}"):
        answer = remembered(Info, pattern, [trace], compute, cached=not no_cache)
    output.write_answer(answer, document, form, path)
