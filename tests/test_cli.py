"""The command line: exit codes, files written, and four forms of every answer."""

import json
import os
from pathlib import Path

import pytest
from conftest import Run
from field_notation import steps
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from output_reading import csv_rows, markdown_tables

from tracekit.report.json import json_schema

SAMPLES = sorted((Path(__file__).parents[1] / "sample_traces").glob("*.sqlite"))
MAIN_LISTS = {"summary": "kernels", "overlap": "kernel_pairs", "info": "phases", "diff": "kernels"}


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    return steps([(0, 1000, 7, "k"), (2000, 3000, 7, "l")], graphs=True).write(tmp_path / "quick.sqlite")


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    return steps([(0, 1000, 7, "k"), (4000, 8000, 7, "l")], graphs=False).write(tmp_path / "slow.sqlite")


@pytest.fixture
def brief(tmp_path: Path) -> Path:
    """Three steps only: too few for any verdict."""
    return steps([(0, 1000, 7, "k")], graphs=True, count=3).write(tmp_path / "brief.sqlite")


def test_a_process_answers_on_stdout_alone(quick: Path, slow: Path, run: Run) -> None:
    ran = run("diff", quick, slow)
    assert (ran.code, ran.err) == (0, "")
    assert "a wins" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("unknown",),
        ("summary",),
        ("diff", "TRACE"),
        ("summary", "TRACE", "TRACE"),
        ("summary", "TRACE", "--unknown"),
        ("summary", "TRACE", "--format", "yaml"),
        ("summary", "TRACE", "--by", "colour"),
        ("summary", "TRACE", "--top", "0"),
        ("summary", "TRACE", "--kernel", "("),
        ("summary", "TRACE", "--kernel", "(?=k)"),
        ("summary", "TRACE", "--phase", "absent"),
        ("summary", "TRACE", "--device", "9"),
        ("summary", "TRACE", "--stream", "99"),
        ("summary", "TRACE", "--from", "soon"),
        ("overlap", "TRACE", "--to", "1 parsec"),
        ("info", "TRACE", "--phase", "["),
        ("diff", "TRACE", "TRACE", "--warm-up", "-1"),
        ("diff", "TRACE", "TRACE", "--fail-on", "slower"),
        ("diff", "TRACE", "TRACE", "--fail-on", "slower>lots%"),
        ("summary", "TRACE", "-o", "absent/folder/out"),
        ("summary", "TRACE", "-o", "."),
    ],
    ids=" ".join,
)
def test_wrong_usage(quick: Path, call: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(quick.parent)
    ran = call(*(quick.name if each == "TRACE" else each for each in arguments))
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.err if arguments else ran.out + ran.err
    assert [path.name for path in quick.parent.iterdir()] == [quick.name]


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("diff", "--help"), ("summary", "-h")])
def test_help_and_version_are_no_failure(call: Run, arguments: tuple[str, ...]) -> None:
    ran = call(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert "tracekit" in ran.out


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ((), 0),
        (("slower>5%",), 1),
        (("slower > 100 %",), 1),
        (("slower>200%",), 0),
        (("faster>5%",), 0),
        (("undecided",), 0),
        (("faster>5%", "slower>5%"), 1),
    ],
)
def test_a_gate_trips_on_what_is_decided(
    quick: Path, slow: Path, call: Run, conditions: tuple[str, ...], code: int
) -> None:
    """The slow arm's steps take 9 us against 4 us."""
    ran = call("diff", quick, slow, *(part for each in conditions for part in ("--fail-on", each)))
    assert ran.code == code
    assert "a wins" in ran.out
    assert len(ran.err.splitlines()) == code
    assert call("diff", slow, quick, "--fail-on", "faster>5%").code == 1


def test_equal_arms_trip_no_gate(quick: Path, call: Run) -> None:
    asked = ("--fail-on", "slower>0%", "--fail-on", "faster>0%", "--fail-on", "undecided")
    assert call("diff", quick, quick, *asked).code == 0


def test_the_undecided_trips_a_gate_only_when_asked(brief: Path, slow: Path, call: Run) -> None:
    for pair in ((brief, slow), (slow, brief)):
        assert call("diff", *pair, "--fail-on", "slower>1%", "--fail-on", "faster>1%").code == 0
        assert call("diff", *pair, "--fail-on", "undecided").code == 1


