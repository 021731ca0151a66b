"""First guesses of how much work a stand-in does, from which ``--calibrate`` starts.

A trace holds no memory traffic: the guess is what the kernel could have moved in the time it took alone.
"""

import math

from tracekit.repro.model import Body, Size

BANDWIDTH = 273_000_000_000
"""Bytes a second where the trace does not tell: those of GB10 (NVIDIA, DGX Spark hardware overview)."""

SMS = 48
"""Multiprocessors where the trace does not tell: those of GB10."""

TRAFFIC: dict[Body, float] = {"matmul": 0.1, "matvec": 0.8, "copy": 0.8, "reduce": 0.8, "elementwise": 0.8}
"""Share of the memory bandwidth that a kernel of the kind takes: near all of it, but for those that compute."""

STEP_NS = 200
"""What one step along K takes a block of a matmul."""

LEAST_BYTES = 4096


def guess_bytes(body: Body, duration_ns: float, bandwidth: int | None) -> int:
    """Memory traffic of a kernel, in whole units of 16 bytes."""
    moved = duration_ns * 1e-9 * (bandwidth or BANDWIDTH) * TRAFFIC[body]
    return max(LEAST_BYTES, int(moved) // 16 * 16)


def guess_iterations(body: Body, duration_ns: float, grid: Size, sms: int | None) -> int:
    """Steps along K of each block of a matmul; of the others one round of arithmetic for what they read."""
    if body != "matmul":
        return 1
    waves = math.ceil(math.prod(grid) / (sms or SMS))
    return max(1, round(duration_ns / (waves * STEP_NS)))
