"""Reading tables: decoded pages and plain SQL give the same frame, whatever the values and the layout."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_building import build, integers, plain_reading, read_both_ways, watched_decoding

from tracekit.trace.sqlite_file import SqliteFile

TRACES = Path(__file__).parents[2] / "shared" / "traces"
SMALLEST, LARGEST = -(2**63), 2**63 - 1
POWERS = [sign * 2**bits for bits in (0, 1, 7, 8, 15, 23, 31, 47, 62) for sign in (1, -1)]
EVERY_WIDTH = [None, *POWERS, *(power - 1 for power in POWERS), SMALLEST, LARGEST]
PAGE_SIZES = [1 << bits for bits in range(9, 17)]


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not beside the repository")
def test_every_integer_column_of_real_traces() -> None:
    for path in sorted(TRACES.glob("*.sqlite")):
        with SqliteFile(path) as file:
            wanted = {
                table: {name: pl.Int64 for name, declared in columns.items() if declared.upper() == "INTEGER"}
                for table, columns in file.tables().items()
            }
            wanted = {table: columns for table, columns in wanted.items() if columns}
            with watched_decoding() as decoded:
                frames = {table: file.read(table, columns) for table, columns in wanted.items()}
            assert len(decoded) == len(frames)
            with plain_reading():
                for table, frame in frames.items():
                    assert frame.equals(file.read(table, wanted[table])), (path.name, table)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_all_widths_on_every_page_size(tmp_path: Path, page_size: int) -> None:
    rows = [(value, None, key) for key, value in enumerate(EVERY_WIDTH * 40)]
    create = f"PRAGMA page_size = {page_size}", "CREATE TABLE t (v INTEGER, empty INTEGER, w INTEGER)"
    path = build(tmp_path / "f", *create, rows=rows)
    frame, decoded = read_both_ways(path, "t", {"w": pl.Int64, "empty": pl.Int64, "v": pl.Int64})
    assert decoded
    assert frame.rows() == [(key, None, value) for value, _, key in rows]


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(SMALLEST, LARGEST),
            st.text(max_size=200),
            st.none() | st.integers(-200, 200),
        ),
        max_size=200,
    ),
    page_size=st.sampled_from(PAGE_SIZES[1:4]),
)
@settings(max_examples=40, deadline=None)
def test_any_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, str, int | None]], page_size: int
) -> None:
    create = f"PRAGMA page_size = {page_size}", "CREATE TABLE t (a INTEGER, b TEXT, c INTEGER)"
    path = build(tmp_path_factory.mktemp("any") / "f", *create, rows=rows)
    frame, _ = read_both_ways(path, "t", {"a": pl.Int64, "b": pl.String, "c": pl.Int64})
    assert frame.rows() == rows


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows(tmp_path: Path, count: int) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)", rows=[(7,)] * count)
    assert integers(path) == ([7] * count, True)


def test_values_of_other_types_are_null_and_counted(tmp_path: Path) -> None:
    values = [None, 1, 2.0, 2.5, 1e300, -(2.0**63), 2.0**63, float("inf"), "7", "x", b"\1"]
    path = build(tmp_path / "f", "CREATE TABLE t (v, w INTEGER)", rows=[(value, 5) for value in values])
    assert integers(path) == ([None, 1, 2, None, None, SMALLEST, *[None] * 5], False)
    with SqliteFile(path) as file:
        file.read("t", {"v": pl.Int64, "w": pl.Int64})
        file.query("SELECT v FROM t WHERE typeof(v) = ?", ("real",), {"v": pl.Int64})
        assert file.unreadable == {("t", "v"): 7, ("", "v"): 4}
        assert file.read("t", {"v": pl.Float64})["v"].to_list() == [None, *values[1:8], None, None, None]
        assert file.unreadable["t", "v"] == 3
        texts = file.read("t", {"v": pl.String})["v"].to_list()
        assert texts == [None, "1", "2.0", "2.5", "1e+300", *map(str, values[5:8]), "7", "x", None]
        assert file.unreadable["t", "v"] == 1


def test_a_column_that_changes_type_after_many_nulls(tmp_path: Path) -> None:
    values = [None] * 100_000 + [3, "x", LARGEST]
    path = build(tmp_path / "f", "CREATE TABLE t (v)", rows=[(value,) for value in values])
    assert integers(path) == ([None] * 100_000 + [3, None, LARGEST], False)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v TEXT)", "INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT))")
    with SqliteFile(path) as file:
        assert file.read("t", {"v": pl.String})["v"].to_list() == ["a\ufffdb"]


def test_utf16_and_quoted_names(tmp_path: Path) -> None:
    table, column = "a \"table' é", 'sel"ect'
    create = '"a ""table\' é" ("sel""ect" INTEGER, s TEXT)'
    path = build(tmp_path / "f", "PRAGMA encoding = 'UTF-16le'", f"CREATE TABLE {create}")
    build(path, rows=[(1, "ä"), (2, "b")], into='"a ""table\' é"')
    frame, decoded = read_both_ways(path, table, {"s": pl.String, column: pl.Int64})
    assert (frame.rows(), decoded) == ([("ä", 1), ("b", 2)], True)
    with SqliteFile(path) as file:
        assert file.tables() == {table: {column: "INTEGER", "s": "TEXT"}}


LAYOUTS: dict[str, tuple[list[str], list[int | None], bool]] = {
    "row id as key": (
        ["CREATE TABLE t (w TEXT, v INTEGER PRIMARY KEY)", "INSERT INTO t (v) VALUES (-5), (3)"],
        [-5, 3],
        True,
    ),
    "descending key, which is not the row id": (
        ["CREATE TABLE t (v INTEGER PRIMARY KEY DESC)", "INSERT INTO t VALUES (3), (9), (-5)"],
        [3, 9, -5],
        True,
    ),
    "key not declared INTEGER": (
        ["CREATE TABLE t (v INT PRIMARY KEY)", "INSERT INTO t VALUES (3), (NULL), (-5)"],
        [3, None, -5],
        True,
    ),
    "key of two columns": (
        ["CREATE TABLE t (v INTEGER, w, PRIMARY KEY (v, w))", "INSERT INTO t VALUES (3, 1), (2, 0)"],
        [3, 2],
        True,
    ),
    "without row ids": (
        ["CREATE TABLE t (v INTEGER PRIMARY KEY) WITHOUT ROWID", "INSERT INTO t VALUES (3), (-5)"],
        [-5, 3],
        False,
    ),
    "extreme row ids": (
        [
            "CREATE TABLE t (v INTEGER)",
            f"INSERT INTO t (rowid, v) VALUES ({SMALLEST}, 1), (-1, 2), (0, 3), ({LARGEST}, 4)",
        ],
        [1, 2, 3, 4],
        True,
    ),
    "column added later": (
        ["CREATE TABLE t (w)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD v INTEGER DEFAULT 8"],
        [8],
        False,
    ),
    "column added later, after long text": (
        [
            "CREATE TABLE t (w)",
            f"INSERT INTO t VALUES (char(8) || '{'x' * 300}')",
            "ALTER TABLE t ADD v DEFAULT 8",
        ],
        [8],
        False,
    ),
    "another column added later": (
        ["CREATE TABLE t (w, v INTEGER)", "INSERT INTO t VALUES ('a', 1)", "ALTER TABLE t ADD x DEFAULT 8"],
        [1],
        True,
    ),
    "stored generated column": (
        [
            "CREATE TABLE t (w INTEGER, g AS (w + 1), v INTEGER AS (w + 2) STORED, x)",
            "INSERT INTO t VALUES (1, 0)",
        ],
        [3],
        True,
    ),
    "virtual generated column": (
        ["CREATE TABLE t (w INTEGER, v INTEGER AS (w + 1), x)", "INSERT INTO t VALUES (1, 0)"],
        [2],
        False,
    ),
    "index in another order": (
        [
            "CREATE TABLE t (v INTEGER, w TEXT, x TEXT, y TEXT)",
            "CREATE INDEX i ON t (v)",
            "INSERT INTO t (v) VALUES (3), (1), (2)",
        ],
        [3, 1, 2],
        True,
    ),
    "long text before": (
        ["CREATE TABLE t (w TEXT, v INTEGER)", f"INSERT INTO t VALUES ('{'x' * 300}', 4), ('', 5)"],
        [4, 5],
        True,
    ),
    "overflow pages before": (
        ["CREATE TABLE t (w TEXT, v INTEGER)", f"INSERT INTO t VALUES ('{'x' * 9000}', 4), ('', 5)"],
        [4, 5],
        False,
    ),
    "overflow pages after": (
        ["CREATE TABLE t (v INTEGER, w TEXT)", f"INSERT INTO t VALUES (4, '{'x' * 9000}'), (5, '')"],
        [4, 5],
        True,
    ),
    "auto-vacuum": (
        ["PRAGMA auto_vacuum = FULL", "CREATE TABLE t (v INTEGER)", "INSERT INTO t VALUES (6)"],
        [6],
        True,
    ),
    "two hundred columns": (
        [f"CREATE TABLE t ({', '.join(f'c{n}' for n in range(200))}, v)", "INSERT INTO t (v) VALUES (1)"],
        [1],
        False,
    ),
}


@pytest.mark.parametrize(("script", "expected", "decoded"), LAYOUTS.values(), ids=LAYOUTS)
def test_table_layouts(tmp_path: Path, script: list[str], expected: list[int | None], decoded: bool) -> None:
    assert integers(build(tmp_path / "f", *script)) == (expected, decoded)


def test_a_deep_tree_with_gaps_that_is_read_in_several_blocks(tmp_path: Path) -> None:
    path = build(
        tmp_path / "f",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (v INTEGER, pad TEXT)",
        rows=[(value * 2**32, "x" * 300) for value in range(40_000)],
    )
    build(path, "DELETE FROM t WHERE rowid % 7 < 3 OR rowid BETWEEN 9000 AND 10000", rows=[(1, "")])
    kept = [n for n in range(40_000) if (n + 1) % 7 >= 3 and not 9000 <= n + 1 <= 10000]
    assert integers(path) == ([n * 2**32 for n in kept] + [1], True)


def test_interleaved_tables(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "CREATE TABLE t (v INTEGER)", "CREATE TABLE u (v INTEGER)")
    for first in range(0, 20_000, 1000):
        for table in "tu":
            build(path, rows=[(value,) for value in range(first, first + 1000)], into=table)
    assert integers(path) == (list(range(20_000)), True)


def test_reserved_bytes_at_the_end_of_pages(tmp_path: Path) -> None:
    path = build(tmp_path / "f", "PRAGMA page_size = 512", "PRAGMA user_version = 1")
    header = bytearray(path.read_bytes())
    header[20], header[105:107] = 32, (512 - 32).to_bytes(2)
    path.write_bytes(header)
    build(path, "CREATE TABLE t (v INTEGER, w TEXT)", rows=[(n, "x" * 100) for n in range(500)])
    assert path.read_bytes()[20] == 32
    assert integers(path) == (list(range(500)), True)


def test_tables_leave_out_views_and_internal_tables(tmp_path: Path) -> None:
    path = build(
        tmp_path / "f",
        "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT, c)",
        "CREATE VIEW w AS SELECT a FROM t",
        "CREATE VIRTUAL TABLE x USING fts5(y)",
    )
    with SqliteFile(path) as file:
        tables = file.tables()
    assert tables["t"] == {"a": "INTEGER", "b": "TEXT", "c": ""}
    assert not {"w", "x", "sqlite_sequence"} & tables.keys()
