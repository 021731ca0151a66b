"""Random kernels for properties, in the forms they are asked about: frames, files and the oracle's runs."""

from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from nsys_export import Export
from oracle import Run

from tracekit.analysis.kernels.solo import SOLO
from tracekit.analysis.overlap.episodes import Found, find_episodes
from tracekit.analysis.overlap.kinds import device_overlaps
from tracekit.analysis.overlap.streams import streams_by_device
from tracekit.analysis.results import DeviceOverlap
from tracekit.intervals import overlap_by_device
from tracekit.trace import schema

T = TypeVar("T")
Solo = dict[int, Fraction]

FAR = (0, -20, 10**9, -(2**53) + 3, 2**53 - 7, 2**55)
"""Where on the clock the intervals lie: about zero, and where doubles no longer count in ones."""


@st.composite
def run_sets(draw: st.DrawFn, most: int = 16) -> list[Run]:
    """Kernels on few moments, so that they tie, touch and nest; or on many, so that sizes differ."""
    origin = draw(st.sampled_from(FAR))
    scale = draw(st.sampled_from((1, 1, 977, 10**6)))
    starts, lengths = st.integers(0, 12), st.sampled_from((0, 1, 1, 2, 3, 5, 8, 13))
    crowded = draw(st.booleans())

    def run(start: int, length: int, place: tuple[int, int, int], kernel: int, launch: int | None) -> Run:
        device, process, stream = place
        begin = origin + start * scale
        return Run(begin, begin + length * scale, device, process, stream, kernel, launch)

    place = st.tuples(
        st.just(0) if crowded else st.integers(0, 2),
        st.integers(1, 2),
        st.integers(7, 8) if crowded else st.integers(7, 11),
    )
    launch = st.sampled_from((None, None, 1, 2))
    runs = draw(st.lists(st.builds(run, starts, lengths, place, st.integers(0, 3), launch), max_size=most))
    return sorted(runs, key=lambda run: (run.start, run.end))


durations = st.dictionaries(st.integers(0, 3), st.fractions(1, 10**6, max_denominator=4), max_size=4)


def kernel_frame(runs: list[Run]) -> pl.DataFrame:
    """The runs, by start, as a trace's kernel instances."""
    eager = 1_000_000
    columns = {
        "start": [run.start for run in runs],
        "end": [run.end for run in runs],
        "device": [run.device for run in runs],
        "stream": [run.stream for run in runs],
        "process": [run.process for run in runs],
        "correlation": [eager + i if run.launch is None else run.launch for i, run in enumerate(runs)],
        "graph_node": [None if run.launch is None else i + 1 for i, run in enumerate(runs)],
        "key": [run.kernel for run in runs],
        "overlapped": [0] * len(runs),
    }
    frame = pl.DataFrame(columns, schema=schema.KERNELS)
    return frame.with_columns(overlap_by_device(frame)[0])


def solo_frame(solo: Solo) -> pl.DataFrame:
    known = [(kernel, float(time), float(time), float(time), 1, "test") for kernel, time in solo.items()]
    return pl.DataFrame(known, schema=SOLO, orient="row")


def devices_of(kernels: list[Run], copies: list[Run]) -> list[DeviceOverlap]:
    frame = kernel_frame(kernels)
    return device_overlaps(
        frame,
        kernel_frame(copies).select(list(schema.COPIES)),
        overlap_by_device(frame)[1],
        streams_by_device(frame),
        frozenset(),
    )


def found_in(runs: list[Run], solo: Solo) -> Found:
    frame = kernel_frame(runs)
    return find_episodes(frame, frame["key"], solo_frame(solo), frame["device"].to_numpy().astype(np.int64))


def known(value: T | None) -> T:
    """A figure that nothing kept from being given."""
    assert value is not None
    return value


def exact(value: Fraction | None) -> object:
    return None if value is None else pytest.approx(float(value), rel=1e-9, abs=1e-6)


def in_one_file(runs: list[Run], path: Path, shuffle: int | None = None) -> Path:
    export = Export()
    for i, run in enumerate(runs):
        export.kernel(
            run.start,
            run.end,
            run.stream,
            f"k{run.kernel}",
            pid=run.process,
            device=run.device,
            correlation=1000 + i if run.launch is None else run.launch,
            node=None if run.launch is None else i + 1,
        )
    return export.write(path, shuffle=shuffle)
