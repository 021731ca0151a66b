"""Matrix products: dense, quantised, and quantised with experts."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np

from tracekit.bench.bounded import Multiply, normalised
from tracekit.bench.matrices import (
    Floats,
    Pack,
    Shape,
    as_float,
    dense,
    normal,
    quantisation,
    quantised,
    quantised_exactly,
)
from tracekit.bench.protocol import Array, Call, Calls, Case, Weights, link


class Linear(NamedTuple):
    """A matrix product: how a dense matrix becomes weights and back, and how they are applied.

    ``pack_exactly`` loses nothing of a matrix of zeros and ones, where the format has these. ``multiply_each`` applies
    each of several matrices to its own input.
    ``leading`` are the dimensions before the matrix's own, ``rows`` those before the columns of an input;
    ``weight_bytes`` as in Call.
    """

    pack: Pack
    pack_exactly: Pack
    unpack: Callable[[Weights], Array]
    multiply: Multiply
    multiply_each: Multiply
    reference: Callable[[Floats, Floats], Floats]
    leading: Shape
    rows: Shape
    weight_bytes: Callable[[Weights], int] | None = None


def matmul(case: Case) -> Linear:
    """Dense weights."""
    return Linear(
        pack=dense(case),
        pack_exactly=dense(case),
        unpack=lambda weights: weights,
        multiply=_by_dense,
        multiply_each=_by_dense,
        reference=lambda matrix, x: x @ matrix.T,
        leading=(),
        rows=(case.m,),
    )


def qmm(case: Case) -> Linear:
    """Quantised weights."""
    multiply = partial(_by_quantised, mx.quantized_matmul, {"transpose": True, **quantisation(case)})
    return Linear(
        pack=quantised(case),
        pack_exactly=quantised_exactly(case),
        unpack=partial(_dequantised, case),
        multiply=multiply,
        multiply_each=multiply,
        reference=lambda matrix, x: x @ matrix.T,
        leading=(),
        rows=(case.m,),
    )


def gather_qmm(case: Case) -> Linear:
    """Quantised weights of the experts that each row was given to."""
    random = np.random.default_rng(case.seed)
    chosen = np.stack([random.choice(case.experts, case.top_k, replace=False) for _ in range(case.m)])
    share = np.unique(chosen).size / case.experts

    def multiply(indices: Array) -> Multiply:
        options = {"rhs_indices": indices, "transpose": True, **quantisation(case)}
        return partial(_by_quantised, mx.gather_qmm, options)

    return Linear(
        pack=quantised(case),
        pack_exactly=quantised_exactly(case),
        unpack=partial(_dequantised, case),
        multiply=multiply(mx.array(chosen.astype(np.uint32))),
        multiply_each=multiply(mx.arange(case.experts)),
        reference=lambda matrix, x: np.einsum("mtin,mton->mtio", x, matrix[chosen]),
        leading=(case.experts,),
        rows=(case.m, case.top_k, 1),
        weight_bytes=lambda weights: round(share * sum(part.nbytes for part in weights)),
    )


def _by_dense(x: Array, weights: Weights) -> Array:
    return x @ weights.T


def _by_quantised(function: Callable[..., Array], options: dict[str, Any], x: Array, weights: Weights) -> Array:
    return function(x, *weights, **options)


def _dequantised(case: Case, weights: Weights) -> Array:
    """In float32: a reference has no rounding of its own."""
    exact = [part if part.dtype in (mx.uint8, mx.uint32) else part.astype(mx.float32) for part in weights]
    options = {**quantisation(case), "dtype": mx.float32}
    return mx.dequantize(*exact, **options)


LINEAR: dict[str, Callable[[Case], Linear]] = {"matmul": matmul, "qmm": qmm, "gather_qmm": gather_qmm}


def chained_linear(kind: Callable[[Case], Linear], pair: bool, case: Case) -> Calls:
    """K to N and N to K in turn; without ``pair`` only K to N, whose output reaches the next input through a link."""
    linear = kind(case)
    sizes = [(case.k, case.n), (case.n, case.k)] if pair and case.k != case.n else [(case.k, case.n)]
    square = len(sizes) == 2 or case.k == case.n

    @cache
    def matrices() -> list[Weights]:
        shapes = [(*linear.leading, outputs, inputs) for inputs, outputs in sizes]
        if square:
            first = normal((*linear.leading, 1), case.k, case, 0)
            return normalised(shapes, linear.pack, linear.multiply_each, first, case.seed)
        return [linear.pack(shapes[0][-1] ** -0.5 * mx.random.normal(shapes[0], key=mx.random.key(case.seed)))]

    def call(index: int) -> Call:
        return Call(
            weights=lambda: matrices()[index],
            input=partial(normal, linear.rows, sizes[index][0], case),
            apply=linear.multiply,
            feed=None if square else link,
            reference=lambda weights, x: linear.reference(as_float(linear.unpack(weights)), as_float(x)),
            weight_bytes=linear.weight_bytes,
        )

    return tuple(call(index) for index in range(len(sizes)))
