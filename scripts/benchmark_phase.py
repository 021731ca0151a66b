"""What ``with tracekit.phase("name"): ...`` costs, outside of nsys and inside of it."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS, PHASES = 20, 2000

MEASURED = f"""
import time
from statistics import median
from tracekit import phase
def seconds():
    began = time.perf_counter()
    for _ in range({PHASES}):
        with phase("decode"):
            pass
    return time.perf_counter() - began
print('seconds a phase:', median(seconds() for _ in range({ROUNDS})) / {PHASES})
"""


def phase_costs(nsys: Path | None) -> dict[str, float]:
    """Seconds a phase, the median of rounds; without nsys only those outside of it."""
    python = [sys.executable, "-c", MEASURED]
    costs = {"outside of nsys": _told(python)}
    if nsys:
        with tempfile.TemporaryDirectory() as folder:
            profile = [str(nsys), "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", f"--output={folder}/x"]
            costs["inside of nsys"] = _told([*profile, *python])
    return costs


def _told(command: list[str]) -> float:
    """The figure in what a command says; nsys says more."""
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (figure,) = re.findall(r"^seconds a phase: (\S+)$", said, re.MULTILINE)
    return float(figure)
