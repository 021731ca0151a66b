"""What is kept between runs: quicker answers, never other ones."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Run
from field_notation import steps

KERNELS = [(0, 1000, 7, "first"), (500, 2500, 8, "second")]
COMMANDS = ("summary", "overlap", "info", "diff")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return steps(KERNELS, graphs=True).write(tmp_path / "t.sqlite")


@pytest.fixture
def cache(tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRACEKIT_CACHE", str(folder))
    return folder


def answers(call: Run, trace: Path, *options: str) -> list[str]:
    """Every command's JSON."""
    asked = [(command, *[trace] * (2 if command == "diff" else 1)) for command in COMMANDS]
    ran = [call(*arguments, "--format", "json", *options) for arguments in asked]
    assert {(each.code, each.err) for each in ran} == {(0, "")}
    return [each.out for each in ran]


def kept(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def test_the_second_answer_is_the_first(trace: Path, cache: Path, call: Run) -> None:
    first = answers(call, trace)
    assert kept(cache)
    assert answers(call, trace) == first
    assert answers(call, trace, "--no-cache") == first


def test_nothing_is_kept_when_asked_not_to(trace: Path, cache: Path, call: Run) -> None:
    answers(call, trace, "--no-cache")
    assert not kept(cache)


def test_nothing_is_kept_beside_the_trace(trace: Path, cache: Path, call: Run) -> None:
    answers(call, trace)
    assert sorted(path.name for path in trace.parent.iterdir()) == ["cache", "t.sqlite"]


def medians(call: Run, trace: Path) -> dict[str, int]:
    rows = call("summary", trace, "--format", "json").answer["kernels"]
    return {row["name"]: row["median_ns"] for row in rows}


def test_a_file_changed_within_its_size_and_time_is_read_anew(trace: Path, cache: Path, call: Run) -> None:
    before = trace.stat()
    assert medians(call, trace)["first"] == 1000
    with closing(sqlite3.connect(trace)) as connection:
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 7")
        connection.commit()
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = trace.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert medians(call, trace)["first"] == 1007


def test_another_file_under_the_same_name_is_read_anew(trace: Path, cache: Path, call: Run) -> None:
    before = trace.stat()
    assert set(medians(call, trace)) == {"first", "second"}
    other = [(start, end, stream, name.replace("first", "third")) for start, end, stream, name in KERNELS]
    replacement = steps(other, graphs=True).write(trace.with_name("new.sqlite"))
    assert replacement.stat().st_size == before.st_size
    os.utime(replacement, ns=(before.st_atime_ns, before.st_mtime_ns))
    replacement.replace(trace)
    assert set(medians(call, trace)) == {"third", "second"}


def test_commits_that_are_still_in_the_log_are_read(trace: Path, cache: Path, call: Run) -> None:
    with closing(sqlite3.connect(trace)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert medians(call, trace)["first"] == 1000
    with closing(sqlite3.connect(trace)) as writer:
        writer.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 7")
        writer.commit()
        assert medians(call, trace)["first"] == 1007


def test_processes_that_ask_at_once_get_the_same(trace: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "tracekit", "summary", str(trace), "--format", "json"]
    environment = {**os.environ, "TRACEKIT_CACHE": str(cache)}
    asking = [subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True) for _ in range(3)]
    ended = [process.communicate() for process in asking]
    assert [process.returncode for process in asking] == [0, 0, 0]
    assert len(set(ended)) == 1
    assert not [path for path in kept(cache) if path.name.endswith(".part")]


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * 20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def lose(path: Path) -> None:
    path.unlink()


def other_json(path: Path) -> None:
    path.write_text('{"kernels": 5}')


@pytest.mark.parametrize("spoil", [garbage, empty, halve, lose, other_json])
@pytest.mark.parametrize("which", ["*", "*.parquet", "*.json", "kernels.parquet", "facts.json"])
def test_spoilt_files_in_the_cache_are_made_again(
    trace: Path, cache: Path, call: Run, spoil: Callable[[Path], None], which: str
) -> None:
    first = answers(call, trace)
    chosen = [path for path in kept(cache) if path.match(which)]
    assert chosen
    for path in chosen:
        spoil(path)
    for path in kept(cache):
        if path.name == "answer.json" and which != "*.json":
            path.unlink()
    assert answers(call, trace) == first
    assert answers(call, trace) == first


@pytest.mark.parametrize("place", ["file/cache", "file", "full"])
def test_without_a_cache_folder_the_answers_are_the_same(
    trace: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    first = answers(call, trace)
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir(mode=0o555)
    monkeypatch.setenv("TRACEKIT_CACHE", str(tmp_path / place))
    assert answers(call, trace) == first
    assert (tmp_path / "file").read_bytes() == b""
