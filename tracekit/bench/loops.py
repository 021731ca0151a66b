"""The graphs that are timed: calls that depend on one another, calls that do not, and the block round them."""

import io
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from tracekit.bench.protocol import Array, Call, Calls, Weights, link
from tracekit.errors import UnusableInput

EPSILON = 1e-5
"""Of the block's RMS norm."""

Graph = Callable[[Sequence[Array], Sequence[Weights]], list[Array]]
"""Makes outputs, not yet evaluated, of so many calls as there are weights."""


def chain(calls: Calls) -> Graph:
    """Each call takes what the one before it gave, as in decoding. Inputs: one for each of the calls."""

    def build(inputs: Sequence[Array], weights: Sequence[Weights]) -> list[Array]:
        x = inputs[0]
        for index, each in enumerate(weights):
            call = calls[index % len(calls)]
            y = call.apply(x, each)
            x = y if call.feed is None else call.feed(inputs[(index + 1) % len(calls)], y)
        return [x]

    return build


def batch(calls: Calls) -> Graph:
    """Calls that know nothing of one another, each with an input of its own, as a loop before one eval makes them."""

    def build(inputs: Sequence[Array], weights: Sequence[Weights]) -> list[Array]:
        return [call.apply(x, each) for call, x, each in zip(cycle(calls), inputs, weights, strict=False)]

    return build


def links(inputs: Sequence[Array], weights: Sequence[Weights]) -> list[Array]:
    """A chain of nothing but links, to know what they cost in a chain of calls."""
    x = inputs[0]
    for _ in weights:
        x = link(inputs[0], x)
    return [x]


def compiled(graph: Graph) -> Graph:
    """The whole loop as one function of MLX's compiler, its inputs and weights as arguments: none is a constant."""
    function = mx.compile(lambda inputs, weights: graph(inputs, weights))
    return lambda inputs, weights: list(function(list(inputs), list(weights)))


def block(calls: Calls) -> Call:
    """The calls one after another with an RMS norm before and a residual after them, as a layer has it.

    Raises UnusableInput where the output has not the input's shape.
    """
    if any(call.feed for call in calls):
        raise UnusableInput(
            "the block with norm and residual needs an output of the input's shape: chain through a pair"
        )

    def apply(x: Array, weights: Weights) -> Array:
        y = mx.fast.rms_norm(x, None, EPSILON)
        for call, each in zip(calls, weights, strict=True):
            y = call.apply(y, each)
        return x + y

    return Call(
        weights=lambda: tuple(call.weights() for call in calls),
        input=calls[0].input,
        apply=apply,
        operations=sum(call.operations for call in calls),
    )


def in_turn(sets: Sequence[Sequence[Weights]], turns: int, begin: int = 0) -> list[Weights]:
    """The weights of so many turns of the calls, a set for each turn, from set ``begin`` on."""
    chosen = islice(cycle(sets), begin, begin + turns)
    return [each for weights in chosen for each in weights]


def merged(graph: Graph, calls: Calls, inputs: Sequence[Array], weights: Sequence[Weights]) -> bool:
    """Whether the graph of several turns of the calls holds fewer primitives than that many turns one by one."""
    turns = len(weights) // len(calls)
    one = _primitives(graph(inputs, weights[: len(calls)]))
    return _primitives(graph(inputs, weights[: turns * len(calls)])) < turns * one


def _primitives(outputs: Sequence[Array]) -> int:
    text = io.StringIO()
    mx.export_to_dot(text, *outputs)
    return text.getvalue().count("[label =")


def bytes_of(weights: Weights) -> int:
    """Of all arrays in a tree."""
    arrays: Any = tree_flatten(weights)
    return sum(int(array.nbytes) for _, array in arrays)
