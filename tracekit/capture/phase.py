"""Mark phases of a workload so that a trace can be read phase by phase."""

import threading
from contextlib import ContextDecorator
from typing import Self

from tracekit.capture.annotate.markers import marker, profiled

DOMAIN = "tracekit"
"""NVTX domain of the ranges, found again by the analysis."""


class _OpenPhases(threading.local):
    count = 0


open_phases = _OpenPhases()
"""How many phases this thread has open, inside of a profiler."""


class phase(ContextDecorator):
    """A range named ``name`` round a piece of work, as a context manager or a decorator.

    Costs next to nothing outside of a profiler. Needs the ``nvtx`` package inside of one, and raises
    ImportError with the mend when it is missing there.
    """

    def __init__(self, name: str) -> None:
        self._range = marker(DOMAIN, name) if profiled() else None

    def __enter__(self) -> Self:
        if self._range:
            self._range.__enter__()
            open_phases.count += 1
        return self

    def __exit__(self, *error: object) -> None:
        if self._range:
            open_phases.count -= 1
            self._range.__exit__(*error)
