"""A page of tables and sentences, before it is rendered."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Section:
    """A titled table; columns of numbers stand right. ``notes`` follow it."""

    title: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    text_columns: int = 1
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """Sections in reading order, those with something in them, then warnings."""

    title: str
    sections: list[Section]
    warnings: list[str]


def filled(sections: list[Section]) -> list[Section]:
    """The sections that have something to show."""
    return [section for section in sections if section.rows or section.notes]


UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, change its colours or turn the direction of writing."""


def printable(text: str) -> str:
    """Text as one line that does nothing to a terminal: control characters become ``?``."""
    return UNPRINTABLE.sub("?", text)
