"""What one instance of a phase cost: GPU span, busy, overlapped, idle, launches, what overlap gained."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.overlap.episodes import Found, find_episodes
from tracekit.analysis.phases.assignment import Phases
from tracekit.intervals import arrays, sweep

SETUP_SPREAD, SETUP_SHARE = 3, 0.05
"""A later instance counts as warm-up when its setup calls take over 3 times the median and 5 % of the phase."""

FOLLOWS_WITHIN = 0.02
"""Instances follow one another when each range starts before the work of the one before it is complete, or
after a pause of at most this share of a range: then period and range start to completion hardly differ."""


DEVICES = 1 << 31
"""More than there are device ids, to number a phase instance on a device."""


class Work(NamedTuple):
    """GPU work of one trace, each frame with an ``instance`` column.

    Kernels also have ``group``, ``kind`` (what a solo duration is known of) and that ``solo`` duration.
    """

    kernels: pl.DataFrame
    copies: pl.DataFrame
    graph_executions: pl.DataFrame


def assigned(
    kernels: pl.DataFrame,
    copies: pl.DataFrame,
    graph_executions: pl.DataFrame,
    phases: Phases,
    group: pl.Series,
) -> Work:
    """Put each row's phase instance, and each kernel's ``group``, beside it; every group is one kind of work."""
    return Work(
        kernels.with_columns(instance=phases.kernels, group=group, kind=group),
        copies.with_columns(instance=phases.copies),
        graph_executions.with_columns(instance=phases.graph_executions),
    )


def instance_figures(phases: Phases, work: Work, episodes: pl.DataFrame, warm_up: int) -> pl.DataFrame:
    """One row a phase instance, by start, times in ns; ``episodes`` are those of ``instance_episodes``.

    Columns of phases.INSTANCES and: ``first``, ``last`` (GPU), ``kernel_rows``, ``launches``, ``summed``,
    ``busy``, ``overlapped``, ``idle``, ``copying`` (copies and graph executions beside no kernel),
    ``episodes``, ``gain`` (with ``gain_low``, ``gain_high``), ``coverage``, ``extra_members`` (members - 1
    of each episode), ``setup``, ``warm_up``, ``period`` (null where it follows no instance of its phase).
    Devices are measured apart and added up.
    """
    figures = phases.instances
    for part in (
        _extent(work),
        _kernel_time(work.kernels),
        _active_time(work),
        _gains(episodes),
        phases.setup,
    ):
        figures = figures.join(part, on="instance", how="left", maintain_order="left")
    counts = [
        "kernel_rows",
        "launches",
        "summed",
        "busy",
        "overlapped",
        "active",
        "episodes",
        "extra_members",
        "setup",
    ]
    gains = ["gain", "gain_low", "gain_high"]
    figures = figures.with_columns(
        *(pl.col(column).fill_null(0) for column in counts),
        *(pl.when(pl.col("episodes").fill_null(0) == 0).then(0.0).otherwise(pl.col(c)).alias(c) for c in gains),
        pl.col("coverage").fill_null(1.0),
    ).with_columns(
        idle=pl.col("device_span").fill_null(0) - pl.col("active"), copying=pl.col("active") - pl.col("busy")
    )
    return _steadiness(figures, warm_up)


def _rows_with_instance(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("instance").is_not_null())


def with_place(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``place``: the instance on one device."""
    device = pl.col("device").cast(pl.Int64) % DEVICES
    return frame.with_columns(place=pl.col("instance").cast(pl.Int64) * DEVICES + device)


def _all_work(work: Work) -> pl.DataFrame:
    columns = ["start", "end", "device", "instance"]
    return with_place(_rows_with_instance(pl.concat([frame.select(columns) for frame in work])))


def _extent(work: Work) -> pl.DataFrame:
    launches = pl.concat(
        [frame.select("instance", "process", "correlation") for frame in (work.kernels, work.graph_executions)]
    )
    launched = (
        _rows_with_instance(launches)
        .filter(pl.col("correlation").is_not_null())
        .unique()
        .group_by("instance")
        .agg(launches=pl.len().cast(pl.Int64))
    )
    extent = _all_work(work).group_by("instance").agg(first=pl.col("start").min(), last=pl.col("end").max())
    return extent.join(launched, on="instance", how="left")


def _kernel_time(kernels: pl.DataFrame) -> pl.DataFrame:
    rows = with_place(_rows_with_instance(kernels))
    totals = rows.group_by("instance").agg(
        kernel_rows=pl.len().cast(pl.Int64), summed=(pl.col("end") - pl.col("start")).sum()
    )
    return totals.join(_time_with(rows, {"busy": 1, "overlapped": 2}), on="instance", how="left")


