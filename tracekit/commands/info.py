"""``tracekit info``."""

from tracekit.commands import options, output
from tracekit.commands.selecting import checked_pattern


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
    output.check_output(path, force)
    pattern = checked_pattern(phase, "--phase")
    with output.progress(f"reading {trace}"):
        from tracekit.analysis.inventory import inventory
        from tracekit.report.views.info import document
        from tracekit.trace.source import open_trace

        with open_trace(trace, cached=not no_cache) as opened:
            answer = inventory(opened, pattern)
    output.write_answer(answer, document, form, path)
