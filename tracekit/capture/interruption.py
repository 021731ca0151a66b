"""Signals that ask to stop, taken note of instead of died of."""

import signal
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Self


class Interruption:
    """Counts the signals that ask to stop; outside the main thread it changes nothing.

    With ``raises`` the signal that makes the count so high is raised as KeyboardInterrupt: what does not look at the
    count while it waits is ended by it.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, *, raises: int | None = None) -> None:
        self.signal: int | None = None
        self.count = 0
        self._raises = raises
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            self._before = {sign: signal.signal(sign, self._note) for sign in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for sign, handler in self._before.items():
            signal.signal(sign, handler)

    def _note(self, sign: int, _: FrameType | None) -> None:
        self.signal = self.signal or sign
        self.count += 1
        if self.count == self._raises:
            raise KeyboardInterrupt
