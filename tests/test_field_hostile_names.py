"""Names with characters that terminals, markdown and CSV give a meaning to."""

from pathlib import Path

import pytest
from conftest import Run
from field_notation import MS
from nsys_export import Export
from output_reading import csv_rows, markdown_tables, outside_of_code

HOSTILE = {
    "pipes": "a|b||c",
    "a backslash at the end": "a\\",
    "a newline": "first\nsecond",
    "a carriage return": "shown\rhidden",
    "a vertical tab and a form feed": "a\vb\fc",
    "a line separator": "a\u2028b\u0085c",
    "a colour": "\x1b[31mred\x1b[0m",
    "a terminal title": "\x1b]0;owned\x07",
    "a C1 escape": "\x9b31mred",
    "a backspace": "abc\b\b\bxyz",
    "right to left": "a\u202egnp.k",
    "unicode": "ядро_漢字_🚀",
    "backticks": "`rm -rf`",
    "backticks and a tag": "`<img src=x>",
    "markup": "[red]k[/red]",
    "a link": "[k](http://example.com)",
    "a template": "k<int, (E)3, true>",
    "emphasis": "*k* _k_ **k**",
    "a formula": "=HYPERLINK(1)",
    "quotes and commas": 'a,"b";c',
    "spaces": "  k  ",
    "nothing": "",
    "ten thousand characters": "k" * 10_000,
}
GUARDED_PIPE = "a\\|b"
"""A backslash before a pipe, which markdown reads as a guarded backslash and a new cell."""


def named(*names: str) -> Export:
    """Six times, for each name: a range of that name, in which a kernel of that name runs beside a plain one."""
    export = Export(graph_mode=None)
    for index in range(6):
        for place, name in enumerate(names):
            at = MS + (index * len(names) + place) * 100_000
            export.range(at, at + 90_000, f"{name} range")
            for stream, called in enumerate((name, "plain")):
                correlation = export.launch(at + stream, at + stream + 1)
                start = at + 1000 + stream * 5000
                export.kernel(start, start + 8000, stream, called, short=called, correlation=correlation)
    return export


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return named(*HOSTILE.values()).write(tmp_path / "t.sqlite")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return named(*(f"other {place}" for place in range(len(HOSTILE)))).write(tmp_path / "other.sqlite")


def questions(trace: Path, other: Path) -> list[tuple[object, ...]]:
    """Names among kernels, pairs, phases, compared kernels, kernels of one side and sentences."""
    return [
        ("summary", trace),
        ("overlap", trace),
        ("info", trace),
        ("diff", trace, trace),
        ("diff", trace, other),
        ("diff", other, trace),
    ]


def harmless(text: str) -> bool:
    """Nothing that moves the cursor, colours, reorders or ends a line, but for the ends of lines."""
    return all(character.isprintable() for character in text.replace("\n", ""))


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_what_a_person_reads_moves_no_cursor(trace: Path, other: Path, call: Run, form: str) -> None:
    for asked in questions(trace, other):
        ran = call(*asked, "--format", form)
        assert ran.code == 0
        assert harmless(ran.out), asked


def test_a_kernel_is_one_row(trace: Path, call: Run) -> None:
    first, *_ = markdown_tables(call("summary", trace, "--format", "markdown").out)
    assert len(first) == 1 + len(HOSTILE) + 1
    lines = call("summary", trace).out.split("\n")
    heading = next(index for index, line in enumerate(lines) if line.startswith("kernel "))
    after = lines[heading + 1 :]
    assert [" 48.0 us " in line for line in after[: len(HOSTILE) + 2]] == [False, *[True] * len(HOSTILE), False]


def test_a_kernel_is_one_line_of_csv(trace: Path, other: Path, call: Run) -> None:
    for asked in questions(trace, other):
        text = call(*asked, "--format", "csv").out
        assert harmless(text)
        assert text.count("\n") == len(csv_rows(text)) + 1


def test_json_holds_names_as_they_are_without_raw_control_characters(trace: Path, call: Run) -> None:
    ran = call("summary", trace, "--format", "json")
    assert {row["name"] for row in ran.answer["kernels"]} == {*HOSTILE.values(), "plain"}
    assert not any(character < " " for character in ran.out.replace("\n", ""))


def test_markdown_tables_stay_whole_and_hold_no_tag(trace: Path, other: Path, call: Run) -> None:
    for asked in questions(trace, other):
        text = call(*asked, "--format", "markdown").out
        assert markdown_tables(text)
        assert "<" not in outside_of_code(text)


def test_sentences_of_markdown_show_names_as_they_are(trace: Path, other: Path, call: Run) -> None:
    for asked in questions(trace, other):
        text = outside_of_code(call(*asked, "--format", "markdown").out)
        assert not [mark for mark in ("](http", "[red]", "*k*", "**k**") if mark in text.replace("\\", "")]


def test_a_backslash_before_a_pipe_opens_no_cell(tmp_path: Path, call: Run) -> None:
    path = named(GUARDED_PIPE).write(tmp_path / "t.sqlite")
    assert markdown_tables(call("summary", path, "--format", "markdown").out)


def test_long_names_are_cut_for_a_person_only(tmp_path: Path, call: Run) -> None:
    path = named(HOSTILE["ten thousand characters"]).write(tmp_path / "t.sqlite")
    for asked in questions(path, path):
        for form in ("table", "markdown"):
            text = call(*asked, "--format", form).out
            assert max(map(len, text.split("\n"))) < 1000, (asked, form)
    assert HOSTILE["ten thousand characters"] in call("summary", path, "--format", "csv").out
