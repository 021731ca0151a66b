"""NVTX ranges: one object a name, entered and left as often as wanted."""

import functools
import os
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tracekit.capture.annotate.notices import say


class Range(Protocol):
    """A range that opens when entered and closes when left, on the same thread; it holds no state."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> object: ...


@functools.cache
def profiled() -> bool:
    """Whether a profiler takes this process' NVTX calls: it is injected through the environment."""
    return any(os.environ.get(name) for name in ("NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH"))


@functools.lru_cache(maxsize=4096)
def marker(domain: str, name: str, payload: int | None = None) -> Range:
    """The range of this name and payload in an NVTX domain.

    Raises ImportError, with the mend, where the nvtx package is missing.
    """
    made.add(domain)
    return _open(domain)(name, payload)


made: set[str] = set()
"""Domains in which this process has made a range."""


@functools.cache
def _open(domain: str) -> Callable[[str, int | None], Range]:
    try:
        import nvtx
    except ImportError as error:
        raise ImportError("NVTX ranges need the nvtx package: pip install 'tracekit[nvtx]'") from error
    if type(nvtx.get_domain(domain)).__name__ == "DummyDomain":
        try:
            return _unasked(domain)
        except (ImportError, AttributeError, TypeError):
            say("this nvtx package records nothing under this version of nsys: pip install nvtx==0.2.11")

    def annotated(name: str, payload: int | None) -> Range:
        annotation: Range = nvtx.annotate(message=name, domain=domain, payload=payload)
        return annotation

    return annotated


def _unasked(domain_name: str) -> Callable[[str, int | None], Range]:
    """Ranges that are recorded without asking first whether their domain is enabled.

    nvtx 0.2.12 and later ask, nsys before 2024.3 cannot answer, and the package takes that for a no;
    where the answer is an honest no, the calls do nothing.
    """
    from nvtx._lib.lib import Domain, DomainHandle, pop_range, push_range

    domain = object.__new__(Domain)
    domain.handle = DomainHandle(domain_name)
    domain.__init__(domain_name)
    pop = partial(pop_range, domain.handle)

    def unasked(name: str, payload: int | None) -> Range:
        attributes = domain.get_event_attributes(message=name, payload=payload)
        return _PushPop(partial(push_range, attributes, domain.handle), pop)

    return unasked


class _PushPop:
    """A range by two calls."""

    def __init__(self, push: Callable[[], None], pop: Callable[[], None]) -> None:
        self._push, self._pop = push, pop

    def __enter__(self) -> None:
        self._push()

    def __exit__(self, *error: object) -> None:
        self._pop()
