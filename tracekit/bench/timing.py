"""The clock: how long a loop takes, its graph built beforehand and apart from it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mlx.core as mx

from tracekit.bench.fit import Line, fit_line, settled
from tracekit.bench.loops import Graph, in_turn
from tracekit.bench.protocol import Array, Weights
from tracekit.capture.phase import phase

SHORT = 4
"""The short loop is this many times shorter than the long one: their difference is free of overhead."""

PER_CALL = 8
"""Turns of calls, each evaluated by itself, that make one sample."""

FIRST_LENGTH, LONGEST = 8, 2048
"""Turns between which a chain is sought that is long enough; each length is twice the one before it."""

LONG_ENOUGH_NS = 400_000_000
"""A chain of this duration is not made longer: starting and waiting are thousands of times shorter."""

REPEATS = 5
"""Times that each length is tried."""

FITTED = 4
"""Lengths, the longest ones, that the line is fitted to: command buffers fill up in steps at the shortest."""


class Sample(NamedTuple):
    """Time of one operation (ns) in one round, what starting and waiting took beside it, and what building took."""

    time_ns: float
    overhead_ns: float
    build_ns: float


@dataclass
class Loop:
    """A graph with its inputs and its sets of weights, which it goes through from round to round.

    A turn is one call for each weight of a set; ``operations`` is how many operations that is.
    """

    graph: Graph
    inputs: Sequence[Array]
    sets: Sequence[Sequence[Weights]]
    operations: int
    label: str
    begin: int = 0

    def run(self, turns: int) -> tuple[int, int]:
        """Build and evaluate so many turns; the time (ns) of each."""
        weights = in_turn(self.sets, turns, self.begin)
        self.begin = (self.begin + turns) % len(self.sets)
        mx.synchronize()
        begin = time.perf_counter_ns()
        outputs = self.graph(self.inputs, weights)
        built = time.perf_counter_ns()
        with phase(self.label):
            start = time.perf_counter_ns()
            mx.eval(outputs)
            mx.synchronize()
            end = time.perf_counter_ns()
        return built - begin, end - start


def slope_sample(loop: Loop, turns: int) -> Sample:
    """Time of one operation from a long and a short loop: what they have in common is overhead."""
    short = turns // SHORT
    _, first = loop.run(short)
    built, second = loop.run(turns)
    each = (second - first) / (turns - short)
    return Sample(each / loop.operations, second - each * turns, built / (turns * loop.operations))


def per_call_sample(loops: Sequence[Loop]) -> Sample:
    """Mean time of calls that are waited for one by one: the synchronisation is in it."""
    times = [loop.run(1) for _ in range(PER_CALL) for loop in loops]
    operations = PER_CALL * sum(loop.operations for loop in loops)
    built, evaluated = (sum(each) / operations for each in zip(*times, strict=True))
    return Sample(evaluated, 0.0, built)


class Length(NamedTuple):
    """Turns that make a chain that is long enough, and whether its time had settled there."""

    turns: int
    settled: bool


def find_length(run: Callable[[int], int]) -> Length:
    """Make the chain longer until its time per turn and that time's interval settle.

    ``run`` times a chain of so many turns (ns).
    """
    lengths: list[int] = []
    times: list[int] = []
    before: Line | None = None
    turns = FIRST_LENGTH
    while True:
        run(turns)
        for _ in range(REPEATS):
            lengths.append(turns)
            times.append(run(turns))
        if turns > FIRST_LENGTH:
            line = fit_line(lengths[-FITTED * REPEATS :], times[-FITTED * REPEATS :])
            if settled(line, before):
                return Length(turns, True)
            before = line
        if times[-1] >= LONG_ENOUGH_NS:
            return Length(turns, True)
        if turns >= LONGEST:
            return Length(turns, False)
        turns *= 2
