"""Aligned tables for a terminal or a pipe; colour only on a terminal.

The layout is done here because table libraries take longer over a thousand kernels than the analysis.
"""

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
    mark = typer.style("warning:", fg="yellow") if colour else "warning:"
    if document.warnings:
        lines += ["", *(f"{mark} {printable(warning)}" for warning in document.warnings)]
    return "\n".join(lines) + "\n"


def _section(section: Section, width: int | None, colour: bool) -> Iterator[str]:
    if section.title:
        yield typer.style(section.title, fg="cyan", bold=True) if colour else section.title
    if section.rows:
        yield from _table(section, width)
    yield from map(printable, section.notes)


def _table(section: Section, width: int | None) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in (section.columns, *section.rows)]
    room = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = 0 if width is None else sum(room) + len(GAP) * (len(room) - 1) - width
    if excess > 0:
        room[0] = min(room[0], max(NARROWEST_NAME, room[0] - excess))
        rows = [[_cut(row[0], room[0]), *row[1:]] for row in rows]
    layout = GAP.join(f"{{:{'<' if i < section.text_columns else '>'}{size}}}" for i, size in enumerate(room))
    return [layout.format(*row).rstrip() for row in rows]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}\u2026"
