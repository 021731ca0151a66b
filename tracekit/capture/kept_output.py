"""A workload's output, passed on byte by byte as it comes and kept in a file."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Self

STRAGGLERS_S = 2.0
"""How long to go on reading for processes that outlive the workload with its output still open."""


class KeptOutput:
    """A named pipe whose bytes go on to a file descriptor and into a log, in the order in which they came.

    The workload opens the pipe by its name, so what nsys itself prints never mixes with it. A reader of the
    descriptor that goes away does not disturb the workload or the log.
    """

    def __init__(self, pipe: Path, log: Path, onward: int) -> None:
        self._onward: int | None = onward
        self._log = log.open("xb", buffering=0)
        os.mkfifo(pipe)
        self._reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        # A writer of our own keeps the pipe from ending before the workload has opened it.
        self._writer = os.open(pipe, os.O_WRONLY)
        os.set_blocking(self._reader, True)
        self._thread = Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._writer)
        self._thread.join(STRAGGLERS_S)

    def _pass_on(self) -> None:
        with self._log as log:
            while chunk := os.read(self._reader, 1 << 16):
                log.write(chunk)
                if self._onward is not None:
                    self._write(self._onward, chunk)
        with suppress(OSError):
            os.close(self._reader)

    def _write(self, onward: int, chunk: bytes) -> None:
        left = memoryview(chunk)
        try:
            while left:
                left = left[os.write(onward, left) :]
        except OSError:
            self._onward = None
