"""Asked to stop, a run ends its workload, keeps what was recorded and leaves nothing behind."""

import os
import signal
from pathlib import Path

import pytest
from launching import Start, assert_nothing_is_left, kill_nsys, some_nsys, starter, until

start = pytest.fixture(starter)
nsys = pytest.fixture(some_nsys)

SERVING = """
import signal, sys, time
count = 0
def note(sign, frame):
    global count
    count += 1
for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(sign, note)
print("up", flush=True)
while not count: time.sleep(0.02)
time.sleep(0.5)
print("signals", count, flush=True)
sys.exit(9)
"""

STUBBORN = """
import signal, subprocess, sys, time
for sign in (signal.SIGINT, signal.SIGTERM): signal.signal(sign, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("up", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_workload_once_and_the_trace_is_kept(start: Start, sign: int) -> None:
    launched = start(SERVING)
    assert launched.read_line() == b"up\n"
    launched.stop(sign)
    result = launched.end()
    assert (launched.out, result["exit_code"]) == (b"signals 1\n", 9)
    assert (result["stopped_by"], result["failed"]) == ("signal", False)
    assert_nothing_is_left(launched, "trace.sqlite")


def test_a_workload_that_will_not_end_is_killed_with_its_children(start: Start) -> None:
    launched = start(STUBBORN, grace_s=0.5)
    assert launched.read_line() == b"up\n"
    launched.stop(signal.SIGTERM)
    result = launched.end()
    assert (result["exit_code"], result["stopped_by"]) == (137, "signal")
    assert_nothing_is_left(launched, "trace.sqlite")


def test_a_second_signal_ends_everything_at_once(start: Start) -> None:
    launched = start(STUBBORN, grace_s=60)
    assert launched.read_line() == b"up\n"
    launched.stop(signal.SIGINT, signal.SIGINT)
    assert launched.end()["error"] == "KeyboardInterrupt"
    until(lambda: not launched.children(), 15)
    assert not list(launched.temporary.glob("*report*"))


def test_the_workload_of_a_killed_nsys_is_ended_too(start: Start) -> None:
    launched = start(STUBBORN)
    assert launched.read_line() == b"up\n"
    kill_nsys(launched)
    result = launched.end()
    assert result["error"] == "OutsideProgramFailed"
    assert "SIGKILL" in result["message"]
    assert_nothing_is_left(launched)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_workload_without_nsys(start: Start, sign: int) -> None:
    launched = start(SERVING, plain=True)
    assert launched.read_line() == b"up\n"
    os.kill(launched.process.pid, sign)
    result = launched.end()
    assert (launched.out, result["exit_code"], result["stopped_by"]) == (b"signals 1\n", 9, "signal")
    assert_nothing_is_left(launched)


def slow_nsys(nsys: Path, folder: Path, step: str, seconds: int) -> dict[str, str]:
    """The environment of a run whose nsys takes its time for a step, and leaves a file when it comes to it."""
    slow = folder / "nsys"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = {step} ] && {{ touch {folder}/{step}; sleep {seconds}; }}\nexec {nsys} "$@"\n'
    )
    slow.chmod(0o755)
    return {"TRACEKIT_NSYS": str(slow)}


def test_a_signal_before_the_workload_begins_ends_the_run(start: Start, nsys: Path, tmp_path: Path) -> None:
    launched = start(["/bin/echo", "ran"], environment=slow_nsys(nsys, tmp_path, "profile", 60))
    until((tmp_path / "profile").exists)
    launched.stop(signal.SIGINT)
    assert (launched.end()["error"], launched.out) == ("KeyboardInterrupt", b"")
    until(lambda: not launched.children(), 10)
    assert not list((launched.folder / "run").iterdir())


def test_a_second_signal_ends_an_export(start: Start, nsys: Path, tmp_path: Path) -> None:
    launched = start(["/bin/true"], environment=slow_nsys(nsys, tmp_path, "export", 60))
    until((tmp_path / "export").exists)
    launched.stop(signal.SIGINT, signal.SIGINT)
    assert launched.end()["error"] == "KeyboardInterrupt"
    assert_nothing_is_left(launched)


def test_a_signal_that_comes_during_the_export_does_not_lose_the_trace(
    start: Start, nsys: Path, tmp_path: Path
) -> None:
    launched = start(["/bin/true"], environment=slow_nsys(nsys, tmp_path, "export", 1))
    until((tmp_path / "export").exists)
    launched.interrupt_from_terminal()
    result = launched.end()
    assert (result["exit_code"], result["stopped_by"], result["interrupted"]) == (0, None, True)
    assert_nothing_is_left(launched, "trace.sqlite")
