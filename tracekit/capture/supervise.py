"""Running a workload to its end: signals reach it once, its whole process group ends with it, nothing is left."""

import os
import select
import signal
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal, Self

from tracekit.capture.interruption import Interruption
from tracekit.capture.kept_output import KeptOutput
from tracekit.capture.load import Load, RunningLoad

TICK_S = 0.05
START_TICK_S = 0.002

START_S = 120.0
"""How long a program may take until the workload begins; nsys usually takes a second or two."""

FAREWELL_S = 2.0
"""How long a program that is of no use any more may take to end by itself."""

StoppedBy = Literal["signal", "load"]

_SHIM = 'echo $$ >"$0/pid"; read -r go <"$0/go"; exec "$@" >"$0/stdout" 2>"$0/stderr"'
"""Tells its process id, waits until it is watched, and becomes the workload."""


@dataclass(frozen=True)
class Conditions:
    """What a workload is run with: its whole environment, the logs of its output, what loads it, its time to end."""

    environment: Mapping[str, str]
    stdout_log: Path
    stderr_log: Path
    load: Load | None
    grace_s: float


@dataclass(frozen=True)
class Run:
    """How a program ended that ran a workload, and the workload itself.

    ``code`` is the program's exit code, negative for the signal that ended it. ``wall_s`` is the workload's own, from
    its first moment to its last, and None when it never began. ``stopped_by`` says who ended the workload;
    ``outlived`` that it went on after the program's end; ``interrupted`` that a signal came at any time. ``cut`` are
    logs that could not take all of the output.
    """

    code: int
    wall_s: float | None = None
    stopped_by: StoppedBy | None = None
    outlived: bool = False
    interrupted: bool = False
    load_trouble: str | None = None
    cut: tuple[Path, ...] = ()


def shimmed(folder: Path, command: Sequence[str]) -> list[str]:
    """A command line that runs ``command`` with its process id and its output going to ``folder``."""
    return ["/bin/sh", "-c", _SHIM, str(folder), *command]


def run(command: Sequence[str], conditions: Conditions, *, folder: Path, said: IO[bytes] | int) -> Run:
    """Run a command line that holds a shimmed workload; what the command itself says goes to ``said``.

    Until the workload begins a SIGINT, SIGTERM or SIGHUP ends everything. Then the first one goes on to the workload's
    process group, which is killed when it is still there after its time to end; the second ends everything at once.
    When the load is over the workload gets a SIGINT.
    """
    with ExitStack() as stack:
        interruption = stack.enter_context(Interruption())
        outputs = [
            stack.enter_context(KeptOutput(folder / name, log, onward))
            for name, log, onward in (("stdout", conditions.stdout_log, 1), ("stderr", conditions.stderr_log, 2))
        ]
        ran = _supervised(command, conditions, folder, said, interruption)
    return replace(ran, cut=tuple(output.path for output in outputs if output.cut))


def _supervised(
    command: Sequence[str], conditions: Conditions, folder: Path, said: IO[bytes] | int, interruption: Interruption
) -> Run:
    with ExitStack() as stack:
        os.mkfifo(folder / "go")
        # Opened for reading too: opened for writing alone it would wait for a workload that may never come.
        go = os.open(folder / "go", os.O_RDWR)
        stack.callback(os.close, go)
        read = _input()
        stack.callback(os.close, read)
        process = subprocess.Popen(
            command, env=dict(conditions.environment), stdin=read, stdout=said, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        stack.callback(process.wait)
        stack.callback(_end_group, process.pid)
        workload = _begin(process, folder / "pid", go, interruption)
        if workload is None:
            _dismiss(process)
            return Run(process.returncode, interrupted=interruption.count > 0)
        stack.enter_context(workload)
        running = RunningLoad(conditions.load, conditions.environment) if conditions.load else None
        if running:
            stack.callback(running.end)
        stopped_by, outlived = _follow(workload, process, interruption, running, conditions.grace_s)
        wall_s = workload.wall_s
        _finish(process, interruption)
        trouble = running.trouble if running and stopped_by != "signal" else None
        return Run(process.returncode, wall_s, stopped_by, outlived, interruption.count > 0, trouble)


def _input() -> int:
    """What a workload reads: a file on stdin from where it stands, opened anew for each run; of all else nothing.

    What one run reads from a pipe or a terminal the next one lacks: the arms would not do the same.
    """
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            file = os.open("/proc/self/fd/0", os.O_RDONLY)
            os.lseek(file, os.lseek(0, 0, os.SEEK_CUR), os.SEEK_SET)
            return file
    except OSError:
        pass
    return os.open(os.devnull, os.O_RDONLY)


class Workload:
    """A process that may not be a child of this one, with its process group."""

    def __init__(self, pid: int) -> None:
        self._group = os.getpgid(pid)
        self._handle = os.pidfd_open(pid)
        self._began = time.perf_counter()
        self._ended: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _end_group(self._group)
        os.close(self._handle)

    @property
    def wall_s(self) -> float:
        """Seconds so far, or to its end."""
        return (self._ended or time.perf_counter()) - self._began

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end for so long."""
        if self._ended is None and select.select([self._handle], [], [], seconds)[0]:
            self._ended = time.perf_counter()
        return self._ended is not None

    def send(self, sign: int) -> None:
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self._group, sign)


def _begin(process: subprocess.Popen[bytes], told: Path, go: int, interruption: Interruption) -> Workload | None:
    """Let the workload begin once it is watched; None when the program ended, hung or was interrupted without it."""
    latest = time.monotonic() + START_S
    while not (told.exists() and (pid := told.read_text().strip())):
        if process.poll() is not None or interruption.count or time.monotonic() > latest:
            return None
        time.sleep(START_TICK_S)
    try:
        workload = Workload(int(pid))
    except ProcessLookupError:
        return None
    os.write(go, b"\n")
    return workload


def _follow(
    workload: Workload,
    process: subprocess.Popen[bytes],
    interruption: Interruption,
    load: RunningLoad | None,
    grace_s: float,
) -> tuple[StoppedBy | None, bool]:
    """Wait for the workload's end, or bring it about: who did, and whether it outlived the program."""
    stopped_by: StoppedBy | None = None
    outlived = False
    deadline = float("inf")
    while not workload.ends_within(TICK_S):
        if stopped_by is None and interruption.signal is not None:
            stopped_by, deadline = "signal", time.monotonic() + grace_s
            workload.send(interruption.signal)
        elif stopped_by is None and load and load.is_over():
            stopped_by, deadline = "load", time.monotonic() + grace_s
            # The signal on which servers and Python programs end in good order, with their trace written.
            workload.send(signal.SIGINT)
        outlived = process.poll() is not None and not workload.ends_within(0)
        if (outlived and process.returncode < 0) or interruption.count > 1 or time.monotonic() > deadline:
            workload.send(signal.SIGKILL)
    return stopped_by, outlived


def _finish(process: subprocess.Popen[bytes], interruption: Interruption) -> None:
    """Wait while nsys writes its report, unless asked a second time to stop."""
    while interruption.count < 2:
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_S)
            return
    _end_group(process.pid)
    process.wait()


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    """Have a program end that has run nothing, by force where it takes its time."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(FAREWELL_S)
    _end_group(process.pid)
    process.wait()


def _end_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
