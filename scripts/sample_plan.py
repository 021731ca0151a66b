"""What a sample trace plants: kernels with a solo duration, and groups that run alone or at once.

A group knows where its kernels lie once it has a start, and what running them at once gained: both follow
from the plan, so the truth beside the traces owes nothing to a sweep over their rows.
"""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from nsys_export import base_name

_STAGGER_NS = 1500
_COPY_LEAD_NS = 20_000
_COPY_GAP_NS = 30_000


class Noise:
    """Multiplicative noise of plain arithmetic, so that every machine draws the same bytes."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def __call__(self, nanoseconds: float, sigma: float = 0.006) -> int:
        """``nanoseconds`` times about a normal draw of mean 1 and deviation ``sigma``."""
        normal = sum(self._random.random() for _ in range(12)) - 6
        return round(nanoseconds * (1 + sigma * normal))


@dataclass(frozen=True)
class Kernel:
    """A kernel, the operator that launches it and how long it takes with the GPU to itself."""

    name: str
    operator: str
    solo_ns: int
    grid: int = 1
    threads: int = 256
    smem: int = 0
    captured: bool = False

    @property
    def short(self) -> str:
        """Base name."""
        return base_name(self.name)

    @property
    def mangled(self) -> str:
        """A name in the mangled form, distinct for distinct demangled names."""
        return f"_ZN3mlx4core2cu{len(self.short)}{self.short}ILj{zlib.crc32(self.name.encode())}EEEvv"


@dataclass(frozen=True)
class Placed:
    """A kernel with its times on the GPU; lane 0 is the main stream, others are branches."""

    kernel: Kernel
    start: int
    end: int
    lane: int = 0

    @property
    def duration(self) -> int:
        """Length in ns."""
        return self.end - self.start


@dataclass(frozen=True)
class Overlap:
    """What a group's kernels did side by side: episodes, their wall W, and S, the solo work in them.

    ``deepest_ns`` of the wall ran at depth ``members``, the rest at depth 2.
    """

    episodes: int
    wall_ns: int
    solo_ns: int
    members: int
    deepest_ns: int


@dataclass(frozen=True)
class Alone:
    """One kernel with the GPU to itself."""

    kernel: Kernel

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel."""
        return (self.kernel,)

    def place(self, start: int, noise: Noise) -> list[Placed]:
        """The kernel from ``start``."""
        return [Placed(self.kernel, start, start + noise(self.kernel.solo_ns))]

    def overlap(self, placed: list[Placed]) -> Overlap | None:
        """None: nothing runs beside it."""
        return None

    def beside(self) -> Iterator[tuple[Kernel, Kernel, int]]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class Together:
    """Kernels that start and end nearly together, each taking ``wall_ns`` however long it takes alone."""

    kernels: tuple[Kernel, ...]
    wall_ns: int

    def place(self, start: int, noise: Noise) -> list[Placed]:
        """The kernels from ``start``, one a lane, staggered by about a microsecond and a half."""
        wall = noise(self.wall_ns)
        begins = [start + lane * _STAGGER_NS for lane in range(len(self.kernels))]
        return [
            Placed(kernel, begin, begin + noise(wall, 0.0005), lane)
            for lane, (kernel, begin) in enumerate(zip(self.kernels, begins, strict=True))
        ]

    def overlap(self, placed: list[Placed]) -> Overlap:
        """One episode, from the second start to the last end but one."""
        starts = sorted(kernel.start for kernel in placed)
        ends = sorted(kernel.end for kernel in placed)
        alone = (starts[1] - starts[0]) + (ends[-1] - ends[-2])
        solo = sum(kernel.kernel.solo_ns for kernel in placed) - alone
        return Overlap(1, ends[-2] - starts[1], solo, len(placed), ends[0] - starts[-1])

    def beside(self) -> Iterator[tuple[Kernel, Kernel, int]]:
        """(kernel, one beside it, planted duration)."""
        for index, kernel in enumerate(self.kernels):
            for other in self.kernels[:index] + self.kernels[index + 1 :]:
                yield kernel, other, self.wall_ns


@dataclass(frozen=True)
class Train:
    """Short kernels, one after the other, all beside one long kernel that stands still while they run."""

    long: Kernel
    short: Kernel
    count: int
    short_ns: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The long kernel, then the short ones."""
        return (self.long, *(self.short,) * self.count)

    def place(self, start: int, noise: Noise) -> list[Placed]:
        """The long kernel from ``start`` on the main stream, the short ones inside it on lane 2."""
        shorts: list[Placed] = []
        begin = start + _COPY_LEAD_NS
        for _ in range(self.count):
            shorts.append(Placed(self.short, begin, begin + noise(self.short_ns, 0.05), 2))
            begin = shorts[-1].end + _COPY_GAP_NS
        slowed = noise(self.long.solo_ns) + sum(short.duration for short in shorts)
        return [Placed(self.long, start, start + slowed), *shorts]

    def overlap(self, placed: list[Placed]) -> Overlap:
        """An episode for each short kernel."""
        long, *shorts = placed
        wall = sum(short.duration for short in shorts)
        solo = self.count * self.short.solo_ns + self.long.solo_ns - (long.duration - wall)
        return Overlap(self.count, wall, solo, 2, wall)

    def beside(self) -> Iterator[tuple[Kernel, Kernel, int]]:
        """(kernel, one beside it, planted duration)."""
        yield self.long, self.short, self.long.solo_ns + self.count * self.short_ns
        for _ in range(self.count):
            yield self.short, self.long, self.short_ns


Group = Alone | Together | Train
Graph = list[Group]
"""The groups of one commit, in order: one CUDA graph when graphs are on."""


def kernels_of(graph: Graph) -> list[Kernel]:
    """Its kernels in launch order."""
    return [kernel for group in graph for kernel in group.kernels]


def in_a_row(graph: Graph) -> Graph:
    """The same kernels one after the other."""
    return [Alone(kernel) for kernel in kernels_of(graph)]
