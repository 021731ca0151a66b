"""Whether what is timed computes what it should: against a float32 reference, and a chain that must be exact."""

import math
from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from tracekit.analysis.results.bench import OutputCheck
from tracekit.bench.linear import Linear
from tracekit.bench.loops import chain
from tracekit.bench.matrices import DTYPES, Floats, as_float, one_hot, partial_permutation
from tracekit.bench.protocol import Call, Calls, Case, Weights

ROUNDING = {"f32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Unit roundoff of each type; that of f32 is TF32's, in which GPUs may multiply."""

ROUNDED = 4
"""Roundings of inputs, weights, intermediates and outputs that an error may come from."""

EXACT_TURNS = 3
"""Turns of the chain of permutations."""

BOUND = 1e4
"""A chain's values stay within this factor of its first input's, both ways."""


def check(candidate: str, case: Case, calls: Calls, weights: Sequence[Weights], exact: bool | None) -> OutputCheck:
    """Root mean square of the error over that of the reference, of the worst call that has one."""
    errors = [_error(call, each) for call, each in zip(calls, weights, strict=True) if call.reference]
    return OutputCheck(candidate, case.m, max(errors, default=None), allowed(case) if errors else None, exact)


def allowed(case: Case) -> float:
    """Error that rounding explains. MLX's CPU backend sums quantised products in the type itself, GPUs in f32."""
    summed = math.sqrt(case.k) / 2 if mx.default_device() == mx.cpu else 0
    return ROUNDING[case.dtype] * max(ROUNDED, summed)


def _error(call: Call, weights: Weights) -> float:
    assert call.reference
    x = call.input(0)
    expected = call.reference(weights, x)
    found = as_float(call.apply(x, weights))
    return _size(found - expected) / (_size(expected) or 1.0)


def _size(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def bounded(first: float, last: float) -> bool:
    """Whether root mean squares at both ends of a chain are alike, and numbers."""
    return first > 0 and first / BOUND <= last <= first * BOUND


def exact_chain(kind: Callable[[Case], Linear], case: Case) -> bool | None:
    """A chain whose matrices are permutations gives every value back to the bit; None where the format has none.

    Such matrices are nearly all zeros, so they are never timed: they draw less power and clock higher.
    """
    linear = kind(case)
    sizes = [(case.k, case.n), (case.n, case.k)] if case.k != case.n else [(case.k, case.k)]
    sources = [partial_permutation(outputs, inputs, case.seed + i) for i, (inputs, outputs) in enumerate(sizes)]
    weights = []
    for (inputs, outputs), source in zip(sizes, sources, strict=True):
        matrix = mx.broadcast_to(one_hot(source, inputs), (*linear.leading, outputs, inputs))
        packed = linear.pack_exactly(matrix)
        if not bool(mx.all(linear.unpack(packed).astype(mx.float32) == matrix)):
            return None
        weights.append(packed)
    x = mx.random.normal((*linear.rows, case.k), key=mx.random.key(case.seed)).astype(DTYPES[case.dtype])
    calls = tuple(Call(tuple, lambda _: x, linear.multiply) for _ in sizes)
    (found,) = chain(calls)([x], weights * EXACT_TURNS)
    expected = as_float(x)
    for source in sources * EXACT_TURNS:
        padded = np.concatenate([expected, np.zeros((*expected.shape[:-1], 1), np.float32)], axis=-1)
        expected = padded[..., source]
    return bool(np.array_equal(as_float(found), expected))
