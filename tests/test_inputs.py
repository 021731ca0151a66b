"""Inputs that cannot be used: one clear line, exit code 3, and nothing is created or changed."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Ran, Run
from field_notation import steps

COMMANDS = ("summary", "overlap", "info", "diff")


def valid() -> bytes:
    """The bytes of an export of several pages."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = [(index * 100, index * 100 + 50, 7, f"kernel number {index}") for index in range(40)]
        return steps(kernels, graphs=False).write(Path(folder, "t.sqlite")).read_bytes()


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)")
        connection.commit()


def of_bytes(content: Callable[[], bytes]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content())

    return make


def folder_with(name: str | None) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        if name:
            (path / name).write_bytes(b"not what its name says")

    return make


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"

BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "first page of an export": (of_bytes(lambda: valid()[:4096]), "cut short"),
    "export without its last byte": (of_bytes(lambda: valid()[:-1]), "cut short"),
    "export whose pages are blank": (of_bytes(lambda: valid()[:4096] + bytes(len(valid()) - 4096)), "damaged"),
    "empty file": (of_bytes(lambda: b""), "empty"),
    "Git LFS pointer": (of_bytes(lambda: LFS_POINTER), "git lfs pull"),
    "text": (of_bytes(lambda: b"start,end\n1,2\n"), "not a SQLite file"),
    "database of another program": (foreign, "not an nsys export"),
    "empty database": (of_bytes(lambda: b"SQLite format 3\0"), "cut short"),
    "no such file": (lambda path: None, "no such file"),
    "empty folder": (folder_with(None), "without Parquet files"),
    "folder of other files": (folder_with("notes.txt"), "without Parquet files"),
    "folder of broken tables": (folder_with("StringIds.parquet"), "not a readable Parquet file"),
    "pipe": (os.mkfifo, "not a regular file"),
}


def snapshot(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def one_clear_line(ran: Ran, said: str) -> bool:
    """The way every failure of an input ends."""
    (line,) = ran.err.splitlines()
    return (ran.code, ran.out) == (3, "") and line.startswith("tracekit: ") and said in line and line.isprintable()


@pytest.mark.parametrize("kind", BAD)
def test_every_command_refuses_in_one_line_and_touches_nothing(tmp_path: Path, call: Run, kind: str) -> None:
    make, said = BAD[kind]
    good, bad = tmp_path / "good.sqlite", tmp_path / "bad.sqlite"
    good.write_bytes(valid())
    make(bad)
    before = snapshot(tmp_path)
    for arguments in (
        *((command, bad, *([good] if command == "diff" else [])) for command in COMMANDS),
        ("diff", good, bad),
        ("diff", good, good, bad),
        ("overlap", good, "--baseline", bad),
        ("summary", bad, "--no-cache"),
        ("summary", bad, "--format", "json", "--output", tmp_path / "out.json"),
    ):
        ran = call(*arguments)
        assert one_clear_line(ran, said), (arguments, ran)
        assert "bad.sqlite" in ran.err
        assert snapshot(tmp_path) == before, arguments


@pytest.mark.parametrize("kind", ["first page of an export", "no such file"])
def test_a_process_refuses_without_a_traceback(tmp_path: Path, run: Run, kind: str) -> None:
    make, said = BAD[kind]
    make(tmp_path / "bad.sqlite")
    before = snapshot(tmp_path)
    assert one_clear_line(run("summary", "bad.sqlite", cwd=tmp_path), said)
    assert snapshot(tmp_path) == before


def test_a_missing_folder_is_not_made(tmp_path: Path, call: Run) -> None:
    assert one_clear_line(call("info", tmp_path / "absent" / "t.sqlite"), "no such file")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_terminal_should_print(tmp_path: Path, call: Run) -> None:
    ran = call("info", tmp_path / "two\nlines\x1b[31m.sqlite")
    assert one_clear_line(ran, "no such file")


def test_an_export_that_another_process_writes(tmp_path: Path, call: Run) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(valid())
    before = snapshot(tmp_path)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        answers = [call(name, path, *([path] if name == "diff" else []), "--no-cache") for name in COMMANDS]
        writer.communicate("\n")
    assert all(one_clear_line(ran, "another process is writing it") for ran in answers)
    assert snapshot(tmp_path) == before


def test_reading_leaves_the_input_and_its_folder_alone(tmp_path: Path, call: Run) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "t.sqlite"
    path.write_bytes(valid())
    os.utime(path, ns=(10**18, 10**18))
    path.chmod(0o444)
    folder.chmod(0o555)
    before = snapshot(folder)
    for command in COMMANDS:
        assert call(command, path, *([path] if command == "diff" else [])).code == 0
    assert snapshot(folder) == before
    folder.chmod(0o755)


def test_a_trace_may_be_named_from_its_own_folder_or_by_a_link(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t.sqlite").write_bytes(valid())
    (tmp_path / "link.sqlite").symlink_to("t.sqlite")
    direct = run("summary", "t.sqlite", "--format", "csv", cwd=tmp_path)
    assert direct.code == 0
    assert run("summary", tmp_path / "link.sqlite", "--format", "csv").out == direct.out
