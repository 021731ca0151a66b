"""Read what the command line writes the way other programs do."""

import csv
import io
import re

_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_CELL = re.compile(r"(?:\\.|[^|\\])*")


def cells(line: str) -> list[str]:
    """The cells of a table row of GitHub-flavoured markdown: a backslash guards what follows it."""
    found, at = [], 1
    while at < len(line):
        cell = _CELL.match(line, at)
        assert cell is not None
        found.append(cell[0].strip())
        at = cell.end() + 1
    return found


def markdown_tables(text: str) -> list[list[list[str]]]:
    """Every table's rows of cells, the header first and the line under it left out."""
    tables: list[list[list[str]]] = []
    inside = False
    for line in text.split("\n"):
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            tables.append([])
        inside = True
        tables[-1].append(cells(line))
    for rows in tables:
        assert all(set(cell) <= {"-", ":"} for cell in rows[1]), rows[1]
        assert {len(row) for row in rows} == {len(rows[0])}, rows
        del rows[1]
    return tables


def outside_of_code(text: str) -> str:
    """Markdown without its code spans."""
    return "\n".join(_CODE.sub("", line) for line in text.split("\n"))


def csv_rows(text: str) -> list[dict[str, str]]:
    """Rows of a CSV file, each with as many cells as the header."""
    header, *rows = csv.reader(io.StringIO(text), strict=True)
    assert len(set(header)) == len(header)
    assert {len(row) for row in rows} <= {len(header)}
    return [dict(zip(header, row, strict=True)) for row in rows]
