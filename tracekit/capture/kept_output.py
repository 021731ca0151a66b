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
    descriptor that goes away, or a disk that is full, does not disturb the workload. ``cut`` says that the log at
    ``path`` does not hold everything.
    """

    def __init__(self, pipe: Path, log: Path, onward: int) -> None:
        self.path = log
        self.cut = False
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._open = [onward, self._log]
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
        while chunk := os.read(self._reader, 1 << 16):
            for target in self._open.copy():
                self._write(target, chunk)
        for end in (self._log, self._reader):
            with suppress(OSError):
                os.close(end)

    def _write(self, target: int, chunk: bytes) -> None:
        left = memoryview(chunk)
        try:
            while left:
                left = left[os.write(target, left) :]
        except OSError:
            # It would fail again, or leave a gap: what is written stays the beginning of what was said.
            self._open.remove(target)
            self.cut = self.cut or target == self._log
