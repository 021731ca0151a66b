"""Overlap arithmetic the slow way: look at what runs in every stretch between two neighbouring moments.

Written from the definitions alone, in exact arithmetic, for inputs of a few dozen kernels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

GAP_EDGES = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Run(NamedTuple):
    """A kernel instance on [start, end); ``launch`` is the graph launch it belongs to, None if eager."""

    start: int
    end: int
    device: int = 0
    process: int = 1
    stream: int = 7
    kernel: int = 0
    launch: int | None = None

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def owner(self) -> tuple[int, int]:
        """A stream belongs to its process."""
        return self.process, self.stream


class Stretch(NamedTuple):
    """Between ``start`` and ``end`` exactly the instances at ``running`` run."""

    start: int
    end: int
    running: tuple[int, ...]

    @property
    def length(self) -> int:
        return self.end - self.start


class Pair(NamedTuple):
    overlap: int
    instances: int
    stretch_a: Fraction | None
    stretch_b: Fraction | None


class Episode(NamedTuple):
    """``solo`` (S) sums the members with a known solo duration; ``unknown`` is the others' overlapped time."""

    start: int
    end: int
    members: int
    known: bool
    solo: Fraction
    unknown: int

    @property
    def wall(self) -> int:
        return self.end - self.start


class DeviceTime(NamedTuple):
    span: int
    idle: int
    copy: int
    gaps: list[tuple[int, int]]
    """(count, total) for each of GAP_EDGES."""


def by_device(runs: Iterable[Run]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.device].append(run)
    return dict(sorted(found.items()))


def stretches(runs: Sequence[Run]) -> list[Stretch]:
    """Every stretch between neighbouring moments of one device, empty ones of the GPU included."""
    moments = sorted({time for run in runs for time in (run.start, run.end)})
    return [
        Stretch(begin, finish, tuple(i for i, run in enumerate(runs) if run.start <= begin and run.end >= finish))
        for begin, finish in pairwise(moments)
    ]


def time_by_depth(runs: Sequence[Run]) -> dict[int, int]:
    times = Counter[int]()
    for stretch in stretches(runs):
        times[len(stretch.running)] += stretch.length
    return {depth: time for depth, time in sorted(times.items()) if depth}


def overlapped_each(runs: Sequence[Run]) -> list[int]:
    """For each instance of one device, how long another one ran beside it."""
    times = [0] * len(runs)
    for stretch in stretches(runs):
        if len(stretch.running) >= 2:
            for i in stretch.running:
                times[i] += stretch.length
    return times


def kinds(runs: Sequence[Run]) -> tuple[int, int, int]:
    """Overlapped time across streams; else between nodes of one graph launch; else within a stream."""
    across = branches = same = 0
    for stretch in stretches(runs):
        here = [runs[i] for i in stretch.running]
        if len(here) < 2:
            continue
        launches = Counter(run.launch for run in here if run.launch is not None)
        if len({run.owner for run in here}) >= 2:
            across += stretch.length
        elif max(launches.values(), default=0) >= 2:
            branches += stretch.length
        else:
            same += stretch.length
    return across, branches, same


