"""Runs of ``tracekit run`` in a folder of their own, and what they leave."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import stand_in_nsys
from launching import MARK, marked

BENCH = """
import os, sys, time
sys.stdout.write(f"ran with {sys.argv[1:]}\\n")
with open("ran.txt", "a") as file:
    file.write(f"{os.environ.get('MLX_USE_CUDA_GRAPHS')} {'profiled' if 'PROFILED' in os.environ else 'plain'}\\n")
def unused():
    import mlx.core
"""


@dataclass
class RunOf:
    """A running or ended ``tracekit run -o out ...``."""

    folder: Path
    process: subprocess.Popen[str]
    mark: str

    def end(self) -> int:
        self.out, self.err = self.process.communicate(timeout=90)
        return self.process.returncode

    @property
    def run_folder(self) -> Path:
        return self.folder / "out"

    @property
    def manifest(self) -> Any:  # noqa: ANN401
        return json.loads((self.run_folder / "run.json").read_text())

    @property
    def codes(self) -> set[str]:
        """Codes of all findings."""
        manifest = self.manifest
        findings = [finding for block in manifest["blocks"] for finding in block["findings"]]
        return {finding["code"] for finding in findings + manifest["findings"]}

    @property
    def files(self) -> list[str]:
        """What lies in the run folder, logs left out."""
        return sorted(path.name for path in self.run_folder.iterdir() if path.name != "logs")

    def log(self, name: str) -> str:
        return (self.run_folder / "logs" / f"{name}.log").read_text()

    def assert_nothing_is_left(self) -> None:
        """No hidden file in the run folder, no process of this run."""
        assert not list(self.run_folder.rglob(".*"))
        deadline = time.monotonic() + 15
        while left := marked(self.mark):
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def start(
    folder: Path,
    *arguments: object,
    nsys: Path,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[str] = subprocess.DEVNULL,
) -> RunOf:
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "run", "-o", "out", *map(str, arguments)],
        cwd=folder,
        env={
            **os.environ,
            MARK: mark,
            "TRACEKIT_NSYS": str(nsys),
            "TRACEKIT_DB": str(folder / "results.db"),
            **(env or {}),
        },
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return RunOf(folder, process, mark)


Record = Callable[..., RunOf]


def recorder(tmp_path: Path) -> Record:
    """A fixture: ``record(*arguments, script=, env=, stdin=)`` starts one with the stand-in, ``bench.py`` at hand."""
    nsys = stand_in_nsys.install(tmp_path / "bin")

    def recorded(*arguments: object, script: str = BENCH, **others: Any) -> RunOf:  # noqa: ANN401
        (tmp_path / "bench.py").write_text(script)
        return start(tmp_path, *arguments, nsys=nsys, **others)

    return recorded
