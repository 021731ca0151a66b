"""Opening a file: the input is never touched, and what cannot be read is told in one line."""

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sqlite_building import build, integers

from tracekit.errors import UnusableInput
from tracekit.trace.pages import ROWID, Unsupported, read_integers
from tracekit.trace.sqlite_file import SqliteFile


def run_elsewhere(code: str, *arguments: object) -> "subprocess.Popen[str]":
    """Another process, once it has printed its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def in_wal_mode(path: Path) -> Path:
    return build(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (v INTEGER)", rows=[(1,), (2,)])


@pytest.mark.parametrize(
    "name", ["plain", "a b", "q?mode=rwc", "h#h", "p%41%", "é中.sqlite", "-rf", "quote'\"", ":memory:"]
)
def test_any_name_and_nothing_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    build(tmp_path / name, "CREATE TABLE t (v INTEGER)", rows=[(1,)])
    before = snapshot(tmp_path)
    monkeypatch.chdir(tmp_path)
    with SqliteFile(Path(name)) as file:
        assert file.read("t", {"v": pl.Int64}).rows() == [(1,)]
        assert snapshot(tmp_path) == before
    assert snapshot(tmp_path) == before


def test_read_only_file_in_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = in_wal_mode(folder / "f")
    path.chmod(0o444)
    folder.chmod(0o555)
    before = snapshot(folder)
    assert integers(path) == ([1, 2], True)
    assert snapshot(folder) == before
    folder.chmod(0o755)


@pytest.mark.parametrize("linked", [False, True])
def test_commits_in_the_write_ahead_log_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    private, folder = tmp_path / "private", tmp_path / "folder"
    private.mkdir()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    path = in_wal_mode(folder / "f")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("INSERT INTO t VALUES (3)")
    writer.execute("BEGIN")
    writer.execute("INSERT INTO t VALUES (4)")
    before = snapshot(folder)
    if linked:
        (tmp_path / "link").symlink_to(path)
    assert integers(tmp_path / "link" if linked else path) == ([1, 2, 3], True)
    assert snapshot(folder) == before
    assert list(private.iterdir()) == []
    writer.close()


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_an_empty_log_beside_the_file(tmp_path: Path, mode: str) -> None:
    path = build(in_wal_mode(tmp_path / "f"), f"PRAGMA journal_mode = {mode}")
    (tmp_path / "f-wal").touch()
    before = snapshot(tmp_path)
    with SqliteFile(path) as file:
        assert file.read("t", {"v": pl.Int64})["v"].to_list() == [1, 2]
        assert snapshot(tmp_path) == before
    assert snapshot(tmp_path) == before


def test_locked_by_a_writer(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)")
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
    with run_elsewhere(code + "c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()", path) as writer:
        with pytest.raises(UnusableInput, match="f: another process is writing it"):
            SqliteFile(path)
        writer.communicate("\n")


def test_no_one_writes_while_it_is_read(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)", rows=[(1,)])
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0, isolation_level=None).execute('DELETE FROM t')"
    command = [sys.executable, "-c", code, str(path)]
    with SqliteFile(path) as file:
        file.read("t", {"v": pl.Int64})
        assert "database is locked" in subprocess.run(command, capture_output=True, text=True).stderr
    assert subprocess.run(command).returncode == 0


def test_interrupted_write(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)", rows=[(n,) for n in range(5000)])
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA cache_size = 1');"
        "c.execute('PRAGMA cache_spill = 1'); c.execute('UPDATE t SET v = v + 1'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    before = snapshot(tmp_path)
    assert "f-journal" in before
    with pytest.raises(UnusableInput, match="a write to it was interrupted"):
        SqliteFile(path)
    assert snapshot(tmp_path) == before


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(path.read_bytes())
    os.utime(new, ns=(0, path.stat().st_mtime_ns))
    new.replace(path)


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1024] + bytes(16))


def date_anew(path: Path) -> None:
    os.utime(path, (1, 1))


@pytest.mark.parametrize("change", [grow, replace, spoil, date_anew])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)", rows=[(1,)])
    with SqliteFile(path) as file:
        change(path)
        with pytest.raises(UnusableInput, match="another process is writing it"):
            file.read("t", {"v": pl.Int64})


def whole_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        create = (
            "CREATE TABLE t (v INTEGER, w TEXT)",
            "CREATE TABLE u (v INTEGER PRIMARY KEY, w REAL, x BLOB)",
        )
        path = build(Path(folder, "f"), *create, rows=[(n, "x" * 40) for n in range(1000)])
        return build(path, rows=[(n, n / 2, b"y" * 30 * n) for n in range(60)], into="u").read_bytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"start,end\n1,2\n", "not a SQLite file"),
        (b"SQLite f", "cut short"),
        (b"SQLite format 3\0", "cut short"),
        (whole_file()[:4096], "cut short"),
        (whole_file()[:-1], "cut short"),
        (
            whole_file().replace(b"CREATE TABLE t", b"CREATE \xff\xff\xff\xff\xff t").replace(b"tablet", b"table\xff"),
            "damaged",
        ),
        (whole_file()[:4096] + bytes(len(whole_file()) - 4096), "damaged"),
    ],
)
def test_unusable_content(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.sqlite"
    path.write_bytes(content)
    before = snapshot(tmp_path)
    with pytest.raises(UnusableInput, match=rf"bad\.sqlite: .*{said}") as caught, SqliteFile(path) as file:
        file.read("t", {"v": pl.Int64})
    assert "\n" not in str(caught.value)
    assert snapshot(tmp_path) == before


def test_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"absent: no such file"):
        SqliteFile(tmp_path / "absent")
    with pytest.raises(UnusableInput, match="a folder"):
        SqliteFile(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnusableInput, match="not a regular file"):
        SqliteFile(tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_not_permitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)")
    path.chmod(0)
    if os.geteuid() == 0:
        # Root may read all: stand in for the refusal that others get.
        def refused(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refused)
    with pytest.raises(UnusableInput, match="f: no permission to read it"):
        SqliteFile(path)


def damaged(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice([1, 2, 5, 30])):
        page = chance.randrange(len(content) // 4096) * 4096
        at = page + chance.choice([chance.randrange(4096), chance.randrange(110), chance.randrange(16)])
        length = chance.choice([1, 1, 4, 200])
        changed[at : at + length] = chance.choice([bytes(length), b"\xff" * length, chance.randbytes(length)])
    return bytes(changed[: len(content)] if chance.random() < 0.9 else changed[: chance.randrange(len(content))])


def test_damage_gives_a_frame_or_one_clear_error(tmp_path: Path) -> None:
    path, chance, content = tmp_path / "f", random.Random(5), whole_file()
    seen = set()
    for _ in range(250):
        path.write_bytes(damaged(content, chance))
        try:
            with SqliteFile(path) as file:
                for table, columns in file.tables().items():
                    file.read(table, dict.fromkeys(columns, pl.Int64))
                    file.read(table, dict.fromkeys(columns, pl.String))
            seen.add("frame")
        except UnusableInput as error:
            assert "\n" not in str(error)
            seen.add("error")
        descriptor = os.open(path, os.O_RDONLY)
        for root in range(1, 6):
            try:
                read_integers(descriptor, root, {"v": 0, "row": ROWID})
            except Unsupported:
                seen.add("unsupported")
        os.close(descriptor)
    assert seen == {"frame", "error", "unsupported"}
