"""Mark phases of a workload so that a trace can be read phase by phase."""

import threading
from contextlib import ContextDecorator, nullcontext
from typing import Self

from tracekit.capture.annotate.graphs_off import GraphsOff, phase_without_graphs
from tracekit.capture.annotate.markers import Range, marker, profiled

DOMAIN = "tracekit"
"""NVTX domain of the ranges, found again by the analysis."""


class _OpenPhases(threading.local):
    count = 0


open_phases = _OpenPhases()
"""How many phases of the script's own this thread has open, where they do anything."""


def phase_range(name: str, payload: int | None = None) -> Range | None:
    """What to open round a phase: its NVTX range inside of a profiler, and graphs off where that is asked for.

    None where phases are of no use. Raises ImportError as ``marker`` does.
    """
    marked = marker(DOMAIN, name, payload) if profiled() else None
    without_graphs = phase_without_graphs()
    if name == without_graphs:
        return GraphsOff(marked)
    # Also a phase that does nothing keeps others from being opened inside of it.
    return marked or (nullcontext() if without_graphs else None)


class phase(ContextDecorator):
    """A range named ``name`` round a piece of work, as a context manager or a decorator.

    Costs next to nothing outside of a profiler. Needs the ``nvtx`` package inside of one, and raises
    ImportError with the mend when it is missing there.
    """

    def __init__(self, name: str) -> None:
        self._range = phase_range(name)

    def __enter__(self) -> Self:
        if self._range:
            self._range.__enter__()
            open_phases.count += 1
        return self

    def __exit__(self, *error: object) -> None:
        if self._range:
            open_phases.count -= 1
            self._range.__exit__(*error)
