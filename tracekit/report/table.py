"""Aligned tables for a terminal or a pipe; colour only on a terminal.

The layout is done here because table libraries take longer over a thousand kernels than the analysis.
"""

import textwrap
from collections.abc import Iterator

import typer

from tracekit.report.document import Document, Section, filled, printable

NARROWEST_NAME = 16
"""First columns are cut down to this many characters where a terminal is too narrow."""

GAP = "  "


def render(document: Document, *, width: int | None = None, colour: bool = False) -> str:
    """The document as text, cut to fit a terminal's ``width``."""
    title = printable(document.title)
    lines = [typer.style(title, bold=True) if colour else title]
    for section in filled(document.sections):
        lines += ["", *_section(section, width, colour)]
    if document.warnings:
        lines.append("")
    for warning in document.warnings:
        first, *more = _wrapped(f"warning: {printable(warning)}", width)
        lines += [first.replace("warning:", typer.style("warning:", fg="yellow"), 1) if colour else first, *more]
    return "\n".join(lines) + "\n"


def _section(section: Section, width: int | None, colour: bool) -> Iterator[str]:
    if section.title:
        yield typer.style(section.title, fg="cyan", bold=True) if colour else section.title
    if section.rows:
        yield from _table(section, width)
    for note in section.notes:
        yield from _wrapped(printable(note), width)


def _table(section: Section, width: int | None) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in (section.columns, *section.rows)]
    room = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = 0 if width is None else sum(room) + len(GAP) * (len(room) - 1) - width
    if excess > 0:
        room[0] = min(room[0], max(NARROWEST_NAME, room[0] - excess))
        rows = [[_cut(row[0], room[0]), *row[1:]] for row in rows]
    layout = GAP.join(f"{{:{'<' if i < section.text_columns else '>'}{size}}}" for i, size in enumerate(room))
    return [layout.format(*row).rstrip() for row in rows]


def _wrapped(text: str, width: int | None) -> list[str]:
    """A sentence over as many lines as it takes; no word is cut, so that commands and paths can be copied."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}\u2026"
