"""Every cell of a benchmark made ready to be timed: its loop, its length, and what speaks against it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import mlx.core as mx
import numpy as np

from tracekit.analysis.results.bench import Block, Cell, Mark, Method, Residency
from tracekit.bench.checks import bounded
from tracekit.bench.loops import Graph, batch, block, bytes_of, chain, compiled, in_turn, links, merged
from tracekit.bench.naming import phase_name
from tracekit.bench.protocol import Array, Call, Calls, Case, Operation, Weights, link
from tracekit.bench.rows import Measured
from tracekit.bench.timing import SHORT, Length, Loop, Sample, find_length, per_call_sample, slope_sample

MERGE_TURNS = 3
"""Turns of a graph in which merged calls are looked for."""

Sets = Sequence[Sequence[Weights]]


@dataclass(frozen=True)
class Candidate:
    """An operation that is timed; ``exact`` checks its chain to the bit, where it can be."""

    name: str
    operation: Operation
    exact: Callable[[Case], bool | None] | None = None


@dataclass(frozen=True)
class Plan:
    """What is timed and how. ``chain_length`` and ``batch`` count operations; None finds the chain's length.

    ``cache`` is the last-level cache in bytes.
    """

    candidates: Sequence[Candidate]
    case: Case
    sizes: Sequence[int]
    methods: Sequence[Method]
    weights: Sequence[Residency]
    blocks: Sequence[Block]
    chain_length: int | None
    batch: int
    rounds: int
    compile: bool
    cache: int


@dataclass
class Timed:
    """A cell and its samples. ``take`` takes one; None where ``marks`` say why it cannot be timed."""

    cell: Cell
    take: Callable[[], Sample] | None
    bytes: int
    length: int | None = None
    marks: list[Mark] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def time(self, *, counted: bool) -> None:
        """Take a sample."""
        assert self.take
        sample = self.take()
        if counted:
            self.samples.append(sample)

    def measured(self) -> Measured:
        """The samples as arrays."""
        times, overheads, builds = np.asarray(self.samples, dtype=np.float64).reshape(-1, 3).T
        return Measured(self.cell, times, overheads, builds, self.bytes, self.length, self.marks)


def prepared(plan: Plan, name: str, m: int, calls: Calls, sets: Mapping[Residency, Sets]) -> Iterator[Timed]:
    """All cells of one candidate at one M."""
    for kind in plan.blocks:
        timed = calls if kind == "bare" else (block(calls),)
        for residency, of_calls in sets.items():
            moved = sum(map(_bytes, calls, of_calls[0])) // len(calls)
            of_turns = of_calls if kind == "bare" else [(tuple(weights),) for weights in of_calls]
            for method in plan.methods:
                yield _ready[method](plan, Cell(name, m, kind, residency, method), timed, of_turns, moved)


def _chain(plan: Plan, cell: Cell, calls: Calls, sets: Sets, moved: int) -> Timed:
    inputs = [call.input(index) for index, call in enumerate(calls)]
    loop = _loop(plan, cell, chain(calls), calls, inputs, sets)
    if merged(loop.graph, calls, inputs, in_turn(sets, MERGE_TURNS)):
        return Timed(cell, None, moved, marks=["merged"])
    length = _length(plan, loop)
    marks: list[Mark] = [] if length.settled else ["unsettled"]
    operations = length.turns * loop.operations
    if not _stays_bounded(loop, length.turns):
        return Timed(cell, None, moved, operations, [*marks, "unbounded"])
    take = partial(slope_sample, loop, length.turns)
    if calls[0].feed is link:
        take = partial(_without_links, take, _loop(plan, cell, links, calls, inputs, sets), length.turns)
    return Timed(cell, take, moved, operations, marks)


def _batched(plan: Plan, cell: Cell, calls: Calls, sets: Sets, moved: int) -> Timed:
    turns = max(SHORT, plan.batch // _operations(calls))
    inputs = [call.input(index) for index in range(turns) for call in calls]
    loop = _loop(plan, cell, batch(calls), calls, inputs, sets)
    if merged(loop.graph, calls, inputs, in_turn(sets, MERGE_TURNS)):
        return Timed(cell, None, moved, marks=["merged"])
    return Timed(cell, partial(slope_sample, loop, turns), moved, turns * loop.operations)


def _per_call(plan: Plan, cell: Cell, calls: Calls, sets: Sets, moved: int) -> Timed:
    loops = [
        _loop(plan, cell, batch((call,)), (call,), [call.input(0)], [[weights[index]] for weights in sets])
        for index, call in enumerate(calls)
    ]
    return Timed(cell, partial(per_call_sample, loops), moved)


_ready: dict[Method, Callable[[Plan, Cell, Calls, Sets, int], Timed]] = {
    "chain": _chain,
    "batched": _batched,
    "per-call": _per_call,
}
METHODS = tuple(_ready)
RESIDENCIES: tuple[Residency, ...] = ("hot", "cold")
BLOCKS: tuple[Block, ...] = ("bare", "norm-residual")


def _loop(plan: Plan, cell: Cell, graph: Graph, calls: Calls, inputs: Sequence[Array], sets: Sets) -> Loop:
    mx.eval(inputs)
    return Loop(compiled(graph) if plan.compile else graph, inputs, sets, _operations(calls), phase_name(cell))


def _operations(calls: Calls) -> int:
    return sum(call.operations for call in calls)


def _length(plan: Plan, loop: Loop) -> Length:
    if plan.chain_length is None:
        return find_length(lambda turns: loop.run(turns)[1])
    return Length(max(SHORT, plan.chain_length // loop.operations), True)


def _stays_bounded(loop: Loop, turns: int) -> bool:
    (last,) = loop.graph(loop.inputs, in_turn(loop.sets, turns))
    return bounded(_size(loop.inputs[0]), _size(last))


def _size(array: Array) -> float:
    return float(mx.sqrt(mx.mean(mx.square(array.astype(mx.float32)))))


def _without_links(take: Callable[[], Sample], only_links: Loop, turns: int) -> Sample:
    """A sample less what the links took in the same round: their scatter becomes part of the sample's."""
    sample, linked = take(), slope_sample(only_links, turns)
    return Sample(sample.time_ns - linked.time_ns, sample.overhead_ns, sample.build_ns - linked.build_ns)


def _bytes(call: Call, weights: Weights) -> int:
    """What one call has to read and write."""
    x = call.input(0)
    y = call.apply(x, weights)
    read = call.weight_bytes(weights) if call.weight_bytes else bytes_of(weights)
    return (read + int(x.nbytes) + int(y.nbytes)) // call.operations