def test_a_tripped_gate_still_writes_the_answer(quick: Path, slow: Path, call: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = call("diff", quick, slow, "--fail-on", "slower>5%", "--format", "json", "-o", out)
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(out.read_text())["gate"].startswith("slower>5%")


@pytest.mark.parametrize("form", ["table", "markdown", "json", "csv"])
def test_a_file_holds_what_the_terminal_shows(quick: Path, call: Run, tmp_path: Path, form: str) -> None:
    out = tmp_path / "folder with spaces" / "out"
    out.parent.mkdir()
    shown = call("summary", quick, "--format", form)
    ran = call("summary", quick, "--format", form, "-o", out)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert out.read_text() == shown.out
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("linked", [False, True])
def test_no_file_is_overwritten_unless_forced(quick: Path, call: Run, tmp_path: Path, linked: bool) -> None:
    out = tmp_path / "out"
    out.write_text("precious")
    named = tmp_path / "link" if linked else out
    if linked:
        named.symlink_to(out)
    listed = sorted(tmp_path.iterdir())
    ran = call("summary", quick, "-o", named)
    (line,) = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert "--force" in line
    assert out.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == listed
    assert call("summary", quick, "-o", named, "--force").code == 0
    assert named.read_text() == call("summary", quick).out
    assert sorted(tmp_path.iterdir()) == listed


def test_a_failure_leaves_the_forced_file_as_it_was(call: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("precious")
    assert call("summary", tmp_path / "absent.sqlite", "-o", out, "--force").code == 3
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_an_answer_is_never_written_over_its_own_trace(quick: Path, call: Run) -> None:
    before = quick.read_bytes()
    ran = call("summary", quick, "-o", quick, "--force")
    assert ran.code == 2
    assert quick.read_bytes() == before


def test_a_written_file_has_the_usual_mode(quick: Path, call: Run, tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        assert call("summary", quick, "-o", tmp_path / "out").code == 0
    finally:
        os.umask(umask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def answers_in_every_form(call: Run, trace: Path) -> None:
    """Every command in every form; the JSON by its schema and the others holding as many rows."""
    validator = Draft202012Validator(json_schema())
    for command, main_list in MAIN_LISTS.items():
        asked = (command, *[trace] * (2 if command == "diff" else 1))
        answer = call(*asked, "--format", "json").answer
        validator.validate(answer)
        rows = csv_rows(call(*asked, "--format", "csv").out)
        assert len(rows) == len(answer[main_list])
        markdown_tables(call(*asked, "--format", "markdown").out)
        text = call(*asked).out
        assert not {"nan", "inf"} & set(text.lower().split())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_forms_of_sample_traces(call: Run, sample: Path) -> None:
    answers_in_every_form(call, sample)


def test_forms_of_real_traces(call: Run, real_traces: list[Path]) -> None:
    for trace in real_traces:
        answers_in_every_form(call, trace)


def test_forms_of_three_arms_and_of_a_baseline(call: Run) -> None:
    validator = Draft202012Validator(json_schema())
    on, off, serial = (
        next(path for path in SAMPLES if path.stem == f"moe-graphs-{arm}") for arm in ("on", "off", "serial")
    )
    for asked in (("diff", on, off, serial), ("overlap", on, "--baseline", off)):
        validator.validate(call(*asked, "--format", "json").answer)
        assert csv_rows(call(*asked, "--format", "csv").out)
        assert markdown_tables(call(*asked, "--format", "markdown").out)


def test_the_schema_is_a_schema_and_refuses_what_is_not_an_answer(quick: Path, call: Run) -> None:
    Draft202012Validator.check_schema(json_schema())
    validator = Draft202012Validator(json_schema())
    answer = call("summary", quick, "--format", "json").answer
    assert validator.is_valid(answer)
    assert not validator.is_valid({**answer, "command": "overlap"})
    assert not validator.is_valid({name: value for name, value in answer.items() if name != "kernels"})
    assert not validator.is_valid({**answer, "kernels": [{"name": "k"}]})
