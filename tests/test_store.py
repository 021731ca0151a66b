"""The results database: what is filed comes back, whatever else happens to the file."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from field_notation import diff_of, steps
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from output_reading import csv_rows, markdown_tables

from tracekit import results_file, store
from tracekit.analysis.results import ArmLine, Diff
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.report.json import json_schema

RUN: dict[str, Any] = {
    "time": "2026-03-01T12:00:00+02:00",
    "workload": "prefill",
    "folder": "20260301-prefill",
    "command": ["python", "bench.py", "--model", "a model"],
    "arms": ["on", "off"],
    "gpu": "NVIDIA GB10",
    "versions": {"mlx": "0.30.0", "nsys": None},
    "wall_ns": {"on": [6_800_000_000, 6_700_000_000, 6_600_000_000], "off": [3_110_000_000]},
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "results.db"


@pytest.fixture
def answer(tmp_path: Path) -> Diff:
    """``k`` takes 1 us and 2 us, ``only_on`` ran in a alone, ``only_off`` in b alone."""
    a = steps([(0, 1000, 7, "k"), (2000, 3000, 7, "only_on")], graphs=True)
    b = steps([(0, 2000, 7, "k"), (3000, 4000, 7, "only_off")], graphs=False)
    return diff_of(a, b, tmp_path)


def stored(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def count(path: Path, table: str) -> int:
    return int(stored(path, f"SELECT count(*) FROM {table}")[0][0])


def test_a_run_comes_back_as_it_was_filed(db: Path) -> None:
    assert store.file_run(RUN, db) is None
    (entry,) = store.read_history(db=db).entries
    assert entry.kind == "run"
    assert entry.time.startswith("2026-03-01T10:00:00")
    for field in ("workload", "folder", "command", "arms", "versions", "wall_ns"):
        assert getattr(entry, field) == RUN[field], field
    assert entry.gpus == ["NVIDIA GB10"]


def test_only_what_is_named_is_stored(db: Path) -> None:
    store.file_run({**RUN, "environment": {"TOKEN": "hunter2"}, "host": "hunter2"}, db)
    assert b"hunter2" not in db.read_bytes()


def test_a_comparison_comes_back_as_it_was_filed(db: Path, answer: Diff) -> None:
    assert store.file_diff(answer, "prefill", db) is None
    history = store.read_history(compare=True, kernel=".", db=db)
    (entry,) = history.entries
    assert (entry.kind, entry.workload, entry.winner) == ("diff", "prefill", answer.verdict.winner)
    assert entry.roles == {line.arm: line.role for line in answer.arms}
    assert history.phases is not None and history.kernels is not None
    assert [point.name for point in history.phases] == [phase.name for phase in answer.phases]
    for point, phase in zip(history.phases, answer.phases, strict=True):
        assert (point.time_ns_a, point.time_ns_b) == (phase.time_ns_a, phase.time_ns_b)
        assert (point.ratio, point.ci95, point.winner) == (phase.ratio, phase.ci95, phase.verdict.winner)
    by_name = {point.kernel.short_name: point for point in history.kernels}
    assert set(by_name) == {"k", "only_on", "only_off"}
    assert (by_name["k"].median_ns_a, by_name["k"].median_ns_b) == (1000, 2000)
    assert (by_name["only_on"].median_ns_a, by_name["only_on"].median_ns_b) == (1000, None)
    assert (by_name["only_off"].median_ns_a, by_name["only_off"].median_ns_b) == (None, 1000)
    assert by_name["only_on"].role_b is None and by_name["only_off"].role_b == "eager"


def test_an_arm_of_several_blocks_is_one_arm_with_several_traces(db: Path, answer: Diff) -> None:
    import msgspec

    on, off = answer.arms
    blocks: list[ArmLine] = [msgspec.structs.replace(on, path="second"), off]
    store.file_diff(msgspec.structs.replace(answer, arms=[on, *blocks]), "prefill", db)
    history = store.read_history(compare=True, db=db)
    assert history.entries[0].arms == ["a", "b"]
    assert history.entries[0].traces == {"a": [on.path, "second"], "b": [off.path]}
    assert len(history.phases or []) == len(answer.phases)


def test_entries_stand_newest_first(db: Path) -> None:
    for day in (3, 1, 2):
        store.file_run({**RUN, "time": f"2026-03-0{day}T12:00:00Z", "folder": str(day)}, db)
    assert [entry.folder for entry in store.read_history(db=db).entries] == ["3", "2", "1"]


def test_the_same_result_of_the_same_traces_is_one_point_of_the_trend(db: Path, answer: Diff) -> None:
    for _ in range(3):
        store.file_diff(answer, "prefill", db)
    history = store.read_history(compare=True, db=db)
    assert len(history.entries) == 3
    assert len(history.phases or []) == len(answer.phases)


def test_one_workload_of_several(db: Path, answer: Diff) -> None:
    store.file_run(RUN, db)
    store.file_diff(answer, "decode", db)
    assert [entry.kind for entry in store.read_history("prefill", db=db).entries] == ["run"]
    assert store.read_history("prefill", compare=True, db=db).phases == []
    assert store.read_history("decode", compare=True, db=db).phases
    with pytest.raises(WrongUsage, match="decode, prefill"):
        store.read_history("Prefill", db=db)


def test_a_database_that_does_not_exist_is_empty_and_not_created(db: Path) -> None:
    history = store.read_history(db=db)
    assert (history.entries, [warning.code for warning in history.warnings]) == ([], ["nothing_filed"])
    assert not db.parent.exists()


def test_the_database_is_named_or_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_DB", str(tmp_path / "from-environment.db"))
    assert results_file.database_path() == tmp_path / "from-environment.db"
    assert results_file.database_path(tmp_path / "named.db") == tmp_path / "named.db"
    monkeypatch.delenv("TRACEKIT_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert results_file.database_path().name == "results.db"


FILE_OFTEN = """
import sys
from pathlib import Path
import msgspec
from tracekit import results_file, store
from tracekit.analysis.results import Diff
answer = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Diff)
for _ in range(20):
    if problem := store.file_diff(answer, sys.argv[3], Path(sys.argv[2])):
        sys.exit(problem)
