"""The command line: names and help. Each command imports what it needs when it runs."""

import io
import os
import sys
from typing import Annotated

import typer

import tracekit
from tracekit.commands.bench import bench
from tracekit.commands.diff import diff
from tracekit.commands.doctor import doctor
from tracekit.commands.graph import graph
from tracekit.commands.history import history
from tracekit.commands.info import info
from tracekit.commands.overlap import overlap
from tracekit.commands.repro import repro
from tracekit.commands.run import RunCommand, run
from tracekit.commands.scrub import scrub
from tracekit.commands.summary import summary
from tracekit.errors import TracekitError
from tracekit.report.document import printable

FAULT = 70
"""Exit code of a fault of tracekit's own (EX_SOFTWARE): none of those that an answer has."""

app = typer.Typer(
    name="tracekit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tracekit {tracekit.__version__}")
        raise typer.Exit


@app.callback()
def _tracekit(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Did CUDA graphs help or hurt, where, and by how much: evidence from nsys traces.

    Exit codes: 0 done, 1 a --fail-on condition came true, 2 wrong usage, 3 the input cannot be used,
    4 an outside program failed.
    """


app.command(cls=RunCommand)(run)
for command in (diff, summary, overlap, graph, repro, bench, info, history, scrub, doctor):
    app.command()(command)


def main() -> None:
    """Run the command line; every failure is one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except TracekitError as error:
        typer.echo(printable(f"tracekit: {error}"), err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing is left to say, also not while Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TRACEKIT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        typer.echo(f"tracekit: a fault of tracekit's own ({what}): TRACEKIT_DEBUG=1 shows where", err=True)
        sys.exit(FAULT)
