"""The same benchmark once more under nsys, for ``tracekit bench --profile``."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import OutsideProgramFailed

RECORDED_ROUNDS = 3
"""Rounds under nsys: medians of kernels need fewer than times, and the times come from the run without it."""


@contextmanager
def recorded(words: Sequence[str]) -> Iterator[Path]:
    """The export of a recording of ``tracekit bench`` with these words. Raises OutsideProgramFailed."""
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as name:
        folder = Path(name)
        run = folder / "run"
        recording = ["run", "--graphs", "on", "--framework", "MLX", "--annotate", "off", "--output", str(run), "-m"]
        ended = subprocess.run(
            [sys.executable, "-m", "tracekit", *recording, "tracekit", "bench", *_inner(words, folder)],
            capture_output=True,
            text=True,
            # What is recorded here is no result to keep.
            env={**os.environ, "TRACEKIT_DB": str(folder / "results.db")},
            check=False,
        )
        export = run / "on-1.sqlite"
        if not export.is_file():
            reason = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            raise OutsideProgramFailed(f"--profile: nothing was recorded ({reason}): ask 'tracekit doctor'")
        yield export


def _inner(words: Sequence[str], folder: Path) -> list[str]:
    """The user's words without the one that led here; a later word overrules an earlier one."""
    kept = [word for word in words if word != "--profile"]
    return [*kept, "--rounds", str(RECORDED_ROUNDS), "--format", "json", "--output", str(folder / "a.json"), "--force"]
