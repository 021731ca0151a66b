"""The part of a trace that is asked about."""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.phases.assignment import Phases, find_phases
from tracekit.analysis.results import OUTSIDE
from tracekit.analysis.wanted import Selection
from tracekit.errors import WrongUsage
from tracekit.intervals import overlap_by_device
from tracekit.trace.reader import Trace


class Selected(NamedTuple):
    """The kernels and copies asked for, and the kernels' time by depth (``device``, ``depth``, ``time``)."""

    kernels: pl.DataFrame
    copies: pl.DataFrame
    depths: pl.DataFrame


def phases_of(trace: Trace, pattern: str | None = None) -> Phases:
    """The phases of a trace."""
    return find_phases(trace.kernels, trace.copies, trace.graph_executions, trace.calls, trace.ranges, pattern)


def select(trace: Trace, wanted: Selection, kernels: pl.DataFrame | None = None) -> Selected:
    """Kernels and copies in the phase, window and on the device asked for.

    ``kernels`` are the trace's, in case they have more columns. Raises WrongUsage when there is no such phase, device
    or stream.
    """
    kernels, copies = trace.kernels if kernels is None else kernels, trace.copies
    if wanted.phase is not None:
        kernels, copies = _in_phase(trace, kernels, wanted.phase)
    for column, value in (("device", wanted.device), ("stream", wanted.stream)):
        if value is not None:
            present = sorted({*trace.kernels[column].drop_nulls(), *trace.copies[column].drop_nulls()})
            if value not in present:
                raise WrongUsage(
                    f"no {column} {value} in {trace.label}: it has {', '.join(map(str, present)) or 'none'}"
                )
            kernels, copies = (frame.filter(pl.col(column) == value) for frame in (kernels, copies))
    if wanted.begin is not None:
        kernels, copies = (frame.filter(pl.col("start") >= wanted.begin) for frame in (kernels, copies))
    if wanted.finish is not None:
        kernels, copies = (frame.filter(pl.col("start") < wanted.finish) for frame in (kernels, copies))
    if kernels.height == trace.kernels.height:
        return Selected(kernels, copies, trace.depths)
    return Selected(kernels, copies, overlap_by_device(kernels)[1])


def _in_phase(trace: Trace, kernels: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    phases = phases_of(trace)
    found = phases.instances["phase"].unique(maintain_order=True).to_list()
    if name == OUTSIDE:
        chosen = [phases.kernels.is_null(), phases.copies.is_null()]
    elif name in found:
        ids = phases.instances.filter(pl.col("phase") == name)["instance"].implode()
        chosen = [phases.kernels.is_in(ids), phases.copies.is_in(ids)]
    else:
        names = ", ".join(repr(each) for each in [*found, OUTSIDE])
        raise WrongUsage(f"no phase {name!r} in {trace.label}: it has {names}")
    return kernels.filter(chosen[0].fill_null(False)), trace.copies.filter(chosen[1].fill_null(False))
