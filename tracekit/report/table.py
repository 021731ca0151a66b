"""Aligned tables for a terminal or a pipe; colour only on a terminal."""

import io
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tracekit.report.document import Document, Section

PIPE_WIDTH = 4096
"""Nothing is cut where no terminal sets a width."""


def render(document: Document, *, terminal: bool, width: int | None = None) -> str:
    """The document as text; ``terminal`` allows colour and fits tables into ``width`` columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=terminal,
        width=width if terminal and width else PIPE_WIDTH,
        highlight=False,
        no_color=None if terminal else True,
        legacy_windows=False,
    )
    console.print(Text(document.title, style="bold"), soft_wrap=True)
    for section in document.sections:
        console.print()
        for part in _parts(section):
            console.print(part, soft_wrap=not isinstance(part, Table))
    if document.warnings:
        console.print()
        for warning in document.warnings:
            console.print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _parts(section: Section) -> Iterator[Text | Table]:
    if section.title:
        yield Text(section.title, style="bold cyan")
    if section.rows:
        yield _table(section)
    for note in section.notes:
        yield Text(note)


def _table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(section.columns):
        text = i < section.text_columns
        table.add_column(
            Text(name),
            justify="left" if text else "right",
            overflow="ellipsis" if text else "fold",
            no_wrap=True,
            min_width=16 if i == 0 and text else None,
        )
    for row in section.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
