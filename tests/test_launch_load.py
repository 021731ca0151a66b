"""A load runs while a workload serves; then the workload is stopped and its trace is kept."""

import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest
from launching import Start, assert_nothing_is_left, starter

start = pytest.fixture(starter)


def free_port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])


def server(port: int) -> list[str]:
    return [sys.executable, "-m", "http.server", str(port), "--bind", "localhost"]


def client(port: int, code: int = 0) -> list[str]:
    fetch = f"import urllib.request as r; print(r.urlopen('http://localhost:{port}/pyproject.toml').status)"
    return [sys.executable, "-c", f"{fetch}; raise SystemExit({code})"]


@pytest.mark.parametrize("plain", [False, True])
def test_a_load_runs_while_the_workload_serves_which_is_then_stopped(start: Start, plain: bool) -> None:
    port = free_port()
    launched = start(server(port), load={"command": client(port), "port": port}, plain=plain)
    result = launched.end()
    assert (result["stopped_by"], result["failed"], "load" in launched.codes) == ("load", False, False)
    assert (launched.folder / "run" / "load.log").read_text() == "200\n"
    assert "GET /pyproject.toml" in Path(result["stderr_log"]).read_text()
    assert_nothing_is_left(launched, "load.log", *([] if plain else ["trace.sqlite"]))


def test_a_load_that_fails_is_told(start: Start) -> None:
    port = free_port()
    launched = start(server(port), load={"command": client(port, code=3), "port": port}, plain=True)
    (finding,) = launched.end()["findings"]
    assert "exit code 3" in finding["message"]


def test_a_port_that_never_opens_is_told_and_the_workload_stopped(start: Start) -> None:
    load = {"command": ["/bin/true"], "port": free_port(), "ready_within_s": 0.5}
    launched = start(["/bin/sleep", "60"], load=load, plain=True)
    result = launched.end()
    assert result["stopped_by"] == "load"
    assert "did not open" in result["findings"][0]["message"]
    assert_nothing_is_left(launched)


def test_a_load_begins_after_its_delay(start: Start) -> None:
    launched = start(["/bin/sleep", "60"], load={"command": ["/bin/echo", "now"], "delay_s": 0.5}, plain=True)
    result = launched.end()
    assert (launched.folder / "run" / "load.log").read_text() == "now\n"
    assert result["wall_s"] >= 0.5
