"""Work of several threads at once: numpy, polars and reading leave Python's lock meanwhile."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def together(*tasks: Callable[[], T]) -> list[T]:
    """What each task returns. An error is raised when all have ended: that of the first one that failed."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [task.result() for task in [pool.submit(task) for task in tasks]]
