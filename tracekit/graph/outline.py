"""A long sequence in few lines: stretches that repeat are told once."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

LONGEST_PERIOD = 100
"""Items of the longest stretch whose repetition is looked for."""


class Run(NamedTuple):
    """``length`` items from ``first``, which stand there ``times`` times in a row."""

    first: int
    length: int
    times: int


def outline(items: Sequence[Hashable]) -> list[Run]:
    """Cover the sequence from its beginning, each time by the repetition that covers most; of those the shortest."""
    runs: list[Run] = []
    at = 0
    while at < len(items):
        best = Run(at, 1, 1)
        for length in range(1, min(LONGEST_PERIOD, (len(items) - at) // 2) + 1):
            times = _times(items, at, length)
            if times > 1 and length * times > best.length * best.times:
                best = Run(at, length, times)
        runs.append(best)
        at += best.length * best.times
    return runs


def _times(items: Sequence[Hashable], at: int, length: int) -> int:
    end = at + length
    while end < len(items) and items[end] == items[end - length]:
        end += 1
    return (end - at) // length
