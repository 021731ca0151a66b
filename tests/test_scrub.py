"""A scrubbed trace tells the same of the work, and nothing of who did it, where and with what."""

import os
import re
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED, Run
from nsys_export import Export

from tracekit.capture.nsys import find_nsys

ROOT = Path(__file__).parents[1]
SAMPLES = sorted((ROOT / "sample_traces").glob("*.sqlite"))
REAL = sorted((SHARED / "traces").glob("*.sqlite"))
SCHEMAS = sorted((SHARED / "schema").glob("*.sql"))

SECRET = "s3cr3t"
PATH_WITH_SECRET = f"/home/{SECRET}/weights"


def beside_the_repository(paths: list[Path], what: str) -> pytest.MarkDecorator:
    absent = [pytest.param(None, marks=pytest.mark.skip(reason=f"../shared/{what} is not beside the repository"))]
    return pytest.mark.parametrize("path", paths or absent, ids=lambda path: path.stem if path else "absent")


def small() -> Export:
    """Two eager kernels in a range, of process 700 and its thread 701."""
    export = Export()
    export.gpu(0, "NVIDIA GB10")
    for start, name in ((100, "void mlx::core::gemm<float>(int*)"), (300, "mlx::core::copy")):
        correlation = export.launch(start, start + 5, pid=700, tid=701)
        export.kernel(start + 10, start + 90, name=name, pid=700, correlation=correlation)
    export.range(90, 400, "prefill", pid=700, tid=701)
    return export


def scrubbed(call: Run, source: Path, target: Path) -> Path:
    ran = call("scrub", source, "-o", target)
    assert (ran.code, ran.err) == (0, ""), ran.err
    return target


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def texts(path: Path) -> set[str]:
    return {value for (value,) in rows(path, "SELECT value FROM StringIds")} | {
        value for (value,) in rows(path, "SELECT text FROM NVTX_EVENTS WHERE text IS NOT NULL")
    }


def assert_agree(original: Any, copy: Any, where: str = "") -> None:  # noqa: ANN401
    """The same answer, but for paths, process numbers and removed names."""
    if isinstance(original, dict):
        assert original.keys() == copy.keys(), where
        for key, value in original.items():
            if key != "path" and not key.startswith("process_") and key != "process":
                assert_agree(value, copy[key], f"{where}.{key}")
    elif isinstance(original, list):
        assert len(original) == len(copy), where
        for index, (one, other) in enumerate(zip(original, copy, strict=True)):
            assert_agree(one, other, f"{where}[{index}]")
    elif isinstance(original, str) and isinstance(copy, str):
        first, second = (re.sub(r"process \d+|\S+\.sqlite", "", text) for text in (original, copy))
        assert first == second or "(removed " in copy, where
    else:
        assert original == copy, where


@beside_the_repository([*SAMPLES, *REAL], "traces")
def test_the_copy_gives_the_same_answers(path: Path, call: Run, tmp_path: Path) -> None:
    copy = scrubbed(call, path, tmp_path / path.name)
    for command in ("summary", "overlap", "info"):
        answers = [call(command, each, "--format", "json").answer for each in (path, copy)]
        assert_agree(*answers)


SAME_WORK = [
    ("gbx-graphs-on", "gbx-graphs-off"),
    ("moe-graphs-on", "moe-graphs-off"),
    ("lost-records", "mixed-shapes"),
    ("streams9-gtx1650-run1", "streams9-gtx1650-run2"),
    ("graph-nodes-v100-a", "graph-nodes-v100-b"),
    ("two-gpus-nvtx-before", "two-gpus-nvtx-after"),
]


@pytest.mark.parametrize("pair", SAME_WORK, ids="-".join)
def test_copies_compare_as_their_originals_do(pair: tuple[str, str], call: Run, tmp_path: Path) -> None:
    by_name = {path.stem: path for path in (*SAMPLES, *REAL)}
    if not by_name.keys() >= set(pair):
        pytest.skip("../shared/traces is not beside the repository")
    originals = [by_name[name] for name in pair]
    copies = [scrubbed(call, path, tmp_path / path.name) for path in originals]
    answers = [call("diff", *each, "--format", "json").answer for each in (originals, copies)]
    assert_agree(*answers)


