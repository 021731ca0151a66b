"""Two laws, unlike each other, of what kernels do to each other when they run at once.

Under both a kernel alone runs at rate 1, and what kernels get together never exceeds what the device has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proving.gpu_model import Task

MEMORY_BOUND = 0.35
"""Share of the device's bandwidth from which a kernel waits for memory rather than for arithmetic."""


@dataclass(frozen=True)
class Bandwidth:
    """Shared memory bandwidth.

    Kernels that are not memory-bound get the bandwidth they ask for while more than their part is left; the
    memory-bound ones share the rest in proportion to what they ask for. Each memory-bound kernel beyond the first
    costs ``interference`` of the bandwidth, since their accesses break up each other's open pages. Arithmetic is
    shared in proportion too.
    """

    interference: float = 0.0

    def rates(self, running: Sequence[Task]) -> list[float]:
        """Rates from what is asked for of either resource."""
        if not running:
            return []
        kernels = [task.kernel for task in running]
        bound = [kernel.bandwidth >= MEMORY_BOUND for kernel in kernels]
        asked = sum(kernel.bandwidth for kernel, waits in zip(kernels, bound, strict=True) if waits)
        beside = sum(kernel.bandwidth for kernel, waits in zip(kernels, bound, strict=True) if not waits)
        whole = self.available(sum(bound))
        shared = min(asked, max(whole - beside, whole * asked / (asked + beside)))
        waiting, others = (
            min(1.0, part / of) if of else 1.0 for part, of in ((shared, asked), (whole - shared, beside))
        )
        arithmetic = min(1.0, 1 / sum(kernel.compute for kernel in kernels))
        return [min(waiting if waits else others, arithmetic) for waits in bound]

    def available(self, memory_bound: int) -> float:
        """Share of the bandwidth that so many memory-bound kernels get out of the device."""
        return 1 / (1 + self.interference * max(0, memory_bound - 1))

    def varied(self, factor: float) -> "Bandwidth":
        """The law on another day."""
        return replace(self, interference=self.interference * factor)


@dataclass(frozen=True)
class Waves:
    """Blocks in waves over the multiprocessors, with a last-level cache.

    Multiprocessors are dealt out evenly whenever a kernel begins or ends, none getting more than its blocks can
    fill; a kernel's rate is the waves its remaining blocks need with all it can fill, over those they need now.
    While the working sets together exceed the ``cache`` (MiB), each kernel takes ``thrash`` times as long. What was
    thrown out has to be fetched again: such a kernel stays slower by ``refill`` to its end, alone or not.
    """

    sms: int = 48
    cache: float = 24.0
    thrash: float = 1.0
    refill: float = 0.0

    def rates(self, running: Sequence[Task]) -> list[float]:
        """Rates from waves and cache; marks as evicted what the cache does not hold."""
        if sum(task.kernel.working_set for task in running) > self.cache and len(running) > 1:
            slower = self.thrash
            for task in running:
                task.evicted = True
        else:
            slower = 1.0
        shares = self.dealt(running)
        return [
            self._in_waves(task, share) / (slower * (1 + self.refill * task.evicted))
            for task, share in zip(running, shares, strict=True)
        ]

    def dealt(self, running: Sequence[Task]) -> list[int]:
        """Multiprocessors for each task: even shares, what one cannot fill going to the others."""
        wanted = [self._fills(task, self._remaining(task)) for task in running]
        shares = [0] * len(wanted)
        left = self.sms
        order = sorted(range(len(wanted)), key=lambda number: (wanted[number], running[number].kernel.name))
        for place, number in enumerate(order):
            shares[number] = max(1, min(wanted[number], left // (len(wanted) - place)))
            left -= shares[number]
        return shares

    def varied(self, factor: float) -> "Waves":
        """The law on another day."""
        return replace(self, thrash=1 + (self.thrash - 1) * factor)

    def _remaining(self, task: Task) -> int:
        return max(1, math.ceil(task.kernel.blocks * task.left / task.work))

    def _fills(self, task: Task, blocks: int) -> int:
        return min(self.sms, math.ceil(blocks / task.kernel.per_sm))

    def _in_waves(self, task: Task, share: int) -> float:
        blocks = self._remaining(task)
        alone = math.ceil(blocks / (self._fills(task, blocks) * task.kernel.per_sm))
        return alone / math.ceil(blocks / (share * task.kernel.per_sm))
