"""Exports in other shapes: a folder of Parquet files, and the tables of each nsys version."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import SHARED, Run
from field_notation import MS, eager, graph, steps
from nsys_export import Export, global_id

COMMANDS = ("summary", "overlap", "info", "diff")
TYPES = {"INTEGER": pl.Int64, "TEXT": pl.String, "REAL": pl.Float64}


def parquet_folder(export: Path, folder: Path) -> Path:
    """The tables of a SQLite export, each as a Parquet file."""
    folder.mkdir()
    with closing(sqlite3.connect(export)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master").fetchall():
            described = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            schema = {name: TYPES[declared] for name, declared in described}
            pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / f"{table}.parquet")
    return folder


def without_paths(answer: Any) -> Any:  # noqa: ANN401
    """The answer with every path blanked."""
    for line in (*answer["traces"], *answer.get("arms", [])):
        line["path"] = ""
    return answer


def everything() -> Export:
    """Graphs, eager launches, copies, ranges of both kinds of name, a GPU, and rows that cannot be."""
    export = Export()
    for index in range(8):
        at = MS + index * 100_000
        export.range(at, at + 90_000, f"step {index}", registered=bool(index % 2), domain="tracekit")
        graph(export, at, [(0, 9000, 7, "k"), (4000, 12_000, 8, "other<int>")])
        eager(export, at + 30_000, [(0, 5000, 7, "k")])
        export.memcpy(at + 60_000, at + 61_000)
    export.kernel(0, 0, name="untimed")
    export.gpu(0, "GPU")
    return export


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shuffle", [None, 4])
def test_a_folder_of_parquet_files_answers_as_the_sqlite_export_does(
    tmp_path: Path, call: Run, command: str, shuffle: int | None
) -> None:
    sqlite = everything().write(tmp_path / "t.sqlite")
    folder = parquet_folder(everything().write(tmp_path / "u.sqlite", shuffle=shuffle), tmp_path / "t")
    before = sorted(tmp_path.rglob("*"))
    expected, found = (
        without_paths(call(command, *[path] * (2 if command == "diff" else 1), "--format", "json").answer)
        for path in (sqlite, folder)
    )
    assert found == expected
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_compares_with_a_sqlite_export(tmp_path: Path, call: Run) -> None:
    sqlite = steps([(0, 1000, 7, "k")], graphs=True).write(tmp_path / "t.sqlite")
    answer = call("diff", parquet_folder(sqlite, tmp_path / "t"), sqlite, "--format", "json").answer
    assert [(row["ratio"], row["count_a"]) for row in answer["kernels"]] == [(1, 8)]


def test_ids_given_as_unsigned_numbers_are_the_same_ids(tmp_path: Path, call: Run) -> None:
    sqlite = everything().write(tmp_path / "t.sqlite")
    folder = parquet_folder(sqlite, tmp_path / "t")
    for file in folder.glob("*.parquet"):
        rows = pl.read_parquet(file)
        ids = [name for name in rows.columns if name.startswith(("global", "graph", "correlation"))]
        rows.with_columns(pl.col(ids).cast(pl.UInt64)).write_parquet(file)
    expected, found = (without_paths(call("info", path, "--format", "json").answer) for path in (sqlite, folder))
    assert found == expected


VERSIONS = sorted((SHARED / "schema").glob("*.sql"))
NEEDS_VERSIONS = pytest.mark.skipif(not VERSIONS, reason="the tables of real versions are not beside the repository")


def filled(ddl: Path, path: Path, *, nullable: bool) -> Path:
    """An export with a version's own tables: five kernels of 500 ns, their calls and a range each.

    Only columns that are NOT NULL have values, but with ``nullable`` those that join rows have too.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ddl.read_text())
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "k"), (2, "cudaLaunchKernel_v7000")])
        for index in range(5):
            at = MS + index * 10_000
            tied = {"correlationId": index + 1, "globalPid": global_id(1), "globalTid": global_id(1, 1)}
            for table, start, end, given in (
                ("CUPTI_ACTIVITY_KIND_KERNEL", at + 100, at + 600, {"demangledName": 1, "shortName": 1}),
                ("CUPTI_ACTIVITY_KIND_RUNTIME", at, at + 50, {"nameId": 2, "returnValue": 0}),
                ("NVTX_EVENTS", at - 10, at + 90, {"eventType": 59}),
            ):
                more = {**tied, "end": end, "text": "step"} if nullable else {}
                insert(connection, table, {**more, "start": start, "end": end, **given})
        connection.commit()
    return path


def insert(connection: sqlite3.Connection, table: str, values: dict[str, object]) -> None:
    """A row with ``values`` where such a column exists, and 1 in every other column that must not be NULL."""
    described = connection.execute('SELECT name, "notnull" FROM pragma_table_info(?)', (table,)).fetchall()
    row = {name: values.get(name, 1) for name, required in described if required or name in values}
    if row:
        names, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))


@NEEDS_VERSIONS
@pytest.mark.parametrize("nullable", [False, True], ids=["bare", "joined"])
@pytest.mark.parametrize("ddl", VERSIONS, ids=lambda path: path.stem)
def test_the_tables_of_each_nsys_version(tmp_path: Path, call: Run, ddl: Path, nullable: bool) -> None:
    path = filled(ddl, tmp_path / "t.sqlite", nullable=nullable)
    answers = {
        command: call(command, *[path] * (2 if command == "diff" else 1), "--format", "json").answer
        for command in COMMANDS
    }
    (kernel,) = answers["summary"]["kernels"]
    assert (kernel["name"], kernel["count"], kernel["median_ns"], kernel["total_ns"]) == ("k", 5, 500, 2500)
    assert [device["busy_ns"] for device in answers["overlap"]["devices"]] == [2500]
    assert [row["ratio"] for row in answers["diff"]["kernels"]] == [1]
    assert answers["info"]["rows"] | {"ranges": 0} == {
        "kernels": 5, "copies": 0, "graph executions": 0, "calls": 5, "ranges": 0,
    }  # fmt: skip
    (process,) = answers["info"]["processes"] if nullable else [None]
    if process is not None and "CREATE TABLE NVTX_EVENTS" in ddl.read_text():
        assert (process["kernel_rows"], process["launches"]) == (5, 5)
        assert [(phase["name"], phase["kernel_rows"]) for phase in answers["info"]["phases"]] == [("step", 5)]


@NEEDS_VERSIONS
@pytest.mark.parametrize("ddl", VERSIONS, ids=lambda path: path.stem)
def test_the_empty_tables_of_each_nsys_version(tmp_path: Path, call: Run, ddl: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ddl.read_text())
    for command in COMMANDS:
        ran = call(command, *[path] * (2 if command == "diff" else 1))
        assert (ran.code, ran.err) == (0, "")
        assert "no kernel was recorded" in ran.out
        assert "nan" not in ran.out.lower().split()
