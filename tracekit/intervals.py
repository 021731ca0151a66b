"""How many intervals run at each moment: the arithmetic under every overlap figure.

Intervals are half-open, [start, end), in integer ns; one of zero length is never running. All sums are
integer sums, so they are exact.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]


class Sweep(NamedTuple):
    """Moments at which the number of running intervals may change, in order, group after group.

    ``depth[i]`` intervals run over [``time[i]``, ``time[i]`` + ``length[i]``). ``first`` and ``last`` give,
    for each interval in the order it came in, the moments of its start and of its end.
    """

    time: Ints
    depth: Positions
    length: Ints
    first: Positions
    last: Positions

    def elapsed(self, least: int) -> Ints:
        """Time with at least ``least`` intervals running, summed over all moments before each."""
        running = np.where(self.depth >= least, self.length, 0)
        before = np.cumsum(running)
        before -= running
        return before

    def within(self, least: int) -> Ints:
        """For each interval, how long at least ``least`` intervals ran while it ran."""
        elapsed = self.elapsed(least)
        return elapsed[self.last] - elapsed[self.first]

    def total(self, least: int) -> int:
        """Time with at least ``least`` intervals running."""
        return int(self.length[self.depth >= least].sum())

    def by_depth(self) -> dict[int, int]:
        """Depth (1 and more) -> time at that depth, for depths that lasted."""
        times = np.zeros(int(self.depth.max(initial=0)) + 1, np.int64)
        np.add.at(times, self.depth, self.length)
        return {depth: int(time) for depth, time in enumerate(times) if depth and time}

    def stretches(self, least: int) -> tuple[Ints, Ints]:
        """Maximal stretches with at least ``least`` running: the moments (indices) of their starts and ends."""
        deep = np.concatenate([[False], self.depth >= least, [False]])
        edges = np.flatnonzero(deep[1:] != deep[:-1])
        return edges[::2], edges[1::2]


def sweep(start: Ints, end: Ints, group: Ints | None = None) -> Sweep:
    """Sweep over intervals; those of different groups (small numbers from 0) never meet.

    Raises OverflowError when the groups' time spans together exceed 2^62 ns (146 years).
    """
    count = start.size
    if count == 0:
        none, nowhere = np.empty(0, np.int64), np.empty(0, np.int32)
        return Sweep(none, nowhere, none, nowhere, nowhere)
    shift = None if group is None else _side_by_side(start, end, group)
    time = np.concatenate([start, end] if shift is None else [start + shift, end + shift])
    order = np.argsort(time, kind="stable")
    time = time[order]
    final = np.empty(2 * count, np.bool_)
    final[-1] = True
    np.not_equal(time[1:], time[:-1], out=final[:-1])
    depth = np.cumsum(np.where(order < count, np.int8(1), np.int8(-1)), dtype=np.int32)[final]
    moment = np.cumsum(final, dtype=np.int32)
    moment -= final
    where = np.empty(2 * count, np.int32)
    where[order] = moment
    del order, moment
    time = time[final]
    length = np.diff(time, append=time[-1])
    if shift is not None:
        back = np.empty(time.size, np.int64)
        back[where[:count]] = shift
        back[where[count:]] = shift
        time = time - back
    return Sweep(time, depth, length, where[:count], where[count:])


def _side_by_side(start: Ints, end: Ints, group: Ints) -> Ints:
    """What to add to each interval's times so that the groups lie one after another on one axis."""
    spans = (
        pl.DataFrame({"group": group, "start": start, "end": end})
        .group_by("group")
        .agg(pl.col("start").min(), pl.col("end").max())
        .sort("group")
    )
    lengths = [end - start + 1 for start, end in zip(spans["start"], spans["end"], strict=True)]
    if sum(lengths) > 1 << 62:
        raise OverflowError("the groups' time spans together exceed 146 years")
    origins = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))[:-1]]) - spans["start"].to_numpy()
    position = np.searchsorted(spans["group"].to_numpy(), group)
    shift: Ints = origins[position]
    return shift


def overlap_by_device(kernels: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """How kernel instances (``start``, ``end``, ``device``, by start) overlap on each device.

    Returns, for each instance, how long others ran beside it (ns), and a frame ``device``, ``depth``,
    ``time``: how long (ns) so many kernels ran at once.
    """
    overlapped = np.zeros(kernels.height, np.int64)
    depths = [pl.DataFrame(schema=DEPTHS)]
    devices = kernels["device"].unique().sort()
    for device in devices:
        mine = (kernels["device"] == device).arg_true().to_numpy()
        start, end = (values if devices.len() == 1 else values[mine] for values in arrays(kernels))
        together = _may_overlap(start, end)
        moments = sweep(start[together], end[together])
        overlapped[mine[together]] = moments.within(2)
        times = moments.by_depth()
        apart = int((end - start).sum() - (end - start)[together].sum())
        if apart:
            times = {1: 0} | times
            times[1] += apart
        depths.append(
            pl.DataFrame(
                {"device": [device] * len(times), "depth": list(times), "time": list(times.values())}, schema=DEPTHS
            )
        )
    return pl.Series("overlapped", overlapped), pl.concat(depths)


def _may_overlap(start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Intervals, sorted by start, that begin before all earlier ones have ended or end after the next begins.

    Most kernels of most traces run alone, and need no sweep.
    """
    together = np.zeros(start.size, np.bool_)
    inside = start[1:] < np.maximum.accumulate(end)[:-1]
    together[1:] = inside
    together[:-1] |= inside
    return together


DEPTHS = pl.Schema({"device": pl.Int32, "depth": pl.Int64, "time": pl.Int64})


def distinct(values: Ints) -> Ints:
    """The different values, in order: by sorting, which is many times faster than ``numpy.unique``."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered


def arrays(intervals: pl.DataFrame) -> tuple[Ints, Ints]:
    """The ``start`` and ``end`` columns."""
    return intervals["start"].to_numpy(), intervals["end"].to_numpy()


def device_groups(intervals: pl.DataFrame) -> Ints | None:
    """Groups by ``device``; None where there is only one."""
    device = intervals["device"]
    return None if device.n_unique() < 2 else device.to_numpy().astype(np.int64)
