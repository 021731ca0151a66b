"""How long threads or processes were inside CUDA calls of some kinds, within any stretch of time."""

from collections.abc import Sequence
from copy import copy
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.intervals import Ints
from tracekit.trace.schema import ROLE
from tracekit.trace.validity import LONGEST


class CallTime:
    """The calls of each owner as stretches that do not meet: where calls nest, the outermost counts.

    ``calls`` follow ``schema.CALLS``; ``row`` are those left, by owner and time, each with the ``length`` (ns) it has
    to itself. Owners have their own places on one axis, so that one search finds the moments of all of them.
    """

    def __init__(self, calls: pl.DataFrame, owner: Literal["thread", "process"]) -> None:
        self.calls = calls
        start, end = pl.col("start"), pl.col("end")
        possible = (end > start) & (start >= -LONGEST) & (end <= LONGEST)
        calls = calls.with_row_index("row").filter(pl.col(owner).is_not_null() & possible)
        extents = calls.group_by(owner=owner).agg(pl.col("process").min(), pl.col("start").min(), pl.col("end").max())
        extents = extents.sort("owner")
        self._owners, self._process = extents["owner"].to_numpy(), extents["process"].to_numpy()
        self._first, self._last = extents["start"].to_numpy(), extents["end"].to_numpy()
        lengths = self._last - self._first + 1
        if sum(lengths.tolist()) > 1 << 62:
            raise OverflowError("the owners' time spans together exceed 146 years")
        self._shift = np.cumsum(lengths) - lengths - self._first
        shift = self._shift[np.searchsorted(self._owners, calls[owner].to_numpy())]
        starts, ends = calls["start"].to_numpy() + shift, calls["end"].to_numpy() + shift
        roles = calls["role"].to_physical().to_numpy()
        order = _by_start(starts, ends, roles)
        starts, ends = starts[order], ends[order]
        # Of owners side by side none reaches into the next.
        begins = np.maximum(starts, np.concatenate([starts[:1], np.maximum.accumulate(ends)[:-1]]))
        left = np.flatnonzero(begins < ends)
        self.row = calls["row"].to_numpy()[order[left]]
        self.length = (ends - begins)[left]
        self._begin = begins[left]
        self._role = roles[order[left]]

    def of_processes(self) -> "CallTime":
        """The same by process: as it is where each process has one thread."""
        if (np.diff(self._process) > 0).all():
            same = copy(self)
            same._owners = self._process
            return same
        return CallTime(self.calls, "process")

    def within(self, owner: Ints, start: Ints, end: Ints, kinds: Sequence[Sequence[str]]) -> list[Ints]:
        """For each stretch [start, end) of an owner: the time (ns) it spent in calls of each kind, a set of roles."""
        if not self._owners.size:
            return [np.zeros(start.size, np.int64) for _ in kinds]
        # One place for all of them where there is one owner only.
        place = np.zeros(1, np.int64)
        if self._owners.size > 1:
            place = np.minimum(np.searchsorted(self._owners, owner), self._owners.size - 1)
        stands = self._owners[place] == owner
        before, after = (
            np.clip(moment, self._first[place], self._last[place]) + self._shift[place] for moment in (start, end)
        )
        reached = [np.searchsorted(self._begin, moment, side="right") - 1 for moment in (before, after)]
        times = []
        for roles in kinds:
            counted = np.where(_holding(roles)[self._role], self.length, 0)
            elapsed = np.cumsum(counted) - counted
            since, until = (
                elapsed[at] + np.minimum(moment - self._begin[at], counted[at])
                for at, moment in zip(reached, (before, after), strict=True)
            )
            times.append(np.where(stands, until - since, 0))
        return times


def _holding(roles: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each role, by its number, is among these."""
    return np.array([role in roles for role in ROLE.categories])


def _by_start(start: Ints, end: Ints, role: Ints) -> Ints:
    """The order by start, the longest first among those that start together."""
    order = np.argsort(start)
    if (np.diff(start[order]) == 0).any():
        return np.lexsort((role, -end, start))
    return order
