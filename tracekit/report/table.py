"""Aligned tables for a terminal or a pipe; colour only on a terminal."""

from collections.abc import Iterator

import click
from tabulate import tabulate

from tracekit.report.document import Document, Section, filled, printable

NARROWEST_NAME = 16
"""First columns are cut down to this many characters where a terminal is too narrow."""


def render(document: Document, *, width: int | None = None) -> str:
    """The document as text. With a ``width``, that of a terminal, with colour and cut to fit."""
    lines = [
        printable(document.title),
        *(line for section in filled(document.sections) for line in _section(section, width)),
    ]
    if document.warnings:
        lines += ["", *(f"warning: {printable(warning)}" for warning in document.warnings)]
    if width is not None:
        lines = [
            click.style("warning:", fg="yellow") + line[8:] if line.startswith("warning: ") else line for line in lines
        ]
        lines[0] = click.style(lines[0], bold=True)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _section(section: Section, width: int | None) -> Iterator[str]:
    yield ""
    if section.title:
        yield section.title if width is None else click.style(section.title, fg="cyan", bold=True)
    if section.rows:
        yield from _table(section, width)
    yield from map(printable, section.notes)


def _table(section: Section, width: int | None) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in section.rows]
    text = _text(section, rows)
    excess = 0 if width is None else len(text[0]) - width
    if excess > 0:
        longest = max(len(row[0]) for row in rows)
        room = max(NARROWEST_NAME, longest - excess)
        text = _text(section, [[_cut(row[0], room), *row[1:]] for row in rows])
    return text


def _text(section: Section, rows: list[list[str]]) -> list[str]:
    sides = ["left" if i < section.text_columns else "right" for i in range(len(section.columns))]
    return tabulate(rows, headers=section.columns, tablefmt="plain", colalign=sides, disable_numparse=True).splitlines()


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}\u2026"
