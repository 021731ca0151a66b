"""Frames read once, kept as Parquet in the user's cache folder, never beside the user's file.

An entry belongs to one version of tracekit and one state of one file: path, size, times, inode and SQLite's change counter. Files are
put in place whole (written aside, then renamed), so several processes may share the folder.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import polars as pl

from tracekit import __version__

SIZE_LIMIT = 4 << 30
"""Bytes kept; the entries unused for longest go first."""

T = TypeVar("T")
Frames = dict[str, pl.DataFrame]


def cache_folder() -> Path:
    """``TRACEKIT_CACHE`` if set, else ``tracekit`` in the user's cache folder."""
    if named := os.environ.get("TRACEKIT_CACHE"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("tracekit")


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
    parts = (
        __version__,
        path.resolve(),
        state.st_size,
        state.st_mtime_ns,
        state.st_ctime_ns,
        state.st_ino,
        header[24:28],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


class FrameCache:
    """The kept frames of one file. Without a ``folder`` nothing is kept and everything is built."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @classmethod
    def of(cls, path: Path) -> "FrameCache":
        """The cache entry of a file's present state."""
        identity = file_identity(path)
        return cls(cache_folder() / identity if identity else None)

    def frames(self, names: tuple[str, ...], build: Callable[[], tuple[Frames, bool]]) -> Frames:
        """The named frames: kept ones, else those that ``build`` returns.

        ``build`` also says whether its frames may be kept.
        """
        if self._folder is None:
            return build()[0]
        kept = self._load(names)
        if kept is not None:
            return kept
        frames, keep = build()
        if keep:
            # A full disk or a folder that cannot be written costs the next run its speed, nothing else.
            with contextlib.suppress(OSError, pl.exceptions.ComputeError):
                self._save(frames)
        return frames

    def value(self, name: str, kind: type[T], build: Callable[[], tuple[T, bool]]) -> T:
        """The same for one value, kept as JSON."""
        if self._folder is None:
            return build()[0]
        file = self._folder / f"{name}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(file.read_bytes(), type=kind)
        value, keep = build()
        if keep:
            with contextlib.suppress(OSError):
                self._put(file, lambda aside: aside.write_bytes(msgspec.json.encode(value)))
        return value

    def _load(self, names: tuple[str, ...]) -> Frames | None:
        assert self._folder is not None
        try:
            frames = {name: pl.read_parquet(self._folder / f"{name}.parquet") for name in names}
            os.utime(self._folder)
        except (OSError, pl.exceptions.PolarsError):
            return None
        return frames

    def _save(self, frames: Frames) -> None:
        assert self._folder is not None
        for name, frame in frames.items():
            self._put(
                self._folder / f"{name}.parquet",
                partial(frame.write_parquet, compression="lz4", statistics=False),
            )
        _trim(self._folder.parent, spared=self._folder)

    @staticmethod
    def _put(file: Path, write: Callable[[Path], object]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, aside = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
        os.close(handle)
        try:
            write(Path(aside))
            Path(aside).replace(file)
        finally:
            Path(aside).unlink(missing_ok=True)


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
