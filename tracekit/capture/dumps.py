"""Graphs as DOT files, from a short run of their own: the framework writes each one while the workload waits.

``python -m tracekit.capture.dumps FOLDER`` ends once the budget of files or of bytes is spent in a folder.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tracekit.capture.launch import run_plain
from tracekit.capture.load import Load
from tracekit.capture.outcome import Finding
from tracekit.capture.run_folder import Dumps, RunFolder

MOST_FILES = 200
MOST_BYTES = 64 << 20

TICK_S = 0.05
GRACE_S = 3.0
"""How long the workload may go on, writing more, once the budget is spent."""

FOLDER = "graphs"


def take_dumps(
    command: Sequence[str], variable: str, environment: Mapping[str, str], folder: RunFolder
) -> tuple[Dumps, list[Finding], bool]:
    """Run a command until it ends or has spent the budget; the files are filed in ``graphs/`` of the run folder.

    ``variable`` takes the prefix of the files. The bool says whether a signal ended the run.
    """
    with tempfile.TemporaryDirectory(dir=folder.path, prefix=".graphs-", ignore_cleanup_errors=True) as name:
        written = Path(name).absolute()
        # What runs beside a workload ends it when it is over: here, a look at the budget.
        budget = Load([sys.executable, "-m", "tracekit.capture.dumps", str(written)], folder.log("dump", 1, "budget"))
        ran = run_plain(
            command,
            environment={**environment, variable: str(written / "graph")},
            stdout_log=folder.log("dump", 1, "stdout"),
            stderr_log=folder.log("dump", 1, "stderr"),
            load=budget,
            grace_s=GRACE_S,
        )
        kept = list(_within_budget(written))
        names = [f"{FOLDER}/{file.name}" for file in kept]
        if kept:
            (folder.path / FOLDER).mkdir()
        for file, target in zip(kept, names, strict=True):
            file.rename(folder.path / target)
        findings = []
        if ran.failed:
            findings.append(Finding("dumps", f"the run for graph dumps ended with exit code {ran.exit_code}"))
        elif not kept:
            findings.append(Finding("dumps", "no graph was dumped: the workload launched none, or none in time"))
        return Dumps(names, stopped=ran.stopped_by is not None), findings, ran.interrupted


def _within_budget(folder: Path) -> Iterator[Path]:
    """The first files that are whole, as far as the budget goes."""
    left = MOST_BYTES
    for file in sorted(folder.iterdir(), key=_number)[:MOST_FILES]:
        text = file.read_bytes()
        left -= len(text)
        if left < 0 or not text.rstrip().endswith(b"}"):
            return
        yield file


def _number(file: Path) -> int:
    digits = re.findall(r"\d+", file.name)
    return int(digits[-1]) if digits else 0


def _is_spent(folder: Path) -> bool:
    sizes = [file.stat().st_size for file in folder.iterdir()]
    return len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES


if __name__ == "__main__":
    while not _is_spent(Path(sys.argv[1])):
        time.sleep(TICK_S)
