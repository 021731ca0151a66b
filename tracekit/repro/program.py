"""The CUDA program: its parts, which ship with the package, put together."""

import re
from importlib.resources import files

PARTS = (
    "top.cu", "tables.cu", "kernels.cu", "memory.cu", "graphs.cu", "modes.cu", "measure.cu", "calibrate.cu",
    "search.cu", "clocks.cu", "output.cu", "main.cu",
)  # fmt: skip

WORK = "work.inc"
"""What host and kernels share; put in place of its ``#include``."""


def source() -> str:
    """The text of ``repro.cu``; it includes ``graph.inc``."""
    text = "\n".join(part(name) for name in PARTS)
    return re.sub(rf'#include "{WORK}"\n', lambda _: part(WORK), text)


def part(name: str) -> str:
    """The text of one part."""
    return files("tracekit.repro.cuda").joinpath(name).read_text(encoding="utf-8")