"""


def test_several_processes_file_at_once_into_a_database_that_none_has_made(
    db: Path, answer: Diff, tmp_path: Path
) -> None:
    import msgspec

    given = tmp_path / "answer.json"
    given.write_bytes(msgspec.json.encode(answer))
    writers = [
        subprocess.Popen([sys.executable, "-c", FILE_OFTEN, given, db, name], stderr=subprocess.PIPE, text=True)
        for name in "wxyz"
    ]
    said = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * len(writers), said
    filed = dict(stored(db, "SELECT workload, count(*) FROM diffs GROUP BY workload"))
    assert filed == dict.fromkeys("wxyz", 20)
    assert count(db, "arms") == 80 * len(answer.arms)
    assert count(db, "phases") == 80 * len(answer.phases)
    assert stored(db, "PRAGMA integrity_check") == [("ok",)]


def test_a_filing_that_fails_halfway_leaves_nothing(db: Path, answer: Diff) -> None:
    store.file_diff(answer, "prefill", db)
    before = [count(db, table) for table in ("diffs", "arms", "phases", "kernels")]
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON kernels BEGIN SELECT RAISE(ABORT, 'no room'); END")
    problem = store.file_diff(answer, "prefill", db)
    assert problem is not None and "no room" in problem and "\n" not in problem
    assert [count(db, table) for table in ("diffs", "arms", "phases", "kernels")] == before


def test_a_locked_database_is_waited_for_and_then_told(db: Path, answer: Diff, monkeypatch: pytest.MonkeyPatch) -> None:
    store.file_run(RUN, db)
    monkeypatch.setattr(results_file, "PATIENCE_S", 0.05)
    with closing(sqlite3.connect(db)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "another process is writing" in (store.file_diff(answer, "prefill", db) or "")
    assert store.file_diff(answer, "prefill", db) is None


def text_file(path: Path) -> None:
    path.write_text("not a database at all\n" * 50)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
        connection.execute("PRAGMA user_version = 1")


def foreign_database_with_a_log(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE runs (id INTEGER)")


def newer_database(path: Path) -> None:
    store.file_run(RUN, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def cut_database(path: Path) -> None:
    store.file_run(RUN, path)
    path.write_bytes(path.read_bytes()[: 3 * 4096])


def overwritten_database(path: Path) -> None:
    store.file_run(RUN, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


def folder(path: Path) -> None:
    path.mkdir()


Spoil = Callable[[Path], None]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (text_file, "not a SQLite database"),
        (foreign_database, "not one of tracekit's"),
        (foreign_database_with_a_log, "not one of tracekit's"),
        (newer_database, "newer tracekit"),
        (cut_database, "cannot be used"),
        (overwritten_database, "cannot be used"),
        (folder, "cannot be used"),
    ],
)
def test_what_is_no_results_database_is_refused_in_one_line_and_stays_as_it_is(
    spoil: Spoil, told: str, tmp_path: Path, answer: Diff, call: Run
) -> None:
    path = tmp_path / "spoilt.db"
    spoil(path)
    before = {file.name: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()}
    ran = call("history", "--db", path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert told in ran.err and "--db" in ran.err
    for problem in (store.file_run(RUN, path), store.file_diff(answer, "prefill", path)):
        assert problem is not None and told in problem and "\n" not in problem
    assert {file.name: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_older_database_is_migrated_with_what_it_holds(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.file_run(RUN, db)
    monkeypatch.setattr(
        results_file, "MIGRATIONS", (*results_file.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN added TEXT",))
    )
    assert len(store.read_history(db=db).entries) == 1
    assert stored(db, "PRAGMA user_version") == [(len(results_file.MIGRATIONS),)]
    assert stored(db, "SELECT added FROM runs") == [(None,)]


def test_a_migration_that_fails_changes_nothing(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.file_run(RUN, db)
    before = db.read_bytes()
    bad = ("ALTER TABLE runs ADD COLUMN added TEXT", "ALTER TABLE absent ADD COLUMN added TEXT")
    monkeypatch.setattr(results_file, "MIGRATIONS", (*results_file.MIGRATIONS, bad))
    with pytest.raises(UnusableInput, match="absent"):
        store.read_history(db=db)
    assert db.read_bytes() == before


@pytest.mark.parametrize("run", [{}, {**RUN, "time": "yesterday"}, {**RUN, "arms": None}, {**RUN, "folder": "\udc80"}])
def test_a_run_that_cannot_be_filed_is_a_line_and_no_failure(db: Path, run: dict[str, Any]) -> None:
    problem = store.file_run(run, db)
    assert problem is not None and "\n" not in problem and "move it away" not in problem
    assert store.read_history(db=db).entries == []


def test_a_place_that_cannot_be_written_is_a_line_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = store.file_run(RUN, tmp_path / "file" / "results.db")
    assert problem is not None and "\n" not in problem


@pytest.mark.parametrize(
    ("asked", "main_list"),
    [((), "entries"), (("--compare",), "phases"), (("--compare", "--kernel", "only|^k$"), "kernels")],
)
def test_history_in_every_form(db: Path, answer: Diff, call: Run, asked: tuple[str, ...], main_list: str) -> None:
    store.file_run(RUN, db)
    store.file_diff(answer, "prefill", db)
    ask = ("history", "--db", db, *asked)
    found = call(*ask, "--format", "json").answer
    Draft202012Validator(json_schema()).validate(found)
    assert len(csv_rows(call(*ask, "--format", "csv").out)) == len(found[main_list]) > 0
    assert markdown_tables(call(*ask, "--format", "markdown").out)
    assert "prefill" in call(*ask).out


def test_history_shows_what_a_person_wants_to_see(db: Path, answer: Diff, call: Run) -> None:
    store.file_run(RUN, db)
    store.file_diff(answer, "prefill", db)
    listed = call("history", "--db", db).out
    assert "2026-03-01 10:00:00" in listed
    assert "on 6.70 s, off 3.11 s" in listed
    assert "a.sqlite against b.sqlite" in listed
    trend = call("history", "prefill", "--db", db, "--compare", "--kernel", "^k$").out
    assert "prefill: step" in trend
    assert "1.00 us" in trend and "2.00 us" in trend
    assert "only_on" not in trend


def test_history_of_nothing_says_so(db: Path, call: Run) -> None:
    ran = call("history", "--db", db)
    assert ran.code == 0
    assert "nothing is filed here yet" in ran.out
    assert json.loads(call("history", "--db", db, "--format", "json").out)["entries"] == []


def test_history_of_no_comparison_says_so(db: Path, call: Run) -> None:
    store.file_run({**RUN, "wall_ns": {"on": [], "off": []}}, db)
    assert "no comparison with phases is filed" in call("history", "--db", db, "--compare").out
    assert call("history", "--db", db).out.splitlines()[3].split()[-1] == "-"


def test_a_name_with_a_line_break_stays_on_its_line(db: Path, call: Run) -> None:
    store.file_run({**RUN, "workload": "two\nlines"}, db)
    assert "two?lines" in call("history", "--db", db).out
    assert call("history", "--db", db, "other").err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("nothing-like-it",), ("--kernel", "k"), ("--compare", "--kernel", "("), ("-o", "results.db", "--force")],
    ids=" ".join,
)
def test_wrong_usage_of_history(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    store.file_run(RUN, Path("results.db"))
    before = Path("results.db").read_bytes()
    ran = call("history", "--db", "results.db", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert Path("results.db").read_bytes() == before
