"""Overlap episodes: stretches with two or more kernels at once, and what each gained or lost."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.analysis.results import Episodes
from tracekit.intervals import Ints, Positions, arrays, distinct, sweep

EPISODES = pl.Schema(
    [
        ("episode", pl.UInt32()),
        ("place", pl.Int64()),
        ("start", pl.Int64()),
        ("end", pl.Int64()),
        ("wall", pl.Int64()),
        ("members", pl.UInt32()),
        ("set", pl.UInt64()),
        ("known", pl.Boolean()),
        ("solo", pl.Float64()),
        ("solo_low", pl.Float64()),
        ("solo_high", pl.Float64()),
        ("unknown", pl.Int64()),
        ("cluster", pl.UInt32()),
    ]
)
"""One row an episode: ``wall`` (W), ``solo`` (S over the members whose solo duration is known) with its
p25-p75 bounds, ``unknown`` (overlapped time of the other members), ``set`` (a fingerprint of its kernels), ``cluster``
(one for episodes that an instance takes part in both of: how much of its work it did in either is not measured, only
assumed)."""


class Found(NamedTuple):
    """Episodes (EPISODES), and the kernels of each: ``episode``, ``group``, each kernel once."""

    episodes: pl.DataFrame
    kernels: pl.DataFrame


def find_episodes(
    kernels: pl.DataFrame, group: pl.Series, solo: pl.DataFrame, place: Ints, kind: pl.Series | None = None
) -> Found:
    """Episodes of each place (a device, or a phase instance on a device).

    ``solo`` (SOLO) is by ``kind``, where that is not the ``group`` of each instance. An instance running alone
    progresses at its solo rate, so
    S = sum over members of (solo - time alone) x (share of the member's overlapped time in the episode).
    """
    moments = sweep(*arrays(kernels), group=place)
    begin, finish = moments.stretches(2)
    elapsed = moments.elapsed(2)
    first, last = moments.first, moments.last
    overlapped = elapsed[last] - elapsed[first]
    which = np.flatnonzero(overlapped > 0)
    low = np.searchsorted(finish, first[which], side="right")
    counts = np.searchsorted(begin, last[which], side="left") - low
    episode = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    member = np.repeat(which, counts)
    until = np.minimum(last[member], finish[episode])
    since = np.maximum(first[member], begin[episode])
    inside = elapsed[until] - elapsed[since]
    beside = overlapped[member]
    duration = (kernels["end"] - kernels["start"]).to_numpy()[member]
    kernel = group.to_numpy()[member].astype(np.int64)
    count = begin.size
    work = {
        name: (durations - (duration - beside)) * (inside / beside)
        for name, durations in _looked_up(kernel if kind is None else kind.to_numpy()[member], solo).items()
    }
    unknown = np.isnan(work["solo"])
    size = int(kernel.max(initial=0)) + 1
    members = distinct(episode * size + kernel)
    kernels_of = pl.DataFrame(
        {"episode": (members // size).astype(np.uint32), "group": (members % size).astype(np.uint32)}
    )
    episodes = pl.DataFrame(
        {
            "episode": np.arange(count, dtype=np.uint32),
            "place": _places(place, first, begin, moments.time.size),
            "start": moments.time[begin],
            "end": moments.time[finish],
            "wall": elapsed[finish] - elapsed[begin],
            "members": np.bincount(episode, minlength=count),
            "known": np.bincount(episode[unknown], minlength=count) == 0,
            **{name: np.bincount(episode, np.nan_to_num(values), minlength=count) for name, values in work.items()},
            "unknown": np.bincount(episode[unknown], inside[unknown], minlength=count).astype(np.int64),
            "cluster": _clusters(low, counts, count),
        }
    )
    sets = kernels_of.group_by("episode").agg(set=pl.col("group").hash(seed=0).sum())
    episodes = episodes.join(sets, on="episode").select(list(EPISODES))
    return Found(episodes.cast(EPISODES).sort("episode"), kernels_of)


def _clusters(first: Ints, counts: Ints, episodes: int) -> Ints:
    """Number episodes so that those which an instance links, ``counts`` of them from ``first`` on, share a number."""
    begun = np.bincount(first, minlength=episodes + 1) - np.bincount(first + counts - 1, minlength=episodes + 1)
    linked = np.cumsum(begun)[:-1] > 0
    clusters: Ints = np.cumsum(np.concatenate([[0], ~linked[:-1]])) if episodes else np.zeros(0, np.int64)
    return clusters


_SOLO = ("solo", "solo_low", "solo_high")


def _looked_up(kernel: Ints, solo: pl.DataFrame) -> dict[str, npt.NDArray[np.float64]]:
    """Solo durations of each member's kernel, nan where unknown."""
    numbers = solo["group"].to_numpy()
    size = int(max(kernel.max(initial=0), numbers.max(initial=0))) + 1
    found = {}
    for name in _SOLO:
        table = np.full(size, np.nan)
        table[numbers] = solo[name].to_numpy()
        found[name] = table[kernel]
    return found


def _places(place: Ints, first: Positions, begin: Ints, moments: int) -> Ints:
    """The place of each episode: that of an interval that starts when it does."""
    of_moment = np.empty(moments, np.int64)
    of_moment[first] = place
    return of_moment[begin]


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
