"""Which file this is and which state it is in, and where what was made of it is kept."""

import hashlib
import os
from functools import cache
from pathlib import Path

from tracekit import __version__


def cache_folder() -> Path:
    """``TRACEKIT_CACHE`` if set, else ``tracekit`` in the user's cache folder."""
    if named := os.environ.get("TRACEKIT_CACHE"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("tracekit")


def digest(*parts: object) -> str:
    """A name for what this code made from these parts."""
    return hashlib.sha256(repr((__version__, _code_state(), *parts)).encode()).hexdigest()[:32]


@cache
def _code_state() -> int:
    """When the package's code last changed: a working copy changes without a new version."""
    package = Path(__file__).parents[1]
    return max(file.stat().st_mtime_ns for file in package.rglob("*.py"))


def file_identity(path: Path) -> str | None:
    """A digest of which file this is and which state it is in; None when that cannot be told.

    The change counter (bytes 24-27 of a SQLite file) tells writes that leave size and times alone. A file
    with a write-ahead log beside it holds changes that its own bytes do not show.
    """
    try:
        state = path.stat()
        wal = Path(f"{path.resolve()}-wal")
        if not path.is_file() or (wal.exists() and wal.stat().st_size):
            return None
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return None
    times = (state.st_mtime_ns, state.st_ctime_ns)
    return digest(path.resolve(), state.st_size, times, state.st_ino, header[24:28])
