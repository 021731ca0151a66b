"""Workloads run under the real nsys: what comes back, what is kept, and that nothing is left behind."""

import ctypes
import shutil
import sqlite3
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from launching import Start, assert_nothing_is_left, run_files, some_nsys, starter

from tracekit.capture import supervise
from tracekit.capture.launch import record
from tracekit.capture.nsys_options import Settings, nsys_version
from tracekit.errors import OutsideProgramFailed

start = pytest.fixture(starter)
nsys = pytest.fixture(some_nsys)

BYTES = """
import os, sys
os.write(1, b"out \\xff\\x00\\r\\n" * 3)
os.write(2, b"err \\xfe no newline")
sys.exit(7)
"""

RANGES = """
import ctypes, time
class Attributes(ctypes.Structure):
    _fields_ = [(n, getattr(ctypes, "c_" + t)) for n, t in (
        ("version", "uint16"), ("size", "uint16"), ("category", "uint32"), ("color_type", "int32"), ("color", "uint32"),
        ("payload_type", "int32"), ("reserved", "int32"), ("payload", "uint64"), ("message_type", "int32"),
        ("message", "char_p"))]
nvtx = ctypes.CDLL("libnvtx3interop.so.1")
nvtx.nvtxDomainCreateA.restype = ctypes.c_void_p
domain = ctypes.c_void_p(nvtx.nvtxDomainCreateA(b"tracekit"))
for name in (b"prefill", b"decode", b"decode"):
    nvtx.nvtxDomainRangePushEx(domain, ctypes.byref(Attributes(3, 48, message_type=1, message=name)))
    time.sleep(0.05)
    nvtx.nvtxDomainRangePop(domain)
time.sleep(0.3)
print("went on", flush=True)
"""


