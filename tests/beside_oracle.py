"""Who ran beside whom, the slow way: beside the definitions of ``oracle``, for a few dozen kernels of one device."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from oracle import Run, episodes, overlapped_each

BANDS = ("alone", "up to half", "over half")


class Beside(NamedTuple):
    """Instances of a kernel beside one set of others: how many, duration / solo of the median one, and the time of all
    of them, in all and beside others."""

    instances: int
    stretch: Fraction | None
    spent: int
    overlapped: int


class Set(NamedTuple):
    """Episodes of one set of kernels: W, and S where every member's solo duration is known."""

    episodes: int
    wall: int
    solo: Fraction | None


Victims = dict[tuple[int, str, frozenset[int]], Beside]


def victims(runs: Sequence[Run], solo: dict[int, Fraction]) -> Victims:
    """(kernel, band of the overlapped share, kernels beside it) -> its instances; alone, none are beside it."""
    found: dict[tuple[int, str, frozenset[int]], list[int]] = defaultdict(list)
    beside = overlapped_each(runs)
    for i, run in enumerate(runs):
        if not run.duration:
            continue
        share = Fraction(beside[i], run.duration)
        band = BANDS[(share > Fraction(1, 100)) + (share > Fraction(1, 2))]
        others = frozenset() if band == "alone" else companions(runs, i)
        found[run.kernel, band, others].append(i)
    return {
        key: Beside(
            len(members),
            median(runs[i].duration / solo[key[0]] for i in members) if key[0] in solo else None,
            sum(runs[i].duration for i in members),
            sum(beside[i] for i in members),
        )
        for key, members in found.items()
    }


def companions(runs: Sequence[Run], i: int) -> frozenset[int]:
    """The kernels of the instances that one runs at the same time as."""
    return frozenset(
        other.kernel
        for j, other in enumerate(runs)
        if j != i and min(other.end, runs[i].end) > max(other.start, runs[i].start)
    )


def episode_sets(runs: Sequence[Run], solo: dict[int, Fraction]) -> dict[tuple[frozenset[int], bool], Set]:
    """(kernels, whether there are exactly two instances) -> the episodes they make."""
    found: dict[tuple[frozenset[int], bool], Set] = {}
    for episode in episodes(runs, solo):
        members = [run for run in runs if min(run.end, episode.end) > max(run.start, episode.start)]
        key = frozenset(run.kernel for run in members), len(members) == 2
        before = found.get(key, Set(0, 0, Fraction(0)))
        known = episode.known and before.solo is not None
        work = before.solo + episode.solo if known and before.solo is not None else None
        found[key] = Set(before.episodes + 1, before.wall + episode.wall, work)
    return found
