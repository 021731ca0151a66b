"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What an answer is written as."""

    table = "table"
    markdown = "markdown"
    json = "json"
    csv = "csv"


class By(StrEnum):
    """What makes two instances one row."""

    launch = "launch"
    name = "name"
    short = "short"
    operator = "operator"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="What to write.", show_default=True)]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file instead of the terminal.", dir_okay=False),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Read the export itself; keep nothing in the cache folder.")
]
ByOption = Annotated[
    By,
    typer.Option(help="One row for each launch configuration, demangled name, base name, or framework operator."),
]
TopOption = Annotated[int | None, typer.Option(help="Show only so many rows.", min=1)]
KernelOption = Annotated[
    str | None,
    typer.Option(
        help="Only kernels whose base name matches this regular expression (with '::' or '<' in it: whole name).",
        metavar="PATTERN",
    ),
]
PhaseOption = Annotated[str | None, typer.Option(help="Only the work of this phase (see 'info').", metavar="NAME")]
PhasesOption = Annotated[
    str | None,
    typer.Option("--phase", help="Phases are the NVTX ranges whose name matches this.", metavar="REGEX"),
]
DeviceOption = Annotated[int | None, typer.Option(help="Only this device.")]
StreamOption = Annotated[int | None, typer.Option(help="Only this stream.")]
FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Only kernels that start at this time or later, such as 1.5s.", metavar="TIME"),
]
ToOption = Annotated[str | None, typer.Option("--to", help="Only kernels that start before this time.", metavar="TIME")]
DotOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A DOT dump of a graph (cudaGraphDebugDotPrint), or a folder of such. May be repeated.",
        metavar="FILE|FOLDER",
    ),
]
TraceArgument = Annotated[
    str, typer.Argument(help="A .sqlite export, a parquetdir export or a .nsys-rep report.", metavar="TRACE")
]