def rows(trace: str, table: str) -> int | None:
    """Rows of a table of an export, None where it has none of that name."""
    with closing(sqlite3.connect(trace)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return None
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_output_passes_untouched_and_the_exit_code_is_the_workloads(start: Start) -> None:
    launched = start(BYTES)
    result = launched.end()
    out, err = b"out \xff\x00\r\n" * 3, b"err \xfe no newline"
    assert (launched.out, launched.err) == (out, err)
    assert Path(result["stdout_log"]).read_bytes() == out
    assert Path(result["stderr_log"]).read_bytes() == err
    assert (result["exit_code"], result["failed"], result["stopped_by"]) == (7, True, None)
    assert rows(result["trace"], "StringIds")
    assert_nothing_is_left(launched, "trace.sqlite")


def test_output_comes_while_the_workload_runs(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    launched = start(["/bin/sh", "-c", f"echo first; while [ ! -e {go} ]; do sleep 0.05; done; echo second"])
    assert launched.read_line() == b"first\n"
    go.touch()
    assert launched.end()["exit_code"] == 0
    assert launched.out == b"second\n"


def test_a_reader_that_goes_away_does_not_disturb_the_workload(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = f"echo up; while [ ! -e {go} ]; do sleep 0.05; done; echo more; echo most"
    launched = start(["/bin/sh", "-c", code])
    assert launched.read_line() == b"up\n"
    assert launched.process.stdout
    launched.process.stdout.close()
    launched.process.stdout = None
    go.touch()
    result = launched.end()
    assert result["exit_code"] == 0
    assert Path(result["stdout_log"]).read_text() == "up\nmore\nmost\n"


def test_output_that_no_log_can_take_still_passes(start: Start) -> None:
    launched = start("print('x' * 100_000)\nprint('end')", plain=True, most_bytes=5000)
    result = launched.end()
    assert (result["exit_code"], launched.out) == (0, b"x" * 100_000 + b"\nend\n")
    assert Path(result["stdout_log"]).read_bytes() == b"x" * 5000
    assert launched.codes == ["output-cut"]


def test_the_exact_command_and_the_version_are_told(start: Start, nsys: Path) -> None:
    result = start(["/bin/true"]).end()
    assert result["command"][:2] == [str(nsys), "profile"]
    assert result["command"][-1] == "/bin/true"
    assert result["nsys_version"] == ".".join(map(str, nsys_version(nsys)))


def test_a_workload_that_dies_of_a_signal_leaves_its_trace(start: Start) -> None:
    launched = start(["/bin/sh", "-c", "kill -KILL $$"])
    result = launched.end()
    assert (result["exit_code"], result["failed"]) == (137, True)
    assert_nothing_is_left(launched, "trace.sqlite")


def test_without_a_driver_the_reason_is_told(start: Start) -> None:
    if has_driver():
        pytest.skip("there is an NVIDIA driver here")
    launched = start(["/bin/true"])
    result = launched.end()
    (message,) = [finding["message"] for finding in result["findings"] if finding["code"] == "no-cuda-activity"]
    assert "no CUDA activity was recorded" in message
    assert "libcuda" in message
    assert rows(result["trace"], "CUPTI_ACTIVITY_KIND_KERNEL") is None


def test_an_existing_file_is_neither_recorded_over_nor_touched(start: Start, tmp_path: Path) -> None:
    old = tmp_path / "here" / "run" / "trace.sqlite"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    launched = start(["/bin/sh", "-c", "echo ran"])
    assert launched.end()["error"] == "WrongUsage"
    assert launched.out == b""
    assert old.read_text() == "old"
    assert run_files(launched) == ["trace.sqlite"]


def test_a_kept_report_lies_beside_its_export(start: Start) -> None:
    launched = start(["/bin/true"], keep_report=True)
    result = launched.end()
    assert Path(result["report"]).stat().st_size > 0
    assert_nothing_is_left(launched, "trace.sqlite", "trace.nsys-rep")


@pytest.mark.parametrize("settings", [{"capture_profiler_api": True}, {"capture_phase": "prefill"}, {"delay_s": 30}])
def test_a_capture_that_never_begins_is_told(start: Start, settings: dict[str, Any]) -> None:
    launched = start(["/bin/sh", "-c", "echo ran; exit 3"], settings=settings)
    result = launched.end()
    assert (result["trace"], result["exit_code"], launched.out) == (None, 3, b"ran\n")
    assert "capture-never-began" in launched.codes
    assert_nothing_is_left(launched)


@pytest.fixture(scope="module")
def interop() -> None:
    try:
        ctypes.CDLL("libnvtx3interop.so.1")
    except OSError:
        pytest.skip("there is no libnvtx3interop on this machine")


@pytest.mark.usefixtures("interop")
def test_the_first_range_of_a_phase_is_captured_and_the_workload_goes_on(start: Start) -> None:
    launched = start(RANGES, settings={"capture_phase": "prefill"}, annotated=True)
    result = launched.end()
    assert (result["exit_code"], launched.out) == (0, b"went on\n")
    assert "no-ranges" not in launched.codes
    with closing(sqlite3.connect(result["trace"])) as connection:
        names = [name for (name,) in connection.execute("SELECT text FROM NVTX_EVENTS WHERE eventType = 59")]
    assert names == ["prefill"]


@pytest.mark.usefixtures("interop")
def test_ranges_of_the_whole_run_are_recorded(start: Start) -> None:
    launched = start(RANGES, annotated=True)
    assert rows(launched.end()["trace"], "NVTX_EVENTS")
    assert "no-ranges" not in launched.codes


def test_ranges_that_a_newer_nvtx_package_loses_are_missed(start: Start, nsys: Path) -> None:
    package = tuple(map(int, metadata.version("nvtx").split(".")[:3]))
    if package < (0, 2, 12) or not (2022, 4, 0) <= nsys_version(nsys) < (2024, 3, 0):
        pytest.skip("this nvtx package and this nsys suit one another")
    launched = start("import nvtx\nwith nvtx.annotate('prefill', domain='tracekit'): pass", annotated=True)
    (message,) = [item["message"] for item in launched.end()["findings"] if item["code"] == "no-ranges"]
    assert "nvtx==0.2.11" in message


def test_a_duration_ends_the_workload_and_is_no_failure_of_it(start: Start) -> None:
    launched = start(["/bin/sleep", "30"], settings={"duration_s": 1})
    result = launched.end()
    assert (result["stopped_by"], result["failed"]) == ("duration", False)
    assert_nothing_is_left(launched, "trace.sqlite")


def test_a_workload_that_outlives_the_recording_is_waited_for(start: Start) -> None:
    launched = start(["/bin/sh", "-c", "sleep 4; echo late; exit 5"], settings={"duration_s": 1, "kill": "none"})
    result = launched.end()
    assert (launched.out, result["exit_code"], result["stopped_by"]) == (b"late\n", None, None)
    assert_nothing_is_left(launched, "trace.sqlite")


def test_an_option_that_nsys_refuses_is_told_with_its_words(start: Start) -> None:
    launched = start(["/bin/sh", "-c", "echo ran"], settings={"passed_on": ["--no-such-option=1"]})
    result = launched.end()
    assert result["error"] == "OutsideProgramFailed"
    assert "--no-such-option" in result["message"].partition("try by hand")[0]
    assert launched.out == b""
    assert run_files(launched) == []


def test_a_program_that_does_not_exist_is_told_before_anything_runs(start: Start) -> None:
    launched = start(["/no/such/program"])
    result = launched.end()
    assert (result["error"], "/no/such/program" in result["message"]) == ("WrongUsage", True)
    assert not (launched.folder / "run").exists()


def test_an_nsys_without_its_importer_leaves_no_trace_and_says_so(start: Start, nsys: Path, tmp_path: Path) -> None:
    real = nsys.resolve()
    crippled = tmp_path / real.parent.name
    crippled.mkdir()
    for part in real.parent.iterdir():
        (crippled / part.name).symlink_to(part)
    (crippled / real.name).unlink()
    shutil.copy2(real, crippled / real.name)
    launched = start(["/bin/sh", "-c", "echo ran"], environment={"TRACEKIT_NSYS": str(crippled / real.name)})
    result = launched.end()
    assert (result["error"], launched.out) == ("OutsideProgramFailed", b"ran\n")
    assert "importer" in result["message"]
    assert_nothing_is_left(launched)


def test_an_export_that_the_file_system_refuses_is_made_elsewhere(start: Start, nsys: Path, tmp_path: Path) -> None:
    """As on network file systems: SQLite cannot lock a file in the run folder."""
    choosy = tmp_path / "nsys"
    choosy.write_text(
        f'#!/bin/sh\ncase "$1 $*" in export*/run/*) echo "database is locked" >&2; exit 1;; esac\nexec {nsys} "$@"\n'
    )
    choosy.chmod(0o755)
    launched = start(["/bin/true"], environment={"TRACEKIT_NSYS": str(choosy)})
    assert rows(launched.end()["trace"], "StringIds")
    assert_nothing_is_left(launched, "trace.sqlite")


def test_a_report_that_cannot_be_exported_is_kept(start: Start, nsys: Path, tmp_path: Path) -> None:
    mute = tmp_path / "nsys"
    mute.write_text(f'#!/bin/sh\n[ "$1" = export ] && exit 0\nexec {nsys} "$@"\n')
    mute.chmod(0o755)
    launched = start(["/bin/true"], environment={"TRACEKIT_NSYS": str(mute)})
    result = launched.end()
    assert result["error"] == "OutsideProgramFailed"
    assert "trace.nsys-rep" in result["message"]
    assert_nothing_is_left(launched, "trace.nsys-rep")


def test_an_nsys_that_loses_its_agent_before_the_workload_runs_is_tried_again(
    start: Start, nsys: Path, tmp_path: Path
) -> None:
    flawed, tried = tmp_path / "nsys", tmp_path / "tried"
    flawed.write_text(
        f'#!/bin/sh\n[ "$1" = profile ] && [ ! -e {tried} ] && '
        f"{{ touch {tried}; echo 'Connection to Agent lost. This is most likely a bug.'; exit 1; }}\n"
        f'exec {nsys} "$@"\n'
    )
    flawed.chmod(0o755)
    launched = start(["/bin/echo", "ran"], environment={"TRACEKIT_NSYS": str(flawed)})
    assert (launched.end()["exit_code"], launched.out, tried.exists()) == (0, b"ran\n", True)
    assert_nothing_is_left(launched, "trace.sqlite")


def test_an_nsys_that_never_starts_the_workload_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "nsys"
    hanging.write_text(
        '#!/bin/sh\n[ "$1" = profile ] && exec sleep 60\necho "NVIDIA Nsight Systems version 2024.5.1"\n'
    )
    hanging.chmod(0o755)
    monkeypatch.setattr(supervise, "START_S", 0.3)
    with pytest.raises(OutsideProgramFailed, match="did not run the workload"):
        record(
            ["/bin/true"], nsys=hanging, target=tmp_path / "run" / "t.sqlite", settings=Settings(), environment={},
            stdout_log=tmp_path / "run" / "out", stderr_log=tmp_path / "run" / "err",
        )  # fmt: skip
    assert not list((tmp_path / "run").iterdir())


def test_a_workload_without_nsys_is_timed_alone(start: Start) -> None:
    launched = start(BYTES + "\n", plain=True)
    result = launched.end()
    assert (launched.out, launched.err) == (b"out \xff\x00\r\n" * 3, b"err \xfe no newline")
    assert (result["exit_code"], result["failed"]) == (7, True)
    assert result["command"][0] == sys.executable
    assert_nothing_is_left(launched)
