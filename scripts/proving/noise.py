"""Noise of plain arithmetic, so that every machine draws the same bytes."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LATE_SHARE, LATE_MOST = 0.01, 0.2
"""Share of kernel instances that something holds up, and by how much of their length at most."""


class Noise:
    """Draws that depend on the seed and on nothing else."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed)))

    def factor(self, sigma: float) -> float:
        """About a normal draw of mean 1 and deviation ``sigma``, never below a tenth."""
        normal = sum(self._random.random() for _ in range(12)) - 6
        return max(0.1, 1 + sigma * normal)

    def held_up(self, sigma: float) -> float:
        """The same, and now and then longer by up to LATE_MOST: mean and median of durations differ."""
        late = sigma > 0 and self._random.random() < LATE_SHARE
        return self.factor(sigma) * (1 + late * LATE_MOST * self._random.random())

    def between(self, low: float, high: float) -> float:
        """A uniform draw."""
        return low + (high - low) * self._random.random()

    def count(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def one_of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self.count(0, len(choices) - 1)]
