"""What annotating has to say, on stderr; and hooks that may fail without harm to the workload."""

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def say(line: str) -> None:
    """Print a line on stderr, the first time it is said."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"tracekit: {line}", file=sys.stderr, flush=True)  # noqa: T201


def harmless(hook: Callable[P, R]) -> Callable[P, R | None]:
    """The hook, giving None where it fails: the workload goes on without, and that is said once."""

    @functools.wraps(hook)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return hook(*args, **kwargs)
        except Exception as error:
            say(f"some ranges are missing from this run ({type(error).__name__}: {error})")
            return None

    return guarded
