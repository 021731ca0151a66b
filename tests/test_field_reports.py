"""Reports that nsys has to export first, by a stand-in for nsys and, where it is installed, by nsys itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from field_notation import steps

from tracekit.capture import nsys
from tracekit.capture.nsys import find_nsys

UNPACKED = Path.home() / ".cache/tracekit-nsys/usr/bin/nsys"


def stand_in(folder: Path, last_lines: str) -> Path:
    """A program that takes nsys' place; ``$output`` is where the export is asked for, ``$input`` the report."""
    program = folder / "nsys"
    program.write_text(
        '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = --output ] && output=$2; shift; done; input=$1\n' + last_lines
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report, alone in its folder, that the stand-in knows how to export: its content names the export."""
    export = steps([(0, 1000, 7, "fresh")], graphs=False).write(tmp_path / "fresh.sqlite")
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "x.nsys-rep"
    path.write_text(str(export))
    monkeypatch.setenv("TRACEKIT_NSYS", str(stand_in(tmp_path, 'cp "$(cat "$input")" "$output"')))
    return path


def kernels(call: Run, path: Path) -> list[str]:
    return [row["name"] for row in call("summary", path, "--format", "json").answer["kernels"]]


@pytest.mark.parametrize("age", [-100, 100])
@pytest.mark.parametrize("name", ["x.sqlite", "x.nsys-rep.sqlite"])
def test_an_export_beside_a_report_is_never_taken_for_its_own(report: Path, call: Run, name: str, age: int) -> None:
    beside = steps([(0, 1000, 7, "stale")], graphs=False).write(report.with_name(name))
    at = report.stat().st_mtime + age
    os.utime(beside, (at, at))
    listed = sorted(report.parent.iterdir())
    assert kernels(call, report) == ["fresh"]
    assert sorted(report.parent.iterdir()) == listed


@pytest.mark.parametrize("ending", [".nsys-rep", ".qdrep"])
def test_nothing_appears_beside_a_report(report: Path, call: Run, ending: str) -> None:
    report = report.rename(report.with_suffix(ending))
    for _ in range(2):
        assert kernels(call, report) == ["fresh"]
    assert list(report.parent.iterdir()) == [report]


def test_a_report_recorded_anew_is_exported_anew(report: Path, call: Run, tmp_path: Path) -> None:
    assert kernels(call, report) == ["fresh"]
    newer = steps([(0, 1000, 7, "newer")], graphs=False).write(tmp_path / "newer.sqlite")
    report.write_text(str(newer))
    assert kernels(call, report) == ["newer"]


@pytest.mark.parametrize(
    "does",
    ["exit 0", ': >"$output"', "echo it broke >&2; exit 1", "kill -9 $$", "printf 'a\\nb\\n\\033[31mred' >&2"],
)
def test_an_nsys_that_leaves_no_export_is_told_in_one_line(report: Path, call: Run, tmp_path: Path, does: str) -> None:
    stand_in(tmp_path, does)
    for _ in range(2):
        ran = call("info", report)
        (line,) = ran.err.splitlines()
        assert (ran.code, ran.out) == (4, "")
        assert line.startswith("tracekit: ")
        assert "x.nsys-rep" in line
        assert line.isprintable()


def test_without_nsys_it_is_said_what_to_run(report: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEKIT_NSYS")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(nsys, "INSTALL_FOLDERS", ())
    steps([(0, 1000, 7, "stale")], graphs=False).write(report.with_suffix(".sqlite"))
    ran = call("summary", report)
    (line,) = ran.err.splitlines()
    assert (ran.code, ran.out) == (3, "")
    assert "nsys export --type sqlite" in line
    assert "x.nsys-rep" in line


def test_a_missing_report_is_not_given_to_nsys(report: Path, call: Run) -> None:
    ran = call("summary", report.with_name("absent.nsys-rep"))
    (line,) = ran.err.splitlines()
    assert ran.code == 3
    assert "no such file" in line


def test_a_cache_folder_that_cannot_be_made_is_told_in_one_line(
    report: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRACEKIT_CACHE", str(tmp_path / "file" / "cache"))
    ran = call("info", report)
    (line,) = ran.err.splitlines()
    assert ran.code in (2, 3)
    assert "TRACEKIT_CACHE" in line or "cache" in line


@pytest.fixture
def real_nsys() -> Path:
    """nsys by the environment, as installed, or as unpacked for these tests."""
    named = os.environ.get("TRACEKIT_NSYS")
    found = Path(named) if named else find_nsys() or (UNPACKED if UNPACKED.exists() else None)
    if found is None:
        pytest.skip("nsys is not installed")
    return found


def test_a_recording_without_a_gpu_says_that_no_cuda_activity_was_recorded(
    tmp_path: Path, real_nsys: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    record = [str(real_nsys), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"]
    work = [sys.executable, "-c", "print(sum(range(1000)))"]
    subprocess.run([*record, f"--output={folder / 'x'}", *work], capture_output=True, check=False)
    report = folder / "x.nsys-rep"
    if not report.exists():
        pytest.skip("nsys records nothing on this machine")
    stale = steps([(0, 1000, 7, "stale")], graphs=False).write(folder / "x.sqlite")
    os.utime(stale, (1, 1))
    listed = sorted(folder.iterdir())
    monkeypatch.setenv("TRACEKIT_NSYS", str(real_nsys))
    answer = call("info", report, "--format", "json").answer
    assert answer["traces"][0]["nsys_version"]
    assert answer["rows"]["kernels"] == 0
    assert "no CUDA activity was recorded" in call("info", report).out
    assert sorted(folder.iterdir()) == listed
