"""Asking an outside program something, in bounded time."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Reply(NamedTuple):
    """How an outside program ended: ``code`` is None where it never started or had to be stopped."""

    code: int | None
    out: str
    ending: str


def ask(command: Sequence[str | Path], seconds: float, environment: Mapping[str, str] | None = None) -> Reply:
    """Run a program with nothing on stdin; it and its children are stopped after so many seconds.

    ``environment`` is added to this process's own. ``ending`` says how it ended, in words that show nothing of
    what the program said: programs in trouble print their environment.
    """
    # A pipe would stay open, and be waited for, as long as any grandchild lives.
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Reply(None, "", f"does not start ({error.strerror})")
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return Reply(None, "", f"does not answer within {seconds:g} s")
        finally:
            _stop(process)
        said.seek(0)
        out = said.read().decode(errors="replace")
    return Reply(code, out, "works" if code == 0 else f"fails (exit code {code})")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the program's process group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(2)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