def _active_time(work: Work) -> pl.DataFrame:
    rows = _all_work(work)
    spans = (
        rows.group_by("place")
        .agg(pl.col("instance").first(), device_span=pl.col("end").max() - pl.col("start").min())
        .group_by("instance")
        .agg(pl.col("device_span").sum())
    )
    return spans.join(_time_with(rows, {"active": 1}), on="instance", how="left")


def _time_with(rows: pl.DataFrame, depths: dict[str, int]) -> pl.DataFrame:
    """Per instance, the time with at least so many of its rows running, summed over its devices."""
    moments = sweep(*arrays(rows), group=rows["place"].to_numpy())
    columns = {}
    for name, least in depths.items():
        elapsed = moments.elapsed(least)
        columns[f"{name}_first"] = elapsed[moments.first]
        columns[f"{name}_last"] = elapsed[moments.last]
    return (
        rows.select("instance", "place")
        .with_columns(**{name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()})
        .group_by("place")
        .agg(
            pl.col("instance").first(),
            *((pl.col(f"{name}_last").max() - pl.col(f"{name}_first").min()).alias(name) for name in depths),
        )
        .group_by("instance")
        .agg(pl.col(*depths).sum())
    )


def instance_episodes(kernels: pl.DataFrame, solo: pl.DataFrame) -> Found:
    """Episodes within each phase instance, with their ``instance``; ``solo`` (SOLO) is by kind."""
    rows = with_place(_rows_with_instance(kernels))
    found = find_episodes(rows, rows["group"], solo, rows["place"].to_numpy(), rows["kind"])
    return found._replace(episodes=found.episodes.with_columns(instance=(pl.col("place") // DEVICES).cast(pl.UInt32)))


def _gains(episodes: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("known")
    return episodes.group_by("instance").agg(
        episodes=pl.len().cast(pl.Int64),
        gain=(pl.col("solo") - pl.col("wall")).filter(known).sum(),
        gain_low=(pl.col("solo_low") - pl.col("wall")).filter(known).sum(),
        gain_high=(pl.col("solo_high") - pl.col("wall")).filter(known).sum(),
        coverage=pl.col("wall").filter(known).sum() / pl.col("wall").sum(),
        extra_members=(pl.col("members").cast(pl.Int64) - 1).sum(),
    )


def _steadiness(figures: pl.DataFrame, warm_up: int) -> pl.DataFrame:
    """Mark warm-up, and measure the period of instances that follow one another."""
    of_phase, of_sequence = ["phase"], ["phase", "process"]
    length = pl.col("end") - pl.col("start")
    order = pl.int_range(pl.len()).over(of_sequence)
    repeated = pl.len().over(of_sequence) > 1
    first = repeated & (order < warm_up)
    usual = pl.col("setup").filter(~first).median().over(of_phase).fill_null(0)
    unusual = repeated & (pl.col("setup") > SETUP_SPREAD * usual)
    outlier = unusual & (pl.col("setup") > SETUP_SHARE * length.median().over(of_phase))
    # Where every instance sets up alike, setting up is a steady cost and nothing is left out.
    alike = (pl.col("setup") > 0).all().over(of_sequence) & ~(first & unusual).any().over(of_sequence)
    early = first & ~alike
    before = pl.col("phase", "end", "last").shift(1).over("process").name.suffix("_before")
    pause = pl.col("start") - pl.max_horizontal("end_before", "last_before")
    follows = (pl.col("phase_before") == pl.col("phase")) & (pause <= FOLLOWS_WITHIN * length.median().over(of_phase))
    period = pl.col("last") - pl.col("last_before")
    return (
        figures.sort("start", "instance")
        .with_columns(before)
        .with_columns(
            warm_up=early | outlier,
            period=pl.when(follows & (period > 0)).then(period),
        )
        .drop("phase_before", "end_before", "last_before")
    )


def dependent_gap(kernels: pl.DataFrame) -> tuple[float, float, float] | None:
    """Median, p25 and p75 (ns) of the pause before a kernel in which no kernel of its launch runs.

    A kernel that waits for another branch does not pause. Measured within graph launches where there are any,
    else within phase instances; ``kernels`` are by start. None without any such pause.
    """
    in_graphs = kernels.filter(pl.col("graph_node").is_not_null())
    rows, whole = (in_graphs, "correlation") if in_graphs.height else (kernels, "instance")
    same = ["process", "device", whole]
    before = pl.col("end").cum_max().shift(1).over(same)
    gaps = rows.select(gap=pl.col("start") - before).filter(pl.col("gap") >= 0)["gap"]
    if gaps.is_empty():
        return None
    low, middle, high = np.quantile(gaps.to_numpy(), [0.25, 0.5, 0.75])
    return float(middle), float(low), float(high)
