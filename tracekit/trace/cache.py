"""Frames read once, kept as Parquet in the user's cache folder, never beside the user's file.

An entry belongs to one version of tracekit and one state of one file: path, size, times, inode and
SQLite's change counter.
"""

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from tracekit.trace.identity import cache_folder, file_identity
from tracekit.trace.kept import Kept

Frames = dict[str, pl.DataFrame]


class FrameCache(Kept):
    """The kept frames of one file."""

    @classmethod
    def of(cls, path: Path) -> "FrameCache":
        """The cache entry of a file's present state."""
        identity = file_identity(path)
        return cls(cache_folder() / identity if identity else None)

    def frames(self, names: tuple[str, ...], build: Callable[[], tuple[Frames, bool]]) -> Frames:
        """The named frames: kept ones, else those that ``build`` returns, which says whether to keep them."""
        if self._folder is None:
            return build()[0]
        kept = self._load(self._folder, names)
        if kept is not None:
            return kept
        frames, keep = build()
        if keep:
            with contextlib.suppress(OSError, pl.exceptions.ComputeError):
                for name, frame in frames.items():
                    write = partial(frame.write_parquet, compression="lz4", statistics=False)
                    self._put(self._folder / f"{name}.parquet", write)
        return frames

    @staticmethod
    def _load(folder: Path, names: tuple[str, ...]) -> Frames | None:
        try:
            frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in names}
            os.utime(folder)
        except (OSError, pl.exceptions.PolarsError):
            return None
        return frames
