"""What a recording holds, and why it holds nothing of a kind that was asked for."""

import ctypes
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tracekit.capture.nsys_options import Settings, Version

GPU_TABLES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
CALL_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")

SILENT_NVTX: tuple[Version, Version] = ((2022, 4, 0), (2024, 3, 0))
"""From the first of these versions until before the second, newer nvtx packages record no range under nsys."""


@dataclass(frozen=True)
class Finding:
    """Something about a recording that whoever reads it has to know."""

    code: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """How a recording came about: what was asked for and how the workload ended."""

    settings: Settings
    version: Version
    annotated: bool
    exit_code: int

    def without_report(self) -> Finding | None:
        """Why nsys was right to leave no report; None where it should have left one."""
        died = f"; the workload ended with exit code {self.exit_code}" if self.exit_code else ""
        if waited_for := self.settings.capture:
            message = f"nothing was recorded: {waited_for} was never reached{died}"
            return Finding("capture-never-began", message + ": check that the workload gets there, or record all of it")
        if self.settings.delay_s:
            message = f"nothing was recorded: the workload ended before {self.settings.delay_s:g} s were over{died}"
            return Finding("capture-never-began", message + ": give a shorter delay")
        return None

    def of_export(self, export: Path) -> list[Finding]:
        """What an export lacks."""
        gpu, calls, ranges = _counted(export)
        findings = []
        if not gpu:
            findings.append(self._without_gpu(calls))
        if self.annotated and not ranges:
            findings.append(self._without_ranges())
        return findings

    def _without_gpu(self, calls: int) -> Finding:
        if calls:
            return Finding(
                "no-gpu-activity",
                f"CUDA calls were recorded ({calls}) and no GPU activity: this nsys and this driver may not suit one "
                "another, or another profiler is in the workload: try another nsys version",
            )
        return Finding("no-cuda-activity", f"no CUDA activity was recorded: {self._why_without_cuda()}")

    def _why_without_cuda(self) -> str:
        if not _has_driver():
            return "there is no NVIDIA driver here (libcuda.so.1 is not found)"
        if self.exit_code:
            return f"the workload ended with exit code {self.exit_code}, perhaps before it used the GPU"
        if self.settings.delay_s or self.settings.duration_s or self.settings.capture:
            return "the workload used no GPU in the recorded part of the run"
        return "the workload used no GPU, or another profiler in it keeps nsys from tracing CUDA"

    def _without_ranges(self) -> Finding:
        return Finding("no-ranges", f"no NVTX range was recorded: {self._why_without_ranges()}")

    def _why_without_ranges(self) -> str:
        if find_spec("nvtx") is None:
            return "this Python has no nvtx package: pip install 'tracekit[nvtx]'"
        if self.exit_code:
            return f"the workload ended with exit code {self.exit_code}, perhaps before its first phase"
        unmarked = "no model of MLX or PyTorch was called and no tracekit.phase entered: mark the script's phases"
        first, beyond = SILENT_NVTX
        if first <= self.version < beyond:
            return f"{unmarked}; or this nsys gets none from nvtx 0.2.12 and later: pip install nvtx==0.2.11"
        return unmarked


def _counted(export: Path) -> tuple[int, int, int]:
    """Rows of GPU activity, CUDA calls and NVTX ranges."""
    with closing(sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

        def rows(tables: tuple[str, ...], condition: str = "1") -> int:
            counts = (
                connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]
                for table in tables
                if table in present
            )
            return sum(counts)

        # Ranges of push and pop, and of start and end; the other events are marks and domains.
        return rows(GPU_TABLES), rows(CALL_TABLES), rows(("NVTX_EVENTS",), "eventType IN (59, 60)")


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
