"""What bounds a time here: the last-level cache, the memory's bandwidth, and the cost of waiting for a result."""

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx

APPLE_CACHE = 96 << 20
"""System-level cache of the largest Apple chips (Ultra); no system call tells a chip's own."""

CPU_CACHE = 32 << 20
"""Taken where the system does not tell."""

L2_CACHE_SIZE = 38
"""``CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE`` of the CUDA driver API."""

COPIED_CACHES, LEAST_COPIED, MOST_COPIED = 4, 64 << 20, 1 << 30
"""Bytes that the bandwidth is measured with: so many caches, within these bounds."""

COPIES, WAITS = 7, 50
"""Repetitions; the first of each warms up."""


def cache_size() -> tuple[int, str]:
    """Bytes of the last cache before memory, and how they are known."""
    if mx.default_device() == mx.cpu:
        sizes = [_kilobytes(file) for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
        return (max(sizes), "from the system") if sizes else (CPU_CACHE, "assumed")
    if mx.metal.is_available():
        return APPLE_CACHE, "of the largest Apple chip"
    size = _cuda_l2()
    return (size, "L2, from the driver") if size else (APPLE_CACHE, "assumed")


def _kilobytes(file: Path) -> int:
    return int(file.read_text().strip().removesuffix("K")) << 10


def _cuda_l2() -> int | None:
    library = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return None
    size = ctypes.c_int()
    asked = driver.cuInit(0) or driver.cuDeviceGetAttribute(ctypes.byref(size), L2_CACHE_SIZE, 0)
    return size.value if not asked and size.value > 0 else None


def measured_bandwidth(cache: int) -> tuple[float, str]:
    """Bytes/s, read and written, of the quickest copy of arrays that no cache holds; and how it was measured."""
    size = min(max(COPIED_CACHES * cache, LEAST_COPIED), MOST_COPIED)
    source = mx.ones((size // 4,), dtype=mx.float32)
    mx.eval(source)
    return 2 * size / (min(_times(lambda: -source, COPIES)) / 1e9), f"quickest copy of {size >> 20} MiB here"


def measured_floor() -> float:
    """Median time (ns) of evaluating an operation of no size and waiting for it."""
    one = mx.array(1.0)
    mx.eval(one)
    return median(_times(lambda: one + one, WAITS))


def _times(build: Callable[[], Any], repetitions: int) -> list[int]:
    times = []
    for _ in range(1 + repetitions):
        result = build()
        mx.synchronize()
        begin = time.perf_counter_ns()
        mx.eval(result)
        mx.synchronize()
        times.append(time.perf_counter_ns() - begin)
    return times[1:]
