"""The host thread of a recorded process: its clock, its CUDA calls, and what it was doing at any time."""

from bisect import bisect_right
from typing import Literal, NamedTuple

from nsys_export import Export

from proving.noise import Noise
from proving.truth import HOST_CAUSES

PID = 4242

BEGIN = 1_000_000_000
"""When the program begins, on the clock of its recording (ns)."""

_BETWEEN_CALLS_NS = 300

Doing = Literal["launch_bound", "setup", "host_work"]
"""What a call is to a GPU that waits while the host is in it; in no call, the host does its own work."""


class Call(NamedTuple):
    """A CUDA call: when it began and returned, and its correlation id."""

    begin: int
    returned: int
    correlation: int


class Host:
    """One thread, writing its calls and ranges into an export."""

    def __init__(self, export: Export, noise: Noise, spread: float) -> None:
        self.now = BEGIN
        self._export = export
        self._noise = noise
        self._spread = spread
        self._correlation = 100
        self._calls: list[tuple[int, int, Doing]] = []

    def work(self, ns: float) -> None:
        """Time in no CUDA call."""
        self.now += self.noisy(ns)

    def call(self, name: str, ns: float, doing: Doing) -> Call:
        """A call that takes about ``ns``."""
        begin = self.now
        return self._returned(name, begin, begin + max(1, self.noisy(ns)), doing)

    def wait(self, name: str, until: int) -> None:
        """A call that returns once the GPU has passed ``until``."""
        begin = self.now
        self._returned(name, begin, max(begin, until) + 3000, "host_work")
        self._export.synchronize(begin, self.now, self._correlation, pid=PID)

    def range(self, start: int, name: str) -> None:
        """A range of tracekit's domain from ``start`` to now."""
        self.now += 300
        self._export.range(start, self.now, name, pid=PID, domain="tracekit")
        self.now += 200

    def noisy(self, ns: float) -> int:
        """A time of the host or a pause of the GPU, with its noise."""
        return round(ns * self._noise.factor(self._spread))

    def did(self, since: int, until: int) -> dict[str, float]:
        """Time by HOST_CAUSES between two moments; what is in no call is the program's own work."""
        spent = dict.fromkeys(HOST_CAUSES, 0.0)
        if until <= since:
            return spent
        spent["host_work"] = until - since
        number = max(0, bisect_right(self._calls, since, key=lambda call: call[0]) - 1)
        for begin, returned, doing in self._calls[number:]:
            if begin >= until:
                break
            inside = max(0, min(until, returned) - max(since, begin))
            spent["host_work"] -= inside
            spent[doing] += inside
        return spent

    def _returned(self, name: str, begin: int, end: int, doing: Doing) -> Call:
        self._correlation += 1
        self._export.api(begin, end, name, self._correlation, pid=PID)
        self._calls.append((begin, end, doing))
        self.now = end + _BETWEEN_CALLS_NS
        return Call(begin, end, self._correlation)
