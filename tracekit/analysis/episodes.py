"""Overlap episodes: stretches with two or more kernels at once, and what each gained or lost."""

import numpy as np
import polars as pl

from tracekit.analysis.results import Episodes
from tracekit.intervals import Ints, arrays, sweep

EPISODES = pl.Schema(
    [
        ("episode", pl.UInt32()),
        ("place", pl.Int64()),
        ("start", pl.Int64()),
        ("end", pl.Int64()),
        ("wall", pl.Int64()),
        ("members", pl.UInt32()),
        ("kernels", pl.List(pl.UInt32)),
        ("known", pl.Boolean()),
        ("solo", pl.Float64()),
        ("solo_low", pl.Float64()),
        ("solo_high", pl.Float64()),
        ("unknown", pl.Int64()),
    ]
)
"""One row an episode: ``wall`` (W), ``solo`` (S over the members whose solo duration is known) with its
p25-p75 bounds, ``unknown`` (overlapped time of the other members), ``kernels`` (distinct groups)."""


def find_episodes(kernels: pl.DataFrame, group: pl.Series, solo: pl.DataFrame, place: Ints) -> pl.DataFrame:
    """Episodes of each place (a device, or a phase instance on a device): EPISODES.

    An instance running alone progresses at its solo rate, so
    S = sum over members of (solo - time alone) x (share of the member's overlapped time in the episode).
    """
    moments = sweep(*arrays(kernels), group=place)
    begin, finish = moments.stretches(2)
    elapsed = moments.elapsed(2)
    overlapped = elapsed[moments.last] - elapsed[moments.first]
    low = np.searchsorted(finish, moments.first, side="right")
    high = np.maximum(np.searchsorted(begin, moments.last, side="left"), low)
    high = np.where(overlapped > 0, high, low)
    counts = high - low
    member = np.repeat(np.arange(counts.size), counts)
    episode = np.arange(member.size) - np.repeat(np.cumsum(counts) - counts, counts) + low[member]
    inside = (
        elapsed[np.minimum(moments.last[member], finish[episode])]
        - elapsed[np.maximum(moments.first[member], begin[episode])]
    )
    instances = pl.DataFrame(
        {
            "duration": kernels["end"] - kernels["start"],
            "group": group,
            "overlapped": overlapped,
            "place": place,
        }
    ).join(
        solo.select("group", "solo", "solo_low", "solo_high"), on="group", how="left", maintain_order="left"
    )
    members = instances[member].with_columns(
        episode=pl.Series(episode, dtype=pl.UInt32), inside=pl.Series(inside, dtype=pl.Int64)
    )
    alone = pl.col("duration") - pl.col("overlapped")
    share = pl.col("inside") / pl.col("overlapped")
    walls = pl.DataFrame(
        {
            "episode": np.arange(begin.size, dtype=np.uint32),
            "start": moments.time[begin],
            "end": moments.time[finish],
            "wall": elapsed[finish] - elapsed[begin],
        }
    )
    sums = members.group_by("episode").agg(
        pl.col("place").first(),
        pl.len().alias("members"),
        pl.col("group").unique().sort().alias("kernels"),
        pl.col("solo").is_not_null().all().alias("known"),
        *(
            ((pl.col(column) - alone) * share).sum().alias(column)
            for column in ("solo", "solo_low", "solo_high")
        ),
        pl.col("inside").filter(pl.col("solo").is_null()).sum().alias("unknown"),
    )
    return walls.join(sums, on="episode").select(list(EPISODES)).cast(EPISODES).sort("episode")


def total(episodes: pl.DataFrame, solo: pl.DataFrame) -> Episodes:
    """Sums over episodes (EPISODES); ``solo`` (SOLO) tells where the solo durations come from."""
    covered = episodes.filter("known")
    wall, covered_wall = int(episodes["wall"].sum()), int(covered["wall"].sum())
    nothing = covered.is_empty()
    sources = solo["solo_from"].unique().sort().to_list()
    solo_sum, low, high = (float(covered[column].sum()) for column in ("solo", "solo_low", "solo_high"))
    bound_low, bound_high = float(episodes["solo_low"].sum()), float(episodes["solo_high"].sum())
    return Episodes(
        count=episodes.height,
        wall_ns=wall,
        solo_ns=None if nothing else round(solo_sum),
        gain_ns=None if nothing else round(solo_sum) - covered_wall,
        gain_low_ns=None if nothing else round(low) - covered_wall,
        gain_high_ns=None if nothing else round(high) - covered_wall,
        coverage=covered_wall / wall if wall else None,
        covered_count=covered.height,
        covered_wall_ns=covered_wall,
        bound_low_ns=round(bound_low) - wall,
        bound_high_ns=round(bound_high + float(episodes["unknown"].sum())) - wall,
        solo_from=", ".join(sources) if sources else "unknown",
    )
