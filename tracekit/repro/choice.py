"""Which graph launch of a trace is reproduced: the one that lost most, or the one asked for."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.kernels.durations import group_of_instances
from tracekit.analysis.overlap.episodes import find_episodes
from tracekit.analysis.selection import select
from tracekit.analysis.wanted import Selection
from tracekit.errors import WrongUsage
from tracekit.graph.replays import Replays
from tracekit.repro.model import Loss
from tracekit.trace.reader import Trace
from tracekit.trace.schema import LAUNCH
from tracekit.units import duration

NOTHING = Loss(0, 0, 0, None)
"""Where nothing ran side by side."""


class Choice(NamedTuple):
    """One launch: the graph it is of, its row among the graph's launches, what it and the others lost, and why it."""

    graph: int
    row: int
    losses: list[Loss]
    why: str


def choose(
    trace: Trace,
    replays: list[Replays],
    labels: pl.DataFrame,
    solo: pl.DataFrame,
    launch: int | None,
    phase: str | None,
) -> Choice:
    """The launch of this number, else the one that lost most of those in the phase, if one is named, else of all.

    ``labels`` (matching.matched_labels) are the trace's own, ``solo`` (solo.SOLO) is by their groups. Where no loss is
    known, the longest launch. Raises WrongUsage where there is no such launch.
    """
    losses = losses_of(trace, replays, labels, solo)
    wanted = _in_phase(trace, replays, phase) if phase is not None else set(losses)
    if launch is not None:
        if launch not in losses:
            raise WrongUsage(f"no graph launch {launch}: the trace has launches 1 to {max(losses)}")
        return _choice(replays, losses, launch, "of all launches, it was asked for")
    if not wanted:
        raise WrongUsage(f"no graph was launched in phase {phase!r}: name another phase, or leave --phase out")
    among = f"of the {len(wanted)} graph launches" + (f" in phase {phase}" if phase is not None else "")
    lost = {number: loss for number in wanted if (loss := losses[number].lost_ns) is not None}
    if lost:
        worst = max(lost, key=lambda number: (lost[number], -number))
        what = "lost most" if lost[worst] > 0 else "gained least"
        why = f"{among} it {what} by running kernels side by side: {duration(abs(lost[worst]))}"
        return _choice(replays, losses, worst, why)
    spans = {
        number: end - start
        for graph in replays
        for number, start, end in zip(
            graph.launch.tolist(), graph.start.min(axis=1).tolist(), graph.end.max(axis=1).tolist(), strict=True
        )
    }
    longest = max(wanted, key=lambda number: (spans[number], -number))
    why = f"{among} it took longest; what side by side cost is unknown: no solo durations, or nothing ran side by side"
    return _choice(replays, losses, longest, why)


def _choice(replays: list[Replays], losses: dict[int, Loss], launch: int, why: str) -> Choice:
    for at, graph in enumerate(replays):
        found = np.flatnonzero(graph.launch == launch)
        if found.size:
            return Choice(at, int(found[0]), [losses[number] for number in graph.launch.tolist()], why)
    raise AssertionError(launch)


def launch_of_rows(rows: pl.DataFrame, replays: list[Replays]) -> pl.Series:
    """The launch number of each kernel or copy (schema.KERNELS, schema.COPIES), null where it is of no graph launch."""
    numbers = pl.concat(
        [
            pl.DataFrame(
                {
                    "process": [graph.process] * len(graph.launch),
                    "correlation": graph.correlation,
                    "launch": graph.launch,
                },
                schema_overrides={"process": pl.Int64, "correlation": pl.Int64, "launch": pl.Int64},
            )
            for graph in replays
        ]
    )
    found = rows.join(numbers, on=LAUNCH, how="left", nulls_equal=True, maintain_order="left")
    return found.select(pl.when(pl.col("graph_node").is_not_null()).then("launch").alias("launch"))["launch"]


def losses_of(trace: Trace, replays: list[Replays], labels: pl.DataFrame, solo: pl.DataFrame) -> dict[int, Loss]:
    """What overlap within the launch cost each launch of the trace; what ran beside it from elsewhere is left out."""
    launch = launch_of_rows(trace.kernels, replays)
    inside = launch.is_not_null()
    kernels = trace.kernels.filter(inside)
    # Work on different devices is not side by side.
    device = kernels["device"].cast(pl.Int64)
    devices = int(device.max() or 0) + 1  # type: ignore[arg-type]
    place = launch.filter(inside) * devices + device
    found = find_episodes(kernels, group_of_instances(kernels, labels), solo, place.to_numpy()).episodes
    losses = losses_by_place(found.with_columns(pl.col("place") // devices))
    return {number: losses.get(number, NOTHING) for graph in replays for number in graph.launch.tolist()}


def losses_by_place(episodes: pl.DataFrame) -> dict[int, Loss]:
    """The loss of each place that has episodes (episodes.EPISODES)."""
    known = pl.col("known")
    sums = episodes.group_by("place").agg(
        episodes=pl.len(),
        side_by_side_ns=pl.col("wall").sum(),
        wall_ns=pl.col("wall").filter(known).sum(),
        solo_ns=pl.when(known.any()).then(pl.col("solo").filter(known).sum()),
    )
    return {place: Loss(*of) for place, *of in sums.iter_rows()}


def _in_phase(trace: Trace, replays: list[Replays], phase: str) -> set[int]:
    kernels = select(trace, Selection(phase=phase)).kernels
    return set(launch_of_rows(kernels, replays).drop_nulls())
