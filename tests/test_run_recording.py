"""``tracekit run`` with the real nsys: phases in the trace, what is missing told, signals."""

import ctypes
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from run_folders import Record, RunOf, start

from tracekit.capture.nsys import find_nsys
from tracekit.capture.run_folder import read_manifest

PHASES = """
import sys, time
from tracekit import phase
def unused():
    import mlx.core
for _ in range(3):
    with phase("prefill"):
        time.sleep(0.02)
    with phase("decode"):
        time.sleep(0.01)
"""

SERVING = """
import signal, sys, time
sys.stdout.write("up\\n")
sys.stdout.flush()
def unused():
    import mlx.core
time.sleep(60)
"""


@pytest.fixture
def record(tmp_path: Path) -> Record:
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("there is no nsys on this machine")

    def recorded(script: str, *arguments: object) -> RunOf:
        (tmp_path / "bench.py").write_text(script)
        return start(tmp_path, *arguments, "bench.py", nsys=nsys)

    return recorded


def phases(trace: Path) -> dict[str, int]:
    with closing(sqlite3.connect(trace)) as connection:
        query = """
            SELECT coalesce(text, value), count(*) FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId
            WHERE eventType = 59 GROUP BY 1
        """
        return dict(connection.execute(query).fetchall())


def test_phases_are_in_every_trace(record: Record) -> None:
    pytest.importorskip("nvtx")
    ran = record(PHASES, "--graphs", "both", "--blocks", 1)
    assert ran.end() == 0, ran.err
    for name in ("on-1.sqlite", "off-1.sqlite"):
        assert phases(ran.run_folder / name) == {"prefill": 3, "decode": 3}
    assert "no-ranges" not in ran.codes
    ran.assert_nothing_is_left()


def test_without_a_driver_the_missing_activity_is_told_with_its_reason(record: Record) -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        ran = record(PHASES, "--graphs", "on")
        assert ran.end() == 0, ran.err
        assert "no CUDA activity was recorded: there is no NVIDIA driver here" in ran.err
        assert "no-cuda-activity" in ran.codes
    else:
        pytest.skip("there is an NVIDIA driver here")


def test_options_left_out_are_told_once_before_anything_runs(record: Record) -> None:
    ran = record(PHASES, "--graphs", "both", "--blocks", 1)
    assert ran.end() == 0, ran.err
    told = {finding["code"] for finding in ran.manifest["findings"]}
    assert ("option-left-out" in told) == (ran.manifest["nsys"]["version"] < "2026.2")
    assert not [each for block in ran.manifest["blocks"] for each in block["findings"] if "option" in each["code"]]


def test_why_there_is_no_range_is_told(record: Record) -> None:
    pytest.importorskip("nvtx")
    for script, why in (("import sys; sys.exit(3)", "exit code 3"), ("print(1)", "no tracekit.phase entered")):
        ran = record(script, "--graphs", "on", "--framework", "mlx", "--output", f"out-{why[-1]}")
        ran.end()
        assert re.search(f"no-ranges: .*{why}", ran.err)


def test_only_the_captured_phase_is_recorded(record: Record) -> None:
    pytest.importorskip("nvtx")
    ran = record(PHASES, "--graphs", "on", "--capture-phase", "decode")
    assert ran.end() == 0, ran.err
    assert phases(ran.run_folder / "on-1.sqlite") == {"decode": 1}


def test_a_captured_phase_that_never_comes_is_told(record: Record) -> None:
    ran = record(PHASES, "--graphs", "on", "--capture-phase", "no such phase")
    assert ran.end() == 0, ran.err
    assert ran.files == ["run.json"]
    assert "capture-never-began" in ran.codes
    assert ran.manifest["blocks"][0]["trace"] is None


def test_a_duration_ends_the_workload_which_is_then_not_timed(record: Record) -> None:
    ran = record(SERVING, "--graphs", "on", "--duration", "1")
    assert ran.end() == 0, ran.err
    (block,) = ran.manifest["blocks"]
    assert (block["trace"], block["plain_wall_s"]) == ("on-1.sqlite", None)
    assert "no-plain-run" in ran.codes


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_was_recorded_and_the_manifest_says_so(record: Record, sign: int) -> None:
    ran = record(SERVING, "--graphs", "both")
    assert ran.process.stdout
    assert ran.process.stdout.readline() == "up\n"
    ran.process.send_signal(sign)
    assert ran.end() == 130
    assert ran.files == ["on-1.sqlite", "run.json"]
    manifest = read_manifest(ran.run_folder)
    assert manifest.state == "interrupted"
    (block,) = manifest.blocks
    assert (block.profiled_wall_s, block.plain_wall_s) == (None, None)
    assert "interrupted" in [finding.code for finding in block.findings]
    ran.assert_nothing_is_left()
