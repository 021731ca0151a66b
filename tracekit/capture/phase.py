"""Mark phases of a workload so that a trace can be read phase by phase."""

import os
from contextlib import ContextDecorator
from typing import Any, Self

DOMAIN = "tracekit"
"""NVTX domain of the ranges, found again by the analysis."""


def _profiled() -> bool:
    """nsys injects its NVTX implementation through the environment of the workload."""
    return any(os.environ.get(name) for name in ("NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH"))


class phase(ContextDecorator):
    """A range named ``name`` round a piece of work, as a context manager or a decorator.

    Costs next to nothing outside of a profiler. Needs the ``nvtx`` package inside of one, and raises
    ImportError with the mend when it is missing there.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._domain: Any = _domain() if _profiled() else None
        self._attributes = self._domain and self._domain.get_event_attributes(message=name)

    def __enter__(self) -> Self:
        if self._domain:
            self._domain.push_range(self._attributes)
        return self

    def __exit__(self, *_: object) -> None:
        if self._domain:
            self._domain.pop_range()


def _domain() -> Any:  # noqa: ANN401
    try:
        import nvtx  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("tracekit.phase needs the nvtx package here: pip install 'tracekit[nvtx]'") from error
    return nvtx.get_domain(DOMAIN)
