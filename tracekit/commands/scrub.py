"""``tracekit scrub``."""

import sqlite3
from pathlib import Path
from typing import Annotated

import typer

from tracekit.commands import options, output
from tracekit.errors import WrongUsage


def scrub(
    trace: options.TraceArgument,
    path: Annotated[
        Path, typer.Option("--output", "-o", help="The SQLite file to write.", metavar="OUT", dir_okay=False)
    ],
    force: options.ForceOption = False,
) -> None:
    """Copy a trace without what must not be published; the copy gives the same summary, overlap and diff.

    Kept are kernels, copies, API calls, graph events, NVTX ranges, the GPU's name and the versions. Environment,
    host, user, processes, paths, arguments and every other string are left out; process and thread ids become
    small numbers.

    An NVTX name is replaced by "(removed a)" where it holds '/', a backslash, '=' (but for PyTorch's "seq = 12"), '@',
    a user or host name that the trace records, an address, a long run of hexadecimal digits or base64, or what
    looks like a password or an access token; a kernel name where it holds a path or such a user or host name.
    What other names say is yours to judge: look at the summary and info of the copy before you publish it.
    """
    output.check_output(path, force, [trace])
    if (Path(trace) / "run.json").exists():
        traces = ", ".join(sorted(file.name for file in Path(trace).glob("*.sqlite"))) or "none"
        raise WrongUsage(f"{trace}: is a run folder: scrub its traces one by one ({traces})")
    from tracekit.capture.scrub import scrub as write_scrubbed
    from tracekit.trace.source import open_trace

    with output.progress(f"scrubbing {trace}"), open_trace(trace, cached=False) as opened:
        try:
            made = write_scrubbed(opened, path)
        except (OSError, sqlite3.Error) as error:
            raise WrongUsage(f"{path}: cannot be written ({error}): name another place") from error
    typer.echo(f"{path}: {made.rows} rows kept, {made.removed_names} names removed")
