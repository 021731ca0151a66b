"""What exports hold and leave out: rows that are no ranges, names in two places, tables absent, empty or renamed."""

import sqlite3
from contextlib import chdir, closing
from pathlib import Path

import pytest
from conftest import Run
from field_notation import MS, codes, diff_of, eager, info_of, overlap_of, shown, steps, summary_of
from nsys_export import Export
from nsys_schema import TABLES, create_table
from typer.testing import CliRunner

from tracekit.cli import app

COMMANDS = ("summary", "overlap", "info", "diff")
FORMATS = ("table", "markdown", "json", "csv")


def altered(path: Path, *statements: str) -> Path:
    """The export after some SQL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def working() -> Export:
    """An export with one launched kernel at 1 ms."""
    export = Export()
    eager(export, MS, [(0, 500, 7, "k")])
    return export


@pytest.mark.parametrize("name", ["CCCL", "NCCL", "mine"])
def test_a_domain_row_is_no_range(tmp_path: Path, name: str) -> None:
    export = working()
    export.domain(MS - 5, name)
    export.range(MS - 10, MS + 100, "step")
    answer = info_of(export, tmp_path)
    assert answer.rows["ranges"] == 1
    assert [(each.name, each.kernel_rows) for each in answer.phases] == [("step", 1)]


def test_marks_and_ranges_left_open_are_no_ranges(tmp_path: Path) -> None:
    export = working()
    export.range(MS - 10, None, "never closed")
    export.range(MS - 10, None, "mark", kind=34)
    export.range(MS - 9, MS + 100, "step")
    answer = info_of(export, tmp_path)
    assert answer.rows["ranges"] == 1
    assert [each.name for each in answer.phases] == ["step"]


def test_ranges_of_libraries_are_no_phases(tmp_path: Path) -> None:
    export = working()
    export.range(MS - 20, MS + 200, "reduce", domain="CCCL")
    export.range(MS - 10, MS + 100, "step")
    assert [each.name for each in info_of(export, tmp_path).phases] == ["step"]


def test_names_come_from_the_row_or_from_the_strings(tmp_path: Path) -> None:
    export = Export()
    for index, registered in enumerate((False, True)):
        at = MS + index * 10_000
        eager(export, at, [(0, 500, 7, "k")])
        export.range(at, at + 5000, "registered" if registered else "spelled out", registered=registered)
    eager(export, 2 * MS, [(0, 500, 7, "k")])
    export.range(2 * MS, 2 * MS + 5000, "nameless")
    path = altered(export.write(tmp_path / "t.sqlite"), "UPDATE NVTX_EVENTS SET text = NULL WHERE text = 'nameless'")
    assert {each.name for each in info_of(path, tmp_path).phases} == {"spelled out", "registered", "(unnamed)"}


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("textId", {"spelled out", "(unnamed)"}),
        ("text", {"registered", "(unnamed)"}),
        ("domainId", {"spelled out", "registered"}),
    ],
)
def test_name_columns_may_be_missing(tmp_path: Path, column: str, names: set[str]) -> None:
    export = Export()
    for index, registered in enumerate((False, True)):
        at = MS + index * 10_000
        eager(export, at, [(0, 500, 7, "k")])
        export.range(at, at + 5000, "registered" if registered else "spelled out", registered=registered)
    path = altered(export.write(tmp_path / "t.sqlite"), f"ALTER TABLE NVTX_EVENTS DROP COLUMN {column}")
    assert {each.name for each in info_of(path, tmp_path).phases} == names


@pytest.mark.parametrize(
    ("base", "what"),
    [
        ("NVTX_EVENTS", "ranges"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "kernels"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "calls"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "copies"),
    ],
)
@pytest.mark.parametrize("suffix", ["_V2", "_EXT"])
def test_a_table_with_a_suffix_is_read_and_named(tmp_path: Path, base: str, what: str, suffix: str) -> None:
    export = working()
    export.range(MS - 10, MS + 100, "step")
    export.memcpy(2 * MS, 2 * MS + 10)
    path = altered(export.write(tmp_path / "t.sqlite"), f"ALTER TABLE {base} RENAME TO {base}{suffix}")
    answer = info_of(path, tmp_path)
    assert answer.rows[what] == 1
    assert what not in answer.not_recorded
    assert [(each.name, each.kernel_rows) for each in answer.phases] == [("step", 1)]
    assert f"{base} is read from {base}{suffix}" in shown(answer)


def test_the_newest_version_of_a_table_is_read(tmp_path: Path) -> None:
    path = working().write(tmp_path / "t.sqlite")
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    altered(path, *(f"CREATE TABLE {kernel}_V{n} AS SELECT * FROM {kernel} LIMIT {n - 9}" for n in (9, 10)))
    altered(path, f"DROP TABLE {kernel}")
    assert info_of(path, tmp_path).rows["kernels"] == 1


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "kernels"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "calls"),
        ("NVTX_EVENTS", "ranges"),
        ("META_DATA_CAPTURE", None),
        ("META_DATA_EXPORT", None),
        ("StringIds", None),
        ("ENUM_NSYS_EVENT_TYPE", None),
    ],
)
def test_an_absent_table_is_not_recorded(tmp_path: Path, table: str, what: str | None) -> None:
    export = working()
    export.range(MS - 10, MS + 100, "step")
    path = altered(export.write(tmp_path / "t.sqlite"), f"DROP TABLE {table}")
    answer = info_of(path, tmp_path)
    assert set(answer.not_recorded) == {"copies", "graph executions", *([what] if what else [])}
    for each in (answer, summary_of(path, tmp_path), overlap_of(path, tmp_path), diff_of(path, path, tmp_path)):
        text = shown(each)
        assert "nan" not in text.lower().split()
        assert "None" not in text


def test_empty_tables_answer_as_absent_ones_do(tmp_path: Path) -> None:
    """Lazy exports drop the tables that have no rows; others keep them."""
    lazy = steps([(0, 500, 7, "k"), (200, 700, 8, "k")], graphs=True).write(tmp_path / "lazy.sqlite")
    full = steps([(0, 500, 7, "k"), (200, 700, 8, "k")], graphs=True).write(tmp_path / "full.sqlite")
    with closing(sqlite3.connect(full)) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table in TABLES.keys() - present:
            create_table(connection, table)
        connection.commit()
    for answer in (summary_of, overlap_of):
        one, other = answer(lazy, tmp_path), answer(full, tmp_path)
        assert (one.devices, one.warnings) == (other.devices, other.warnings)
    first, second = info_of(lazy, tmp_path), info_of(full, tmp_path)
    assert (first.rows, first.phases, first.warnings) == (second.rows, second.phases, second.warnings)
    assert second.not_recorded == []
    assert diff_of(lazy, full, tmp_path).phases[0].ratio == 1


def rows_in_every_table() -> Export:
    """Two processes, two devices, graphs, copies, ranges of equal times, and kernels that coincide."""
    export = Export()
    for pid in (1, 2):
        for index in range(12):
            at = MS + index * 100_000
            export.range(at, at + 50_000, f"step {index}", pid=pid, registered=index % 2 == 0)
            export.range(at, at + 50_000, "inner", pid=pid)
            correlation = export.launch(at + 1, at + 100, "cudaGraphLaunch_v10000", pid=pid)
            for node in range(4):
                start = at + 1000 + node // 2 * 10_000
                export.kernel(
                    start, start + 8000 + index, node % 2, f"k{node % 2}",
                    pid=pid, device=pid - 1, correlation=correlation, node=2 << 32 | node,
                )  # fmt: skip
            same = export.launch(at + 200, at + 300, pid=pid)
            for stream in (3, 4):
                export.kernel(at + 30_000, at + 31_000, stream, "same", device=pid - 1, pid=pid, correlation=same)
            export.memcpy(at + 40_000, at + 41_000, pid=pid, device=pid - 1, correlation=same)
            export.kernel(0, 0, name="untimed", pid=pid)
        export.gpu(pid - 1, f"GPU {pid}", pid=pid)
    return export


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", FORMATS)
def test_the_order_of_rows_changes_no_byte_of_any_output(tmp_path: Path, command: str, form: str) -> None:
    outputs = set()
    for seed in (None, 1, 2, 3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rows_in_every_table().write(folder / "trace.sqlite", shuffle=seed)
        traces = ["trace.sqlite"] * (2 if command == "diff" else 1)
        with chdir(folder):
            ran = CliRunner().invoke(app, [command, *traces, "--no-cache", "--format", form])
        assert (ran.exit_code, ran.stderr) == (0, "")
        outputs.add(ran.stdout_bytes)
    assert len(outputs) == 1


def test_processes_print_the_same_for_shuffled_rows(tmp_path: Path, run: Run) -> None:
    """Python hashes strings differently in each process."""
    for folder, seed in (("given", None), ("shuffled", 1)):
        (tmp_path / folder).mkdir()
        rows_in_every_table().write(tmp_path / folder / "trace.sqlite", shuffle=seed)
    arguments = ("diff", "trace.sqlite", "trace.sqlite", "--no-cache")
    outputs = {
        run(*arguments, cwd=tmp_path / folder, env={"PYTHONHASHSEED": seed})
        for folder, seed in (("given", "1"), ("given", "2"), ("shuffled", "3"))
    }
    assert len(outputs) == 1


def test_a_shuffled_trace_is_the_same_as_the_other_arm(tmp_path: Path) -> None:
    for name, seed in (("x", None), ("y", 3)):
        rows_in_every_table().write(tmp_path / f"{name}.sqlite", shuffle=seed)
    answer = diff_of(tmp_path / "x.sqlite", tmp_path / "y.sqlite", tmp_path)
    assert {row.ratio for row in answer.kernels} == {1}
    assert {phase.ratio for phase in answer.phases if phase.time_basis} == {1}
    assert (answer.only_a, answer.only_b) == ([], [])


def test_rows_with_impossible_times_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    export = working()
    for start, end in ((0, 0), (0, 50), (100, 90), (MS, MS - 1), (MS, 1 << 60)):
        export.kernel(start, end, name="k")
    path = altered(
        export.write(tmp_path / "t.sqlite"),
        "CREATE TABLE copied AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "INSERT INTO copied SELECT * FROM copied LIMIT 1",
        "UPDATE copied SET end = NULL WHERE rowid = (SELECT max(rowid) FROM copied)",
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
        "ALTER TABLE copied RENAME TO CUPTI_ACTIVITY_KIND_KERNEL",
    )
    answer = summary_of(path, tmp_path)
    reasons = {"no time": 1, "zero start": 2, "negative duration": 2, "time out of range": 1}
    assert answer.recording.invalid_rows == reasons
    assert [(row.count, row.total_ns) for row in answer.kernels] == [(1, 500)]
    assert codes(answer)["invalid_rows"] == 6
    for each in (answer, overlap_of(path, tmp_path), info_of(path, tmp_path), diff_of(path, path, tmp_path)):
        assert "2 kernel rows left out: zero start" in shown(each)


def test_times_before_the_clocks_zero_are_believed(tmp_path: Path) -> None:
    export = Export()
    eager(export, -MS, [(0, 500, 7, "k")])
    export.kernel(0, 100, name="k", correlation=export.launch(-50, -10))
    answer = summary_of(export, tmp_path)
    assert answer.recording.invalid_rows == {}
    assert answer.devices[0].busy_ns == 600


def test_only_impossible_times_leave_no_kernel_and_no_nan(tmp_path: Path) -> None:
    export = Export()
    export.kernel(100, 90)
    for answer in (summary_of(export, tmp_path), overlap_of(export, tmp_path), diff_of(export, export, tmp_path)):
        text = shown(answer)
        assert "1 kernel rows left out: negative duration" in text
        assert "nan" not in text.lower().split()
