"""CUDA graphs switched off while the phases of one name last, by a framework's own context manager."""

import functools
import os
import sys
import threading
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

from tracekit.capture.annotate.markers import Range

VARIABLE = "TRACEKIT_GRAPHS_OFF_IN"
"""Holds the name of the phases that this process runs without graphs."""


@functools.cache
def phase_without_graphs() -> str | None:
    """The name of the phases without graphs, where there are any."""
    return os.environ.get(VARIABLE)


class GraphsOff:
    """A range with graphs switched off in it, round another range if there is one; it holds no state."""

    def __init__(self, inside: Range | None) -> None:
        self._inside = inside

    def __enter__(self) -> None:
        scope = _scope()
        if scope:
            scope.__enter__()
        _open.scopes.append(scope)
        if self._inside:
            self._inside.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._inside:
            self._inside.__exit__(*error)
        if scope := _open.scopes.pop():
            scope.__exit__(None, None, None)


class _OpenScopes(threading.local):
    """Those of this thread, the innermost last: a scope serves once, a range as often as wanted."""

    def __init__(self) -> None:
        self.scopes: list[AbstractContextManager[Any] | None] = []


_open = _OpenScopes()


def _scope() -> AbstractContextManager[Any] | None:
    """A new scope of the framework that this process has imported by now."""
    from tracekit.frameworks import FRAMEWORKS

    for framework in FRAMEWORKS:
        switch = framework.scoped_switch
        if switch and (module := sys.modules.get(switch.module)):
            made: AbstractContextManager[Any] = attrgetter(switch.maker)(module)(**dict(switch.off))
            return made
    return None
