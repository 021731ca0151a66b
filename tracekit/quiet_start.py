"""Ctrl-C while a program is still importing itself ends it as it ends any program: no traceback is of use then."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly_interrupted() -> Iterator[None]:
    """Die of SIGINT instead of raising KeyboardInterrupt; where it is ignored or handled already, nothing changes."""
    python_handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if python_handles:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    if python_handles:
        signal.signal(signal.SIGINT, signal.default_int_handler)
