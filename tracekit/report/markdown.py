"""GitHub-flavoured markdown, ready to paste into an issue."""

import re
from collections.abc import Iterator

from tracekit.report.document import Document, Section, filled, printable


def render(document: Document) -> str:
    """The document as markdown."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"### {_plain(document.title)}"
    for section in filled(document.sections):
        yield ""
        if section.title:
            yield f"**{_plain(section.title)}**"
            yield ""
        yield from _table(section)
        if section.notes:
            if section.rows:
                yield ""
            yield from (f"- {_plain(note)}" for note in section.notes)
    if document.warnings:
        yield ""
        yield from (f"> warning: {_plain(warning)}" for warning in document.warnings)


def _table(section: Section) -> Iterator[str]:
    if not section.rows:
        return
    yield "| " + " | ".join(map(_cell, section.columns)) + " |"
    yield ("|" + "|".join("---" if i < section.text_columns else "---:" for i in range(len(section.columns))) + "|")
    for row in section.rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(text: str) -> str:
    """A kernel's name holds what markdown would read as formatting, so such text stands as code.

    A pipe opens a cell also inside of code, and a backslash before it would guard the pipe's own guard.
    """
    safe = re.sub(r"(\\*)\|", r"\1\1\\|", printable(text))
    if not re.search(r"[<>*_\[\]`~&]", safe):
        return safe
    fence = "`" * (max((len(run) for run in re.findall("`+", safe)), default=0) + 1)
    space = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{space}{safe}{space}{fence}"


def _plain(text: str) -> str:
    """A sentence: what is between backticks is code already; marks elsewhere are spelled out."""
    parts = re.split(r"(`[^`]*`)", printable(text))
    return "".join(part if i % 2 else _MARK.sub(_spelled, part) for i, part in enumerate(parts))


_MARK = re.compile(r"[\\*\[\]<>`~&]|(?<!\w)_|_(?!\w)")


def _spelled(mark: re.Match[str]) -> str:
    return f"&#{ord(mark[0])};"