def insert(connection: sqlite3.Connection, table: str, lines: list[dict[str, object]]) -> None:
    """Rows into a table, where the schema has it."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        columns = ", ".join(f'"{column}"' for column in lines[0])
        places = ", ".join("?" * len(lines[0]))
        connection.executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({places})", [[*line.values()] for line in lines]
        )


def plant(database: Path, ddl: str) -> None:
    """Every table with a row of secrets in its TEXT columns, and one in all columns, as text and as bytes."""
    free_names = {("NVTX_EVENTS", "text"), ("TARGET_INFO_GPU", "name"), ("TARGET_INFO_CUDA_GPU", "name")}
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(ddl)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = connection.execute(f"SELECT name, type, pk FROM pragma_table_info('{table}')").fetchall()
            places = ", ".join("?" * len(columns))
            for kind in ("in texts", "in all", "as bytes"):
                row: list[object] = []
                for name, declared, key in columns:
                    secret = PATH_WITH_SECRET if (table, name) in free_names else f"{SECRET} {table} {name}"
                    if key:
                        row.append(None)
                    elif declared == "TEXT" or kind != "in texts":
                        row.append(secret.encode() if kind == "as bytes" else secret)
                    else:
                        row.append(1)
                # A NULL for a table's INTEGER PRIMARY KEY takes the next number; without one any row will do.
                connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", row)
        connection.execute("UPDATE StringIds SET value = 'harmless' WHERE id = 1")
        connection.execute(f"INSERT INTO StringIds VALUES (50, '{PATH_WITH_SECRET}/by-id'), (51, '{SECRET} thread')")
        ranges = [
            (59, PATH_WITH_SECRET, None),
            (60, f"{SECRET}@example.com", None),
            (59, f"KEY={SECRET}", None),
            (59, None, 50),
            (75, f"https://{SECRET}", None),
            (34, f"{SECRET} mark", None),
            (39, f"{SECRET} thread", None),
            (39, None, 51),
        ]
        insert(
            connection,
            "NVTX_EVENTS",
            [
                {"start": 10, "end": 20, "eventType": kind, "text": text, "textId": text_id, "globalTid": 1 << 24}
                for kind, text, text_id in ranges
            ],
        )
        settings = (
            ("META_DATA_CAPTURE", "CUDA_GRAPH_TRACE_OPTIONS:MODE"),
            ("META_DATA_CAPTURE", f"PROCESS_0:{SECRET}"),
            ("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION"),
            ("META_DATA_EXPORT", "EXPORT_PLATFORM"),
            ("META_DATA_EXPORT", "EXPORT_HOST"),
        )
        for table, name in settings:
            insert(connection, table, [{"name": name, "value": SECRET}])
        driver = {"globalVid": 1, "devStateName": "x", "name": "NvDriverVersion", "nameEnum": 205, "value": SECRET}
        insert(connection, "TARGET_INFO_SYSTEM_ENV", [driver])
        # What is deleted lies on in the file's free pages.
        insert(connection, "StringIds", [{"id": 99, "value": SECRET * 4000}])
        connection.execute("DELETE FROM StringIds WHERE id = 99")


@beside_the_repository(SCHEMAS, "schema")
def test_no_secret_from_any_table_reaches_the_copy(path: Path, call: Run, tmp_path: Path) -> None:
    plant(tmp_path / "planted.sqlite", path.read_text())
    written = scrubbed(call, tmp_path / "planted.sqlite", tmp_path / "copy.sqlite").read_bytes()
    assert SECRET.encode() in (tmp_path / "planted.sqlite").read_bytes()
    assert SECRET.encode() not in written
    assert b"harmless" in written


@pytest.mark.parametrize(
    "name",
    [
        "/home/alice/run.py",
        "load C:\\models",
        "TOKEN=abc",
        "alice@host",
        "https://example.com",
        "9f86d081884c7d65",
        "123e4567-e89b-12d3-a456-426614174000",
        "from 10.1.2.3",
        "nic 00:1b:44:11:3a:b7",
        "gpu 65:00.0",
        "c2VjcmV0IHNlY3JldCBzZWNyZXQ0",
        "hf_abcdefghijklmnop",
        "my password is hunter",
        "seq = hunter2",
    ],
)
def test_range_names_that_tell_too_much_are_replaced(name: str, call: Run, tmp_path: Path) -> None:
    export = small()
    export.range(91, 399, name, pid=700, tid=701)
    export.range(92, 398, name, pid=700, tid=701, registered=True, domain=f"{name} domain")
    copy = scrubbed(call, export.write(tmp_path / "x.sqlite"), tmp_path / "copy.sqlite")
    assert name.encode() not in copy.read_bytes()
    assert len({text for text in texts(copy) if re.fullmatch(r"\(removed [ab]( 1)?\)", text)}) == 2


@pytest.mark.parametrize(
    "name",
    [
        "prefill 2048 tokens",
        "QuantizedMatmul::eval_gpu",
        "ScaledDotProductAttention::eval_gpu",
        "aten::mul, seq = 46174, op_id = 993406, sizes = [[4, 4], []]",
        "4: Conv2dNormActivation",
        "decode step 17 (batch 4): 1.5x",
    ],
)
def test_other_range_names_are_kept(name: str, call: Run, tmp_path: Path) -> None:
    export = small()
    export.range(91, 399, name, pid=700, tid=701)
    copy = scrubbed(call, export.write(tmp_path / "x.sqlite"), tmp_path / "copy.sqlite")
    assert name in texts(copy)


def test_kernel_names_are_kept_but_for_those_with_a_path(call: Run, tmp_path: Path) -> None:
    kept = [
        "_ZN3mlx4core11binary_vv_gIhbNS0_5EqualEEEvPKT_S5_PT0_6142509188972423790",
        "void f<(Op)1, (N)/(2)>(X&, operator/<int>, bool operator==(A, B))",
        "?gemm@@YAXPEAM@Z",
    ]
    removed = ["void k<&(/home/alice/x.cu)>(int)", "lambda at src/secret.cu:12"]
    export = small()
    for start, name in enumerate((*kept, *removed)):
        export.kernel(500 + start, 900, name=name, short="k", pid=700)
    copy = scrubbed(call, export.write(tmp_path / "x.sqlite"), tmp_path / "copy.sqlite")
    names = texts(copy)
    assert names >= set(kept)
    assert len({name for name in names if name.startswith("(removed ")}) == 2
    assert not names & set(removed)
    shown = call("summary", copy, "--format", "json").answer["kernels"]
    assert len(shown) == len(call("summary", tmp_path / "x.sqlite", "--format", "json").answer["kernels"])


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("META_DATA_EXPORT", "EXPORT_HOST", "ada-workstation.example.com"),
        ("META_DATA_EXPORT", "EXPORT_USER", "Ada-Workstation"),
        ("META_DATA_CAPTURE", "PROCESS_0:USER_NAME", "ada-workstation"),
        ("META_DATA_CAPTURE", "PROCESS_0:ENVIRONMENT_VARIABLE", "LOGNAME=ada-workstation"),
        ("META_DATA_CAPTURE", "PROCESS_0:WORKING_DIR", "/home/ada-workstation/src"),
    ],
)
def test_recorded_users_and_hosts_are_known_again_in_names(
    table: str, name: str, value: str, call: Run, tmp_path: Path
) -> None:
    export = small()
    export.range(91, 399, "run of ada-workstation 3", pid=700, tid=701)
    export.kernel(500, 600, name="ADA-WORKSTATION_kernel", pid=700)
    export.kernel(600, 700, name="kada-workstations", pid=700)
    source = export.write(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (name, value))
    copy = scrubbed(call, source, tmp_path / "copy.sqlite")
    names = {text.lower() for text in texts(copy)}
    assert "kada-workstations" in names
    assert not {text for text in names - {"kada-workstations"} if "ada-workstation" in text}


def test_removed_names_stay_as_different_as_they_were(call: Run, tmp_path: Path) -> None:
    export = Export()
    for step, name in enumerate(["/data/a 1", "/data/a 2", "/data/b", "/data/a 3", "aten::mm, key = /data"]):
        at = 1000 * step
        correlation = export.launch(at + 10, at + 20)
        export.kernel(at + 100, at + 200, correlation=correlation)
        export.range(at, at + 300, name)
    source = export.write(tmp_path / "x.sqlite")
    copy = scrubbed(call, source, tmp_path / "copy.sqlite")
    found = [
        [(line["instances"], line["kernel_ns"]) for line in call("info", each, "--format", "json").answer["phases"]]
        for each in (source, copy)
    ]
    assert found[0] == found[1] == [(3, 300), (1, 100), (0, 100)]


def test_processes_and_threads_become_small_numbers_and_joins_hold(call: Run, tmp_path: Path) -> None:
    export = Export()
    pids, tids = (7_654_321, 1_234_567), (7_654_321, 7_654_399)
    for pid in pids:
        for tid in tids:
            for correlation in (5, 6):
                export.api(1, 2, "cudaLaunchKernel_v7000", correlation, pid=pid, tid=tid)
                export.kernel(10, 20, name=f"of {pid}", pid=pid, correlation=correlation)
    source = export.write(tmp_path / "x.sqlite")
    copy = scrubbed(call, source, tmp_path / "copy.sqlite")
    joined = """
        SELECT value, correlationId, count(DISTINCT globalTid), count(*)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
        JOIN StringIds s ON s.id = demangledName
        WHERE k.globalPid >> 24 = r.globalTid >> 24 GROUP BY 1, 2
    """
    assert rows(copy, joined) == rows(source, joined)
    assert {n >> 24 for (n,) in rows(copy, "SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL")} == {1, 2}
    assert {n & 0xFFFFFF for (n,) in rows(copy, "SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME")} == {1, 2}


def test_the_same_content_gives_the_same_bytes_in_whatever_order_it_comes(call: Run, tmp_path: Path) -> None:
    written = set()
    for shuffle in (None, 1, 2):
        export = small()
        export.range(91, 399, "/data/x", pid=700, tid=702, registered=True)
        source = export.write(tmp_path / f"{shuffle}.sqlite", shuffle=shuffle)
        for number in (1, 2):
            written.add(scrubbed(call, source, tmp_path / f"copy-{shuffle}-{number}.sqlite").read_bytes())
    assert len(written) == 1


def test_the_trace_itself_is_never_changed(call: Run, tmp_path: Path) -> None:
    source = small().write(tmp_path / "x.sqlite")
    before = source.read_bytes(), source.stat().st_mtime_ns
    (tmp_path / "link.sqlite").symlink_to(source)
    for target in (source, tmp_path / "link.sqlite"):
        assert call("scrub", source, "-o", target, "--force").code == 2
    scrubbed(call, source, tmp_path / "copy.sqlite")
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.sqlite", "link.sqlite", "x.sqlite"]


def test_an_existing_file_is_replaced_only_when_asked(call: Run, tmp_path: Path) -> None:
    source, target = small().write(tmp_path / "x.sqlite"), tmp_path / "copy.sqlite"
    target.write_text("mine")
    ran = call("scrub", source, "-o", target)
    assert (ran.code, target.read_text()) == (2, "mine")
    assert "--force" in ran.err
    assert call("scrub", source, "-o", target, "--force").code == 0
    assert rows(target, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(2,)]


def test_a_trace_that_cannot_be_read_leaves_nothing(call: Run, tmp_path: Path) -> None:
    source = tmp_path / "x.sqlite"
    source.write_bytes(small().write(source).read_bytes()[:4096])
    ran = call("scrub", source, "-o", tmp_path / "copy.sqlite")
    assert ran.code == 3
    assert list(tmp_path.iterdir()) == [source]


def test_of_a_run_folder_the_traces_are_named_that_can_be_scrubbed(call: Run, tmp_path: Path) -> None:
    for name in ("run.json", "off-1.sqlite", "on-1.sqlite"):
        (tmp_path / name).touch()
    ran = call("scrub", tmp_path, "-o", tmp_path / "copy.sqlite")
    assert ran.code == 2
    assert "is a run folder: scrub its traces one by one (off-1.sqlite, on-1.sqlite)" in ran.err


def test_a_copy_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    source = small().write(tmp_path / "x.sqlite")
    ran = subprocess.run(
        [sys.executable, "-m", "tracekit", "scrub", source, "-o", tmp_path / "copy.sqlite"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = ran.stderr.splitlines()
    assert ran.returncode == 2
    assert "cannot be written" in line
    assert list(tmp_path.iterdir()) == [source]


def test_what_was_kept_and_removed_is_told(call: Run, tmp_path: Path) -> None:
    export = small()
    export.range(91, 399, "/data/x", pid=700, tid=701)
    export.range(92, 398, "/data/x", pid=700, tid=701)
    ran = call("scrub", export.write(tmp_path / "x.sqlite"), "-o", tmp_path / "copy.sqlite")
    assert "1 names removed" in ran.out


def test_a_real_recording_keeps_its_range_and_loses_its_surroundings(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("no nsys: name one in TRACEKIT_NSYS")
    monkeypatch.setenv("PRIVATE_TOKEN", SECRET)
    folder = tmp_path / f"{SECRET}-folder"
    folder.mkdir()
    subprocess.run(
        [nsys, "profile", "--trace=nvtx", "--sample=none", "--output", folder / "r", "/bin/true", SECRET],
        cwd=folder, capture_output=True, check=True,
    )  # fmt: skip
    report = folder / "r.nsys-rep"
    raw = subprocess.run(
        [nsys, "export", "--type", "sqlite", "--output", folder / "r.sqlite", report], capture_output=True, check=True
    )
    assert raw.returncode == 0
    assert SECRET.encode() in (folder / "r.sqlite").read_bytes()
    copy = scrubbed(call, report, tmp_path / "copy.sqlite")
    assert SECRET.encode() not in copy.read_bytes()
    versions = [call("info", each, "--format", "json").answer["traces"][0]["nsys_version"] for each in (report, copy)]
    assert versions[0] == versions[1] is not None