def stream_times(runs: Sequence[Run]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(process, stream) -> instances, busy, and time of it beside another kernel."""
    found = {}
    for owner in sorted({run.owner for run in runs}):
        busy = beside = 0
        for stretch in stretches(runs):
            if any(runs[i].owner == owner for i in stretch.running):
                busy += stretch.length
                beside += stretch.length if len(stretch.running) >= 2 else 0
        found[owner] = (sum(run.owner == owner for run in runs), busy, beside)
    return found


def stream_pairs(runs: Sequence[Run]) -> dict[tuple[tuple[int, int], tuple[int, int]], int]:
    times = Counter[tuple[tuple[int, int], tuple[int, int]]]()
    for stretch in stretches(runs):
        owners = sorted({runs[i].owner for i in stretch.running})
        for pair in combinations(owners, 2):
            times[pair] += stretch.length
    return dict(times)


def kernel_pairs(runs: Sequence[Run], solo: dict[int, Fraction]) -> dict[tuple[int, int], Pair]:
    """Kernels a <= b of any device: time at once and pairs of instances, and each side's median stretch."""
    overlap = Counter[tuple[int, int]]()
    instances = Counter[tuple[int, int]]()
    sides: dict[tuple[int, int], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for i, j in combinations(range(len(runs)), 2):
        shared = min(runs[i].end, runs[j].end) - max(runs[i].start, runs[j].start)
        if runs[i].device != runs[j].device or shared <= 0:
            continue
        a, b = sorted((i, j), key=lambda index: runs[index].kernel)
        pair = runs[a].kernel, runs[b].kernel
        overlap[pair] += shared
        instances[pair] += 1
        for side, index in ((0, a), (1, b)):
            sides[pair][side].add(index)
            if pair[0] == pair[1]:
                sides[pair][1 - side].add(index)
    return {
        pair: Pair(
            overlap[pair],
            instances[pair],
            *(
                median(runs[i].duration / solo[kernel] for i in members) if kernel in solo else None
                for kernel, members in zip(pair, sides[pair], strict=True)
            ),
        )
        for pair in overlap
    }


def device_time(kernels: Sequence[Run], copies: Sequence[Run]) -> DeviceTime:
    """Span, pauses and copies of one device."""
    active = [*kernels, *copies]
    span = max(run.end for run in active) - min(run.start for run in active)
    pauses = [stretch.length for stretch in stretches(active) if not stretch.running]
    gaps = []
    for edge, following in zip(GAP_EDGES, (*GAP_EDGES[1:], None), strict=True):
        inside = [pause for pause in pauses if pause >= edge and (following is None or pause < following)]
        gaps.append((len(inside), sum(inside)))
    return DeviceTime(span, sum(pauses), sum(time_by_depth(copies).values()), gaps)


def solo_durations(runs: Sequence[Run]) -> dict[int, tuple[Fraction, Fraction, Fraction]]:
    """Kernel -> median, p25 and p75 of its instances that others overlap by at most 1 %, on any device."""
    alone: dict[int, list[int]] = defaultdict(list)
    for of_device in by_device(runs).values():
        for run, beside in zip(of_device, overlapped_each(of_device), strict=True):
            if run.duration and 100 * beside <= run.duration:
                alone[run.kernel].append(run.duration)
    return {
        kernel: (quantile(times, Fraction(1, 2)), quantile(times, Fraction(1, 4)), quantile(times, Fraction(3, 4)))
        for kernel, times in alone.items()
    }


def quantile(values: Iterable[int], share: Fraction) -> Fraction:
    """Linear interpolation between the two neighbouring values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * Fraction(ordered[above] - ordered[below])


def episodes(runs: Sequence[Run], solo: dict[int, Fraction]) -> list[Episode]:
    """Maximal intervals of one device with two or more kernels, in order of time."""
    bounds: list[list[int]] = []
    for stretch in stretches(runs):
        if len(stretch.running) >= 2:
            if bounds and bounds[-1][1] == stretch.start:
                bounds[-1][1] = stretch.end
            else:
                bounds.append([stretch.start, stretch.end])
    beside = overlapped_each(runs)
    return [_episode(runs, beside, solo, begin, finish) for begin, finish in bounds]


def _episode(runs: Sequence[Run], beside: Sequence[int], solo: dict[int, Fraction], begin: int, finish: int) -> Episode:
    work, unknown, members, known = Fraction(0), 0, 0, True
    for run, overlapped in zip(runs, beside, strict=True):
        inside = min(run.end, finish) - max(run.start, begin)
        if inside <= 0:
            continue
        members += 1
        if run.kernel in solo:
            alone = run.duration - overlapped
            work += (solo[run.kernel] - alone) * Fraction(inside, overlapped)
        else:
            unknown += inside
            known = False
    return Episode(begin, finish, members, known, work, unknown)
