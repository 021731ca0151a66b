"""A command that is run against a workload while it serves."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Load:
    """What to run while the workload serves, and when: once ``port`` is open on this machine, then ``delay_s`` later.

    What the command says is kept in ``log``, which must not exist. After ``ready_within_s`` without an open port
    the load is given up.
    """

    command: Sequence[str]
    log: Path
    port: int | None = None
    delay_s: float = 0.0
    ready_within_s: float = 600.0


class RunningLoad:
    """One run of a load, from waiting for the server to the command's end."""

    def __init__(self, load: Load, environment: Mapping[str, str]) -> None:
        self._load = load
        self._environment = environment
        self._began = time.monotonic()
        self._ready = self._began if load.port is None else None
        self._process: subprocess.Popen[bytes] | None = None

    def is_over(self) -> bool:
        """Take the next step if it is due; true once there is none."""
        if self._process is not None:
            return self._process.poll() is not None
        now = time.monotonic()
        if self._ready is None:
            self._ready = now if self._port_is_open() else None
            return self._ready is None and now > self._began + self._load.ready_within_s
        if now >= self._ready + self._load.delay_s:
            self._start()
        return False

    def end(self) -> None:
        """End the command and what it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def trouble(self) -> str | None:
        """What went wrong with the load, or None where it ran and succeeded."""
        if self._ready is None:
            return f"port {self._load.port} did not open: the load was not run; see the workload's own output"
        if self._process is None:
            return "the workload ended before the load began"
        if code := self._process.returncode:
            return f"the load ended with exit code {code}; see {self._load.log}"
        return None

    def _port_is_open(self) -> bool:
        assert self._load.port is not None
        try:
            socket.create_connection(("localhost", self._load.port), timeout=0.2).close()
        except OSError:
            return False
        return True

    def _start(self) -> None:
        with self._load.log.open("xb") as log:
            self._process = subprocess.Popen(
                self._load.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=dict(self._environment), start_new_session=True,
            )  # fmt: skip
