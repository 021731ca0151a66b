"""Files kept in the cache folder: put in place whole, bounded in size, safe for several processes at once."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

SIZE_LIMIT = 4 << 30
"""Bytes kept; the entries unused for longest go first."""

T = TypeVar("T")


class Kept:
    """One entry of the cache, a folder. Without one nothing is kept and everything is built.

    What cannot be written, for want of room or of permission, costs the next run its speed, nothing else.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def value(self, name: str, kind: type[T], build: Callable[[], tuple[T, bool]]) -> T:
        """The value kept under ``name``, else the one that ``build`` returns, which says whether to keep it."""
        if self._folder is None:
            return build()[0]
        file = self._folder / f"{name}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            value = msgspec.json.decode(file.read_bytes(), type=kind)
            os.utime(self._folder)
            return value
        value, keep = build()
        if keep:
            with contextlib.suppress(OSError):
                self._put(file, lambda aside: aside.write_bytes(msgspec.json.encode(value)))
        return value

    def _put(self, file: Path, write: Callable[[Path], object]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, aside = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
        os.close(handle)
        try:
            write(Path(aside))
            Path(aside).replace(file)
        finally:
            Path(aside).unlink(missing_ok=True)
        _trim(file.parent.parent, spared=file.parent)


def _trim(folder: Path, spared: Path) -> None:
    """Drop the entries unused for longest until the rest fits SIZE_LIMIT."""
    entries = []
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):
            size = sum(file.stat().st_size for file in entry.iterdir())
            entries.append((entry.stat().st_mtime_ns, size, entry))
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries):
        if total <= SIZE_LIMIT:
            return
        if entry != spared:
            shutil.rmtree(entry, ignore_errors=True)
            total -= size
