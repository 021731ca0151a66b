"""The same question about the same files has the same answer: it is kept with their frames."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tracekit.analysis.results import Answer
from tracekit.trace.identity import cache_folder, digest, file_identity
from tracekit.trace.kept import Kept

A = TypeVar("A", bound=Answer)


def remembered(kind: type[A], question: object, traces: list[str], answer: Callable[[], A], *, cached: bool) -> A:
    """The answer to ``question`` (anything whose repr tells it apart) about the traces as they are now."""
    identities = [file_identity(Path(name)) for name in traces]
    if not cached or None in identities:
        return answer()
    entry = cache_folder() / digest(kind.__name__, question, traces, identities)
    return Kept(entry).value("answer", kind, lambda: (answer(), True))
