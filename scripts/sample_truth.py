"""Keeps what the simulator plants, as it plants it: the answers that belong to a sample trace."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sample_plan import Group, Kernel, Placed, Train

Key = tuple[str, int]
"""Short name and grid: enough to tell the planted kernels apart."""


def key(kernel: Kernel) -> Key:
    """Key of ``kernel``."""
    return kernel.short, kernel.grid


def members(group: Group) -> tuple[Key, ...]:
    """Keys of the kernels that run at once: a train's short kernel counts as one, a pair of equals as two."""
    at_once = (group.long, group.short) if isinstance(group, Train) else group.kernels
    return tuple(sorted(key(kernel) for kernel in at_once))


@dataclass
class _Sums:
    """Times of the groups of one phase, or of a whole trace, in ns."""

    kernels: int = 0
    summed: int = 0
    busy: int = 0
    depth: Counter[int] = field(default_factory=Counter)
    episodes: int = 0
    wall: int = 0
    solo: int = 0

    def add(self, group: Group, placed: list[Placed]) -> None:
        span = max(kernel.end for kernel in placed) - min(kernel.start for kernel in placed)
        self.kernels += len(placed)
        self.summed += sum(kernel.duration for kernel in placed)
        self.busy += span
        overlap = group.overlap(placed)
        if overlap is None:
            self.depth[1] += span
            return
        self.depth[1] += span - overlap.wall_ns
        self.depth[2] += overlap.wall_ns - overlap.deepest_ns
        self.depth[overlap.members] += overlap.deepest_ns
        self.episodes += overlap.episodes
        self.wall += overlap.wall_ns
        self.solo += overlap.solo_ns

    def report(self) -> dict[str, Any]:
        return {
            "kernel_rows": self.kernels,
            "summed_ns": self.summed,
            "busy_ns": self.busy,
            "overlapped_ns": self.wall,
            "depth_ns": {str(depth): time for depth, time in sorted(self.depth.items()) if time},
            "episodes": self.gain(),
        }

    def gain(self) -> dict[str, int]:
        return {
            "count": self.episodes,
            "wall_ns": self.wall,
            "solo_ns": self.solo,
            "gain_ns": self.solo - self.wall,
        }


class Truth:
    """Planted answers of one trace."""

    def __init__(self) -> None:
        self._trace = _Sums()
        self._phases: dict[str, _Sums] = defaultdict(_Sums)
        self._sets: dict[tuple[Key, ...], _Sums] = defaultdict(_Sums)
        self._instances: dict[str, list[dict[str, int | None]]] = defaultdict(list)
        self._calls: dict[str, Counter[str]] = defaultdict(Counter)
        self._kernels: dict[Key, list[Placed]] = defaultdict(list)
        self._beside: Counter[tuple[Key, Key, int]] = Counter()

    def group(self, phase: str, group: Group, placed: list[Placed]) -> None:
        """A group as it was placed on the GPU, for the phase that launched it."""
        for sums in (self._trace, self._phases[phase]):
            sums.add(group, placed)
        if group.overlap(placed):
            self._sets[members(group)].add(group, placed)
        for kernel in placed:
            self._kernels[key(kernel.kernel)].append(kernel)
        for owner, other, planted in group.beside():
            self._beside[key(owner), key(other), planted] += 1

    def call(self, phase: str, name: str) -> None:
        """A CUDA API call of ``phase``."""
        self._calls[phase][name] += 1

    def instance(self, phase: str, start: int, end: int, last_end: int, time: int | None) -> None:
        """One instance: its range, the last GPU completion of its work, and its phase time if it has one."""
        self._instances[phase].append(
            {"range_start_ns": start, "range_end_ns": end, "last_end_ns": last_end, "time_ns": time}
        )

    def report(self, warm_up: dict[str, int]) -> dict[str, Any]:
        """The answers; ``warm_up`` says how many instances of a phase do not count."""
        return {
            **self._trace.report(),
            "phases": {name: self._phase(name, warm_up.get(name, 0)) for name in self._instances},
            "sets": [{"members": keys, "episodes": sums.gain()} for keys, sums in sorted(self._sets.items())],
            "kernels": [self._kernel(this, placed) for this, placed in sorted(self._kernels.items())],
        }

    def _phase(self, name: str, warm_up: int) -> dict[str, Any]:
        instances = self._instances[name]
        times = [time for instance in instances[warm_up:] if (time := instance["time_ns"]) is not None]
        return {
            **self._phases[name].report(),
            "warm_up": warm_up,
            "counted": len(times),
            "median_ns": median(times),
            "calls": dict(sorted(self._calls[name].items())),
            "instances": instances,
        }

    def _kernel(self, this: Key, placed: list[Placed]) -> dict[str, Any]:
        kernel = placed[0].kernel
        return {
            "short_name": this[0],
            "grid": this[1],
            "name": kernel.name,
            "operators": dict(sorted(Counter(row.kernel.operator for row in placed).items())),
            "count": len(placed),
            "total_ns": sum(row.duration for row in placed),
            "solo_ns": kernel.solo_ns,
            "beside": [
                {
                    "short_name": other[0],
                    "grid": other[1],
                    "instances": instances,
                    "planted_ns": planted,
                    "stretch": round(planted / kernel.solo_ns, 4),
                }
                for (owner, other, planted), instances in sorted(self._beside.items())
                if owner == this
            ],
        }
