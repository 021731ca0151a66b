"""Random matrices that keep the values of a chain bounded, however long it is."""

import math
import time
from collections.abc import Callable, Sequence

import mlx.core as mx
from mlx.utils import tree_map

from tracekit.bench.matrices import Pack, Shape
from tracekit.bench.protocol import Array, Weights

Multiply = Callable[[Array, Weights], Array]

STRETCH, STRETCHES = 16, 64
"""Applications between two looks at the norm, and such stretches: together half of the longest chain."""

PATIENCE_S = 0.5
"""Growth is measured for so long at most: what is slower has a shorter chain too."""

BEARABLE = 2.0
"""Growth over the longest chain, as a logarithm."""

SETTLED = 4
"""Stretches at least."""

VANISHED = 1e-30
"""A norm that is taken for one that has gone."""

TRIES = 48
"""Matrices drawn at most. Formats whose scales are powers of two answer to a scale in leaps: the best one is kept."""


def normalised(shapes: Sequence[Shape], pack: Pack, multiply: Multiply, first: Array, seed: int) -> list[Weights]:
    """Random matrices that, applied in turn again and again to ``first``, let it neither grow nor vanish.

    A random matrix of variance 1/K keeps the norm on average only; its powers follow its largest eigenvalues. The
    last matrix is therefore scaled by the growth that the product shows. Dimensions before a matrix's own count
    matrices, which ``multiply`` applies each to its own part of ``first``, and which are scaled one by one.
    """
    count = shapes[0][:-2]
    keys = mx.random.split(mx.random.key(seed), len(shapes) - 1 + TRIES)

    def made(shape: Shape, key: Array, scale: Array) -> Weights:
        packed = pack(scale * shape[-1] ** -0.5 * mx.random.normal(shape, key=key))
        mx.eval(packed)
        return packed

    unscaled = mx.ones((*count, 1, 1))
    fixed = [made(shape, key, unscaled) for shape, key in zip(shapes[:-1], keys, strict=False)]
    scale, best, least = unscaled, None, mx.full(unscaled.shape, math.inf)
    for attempt in range(TRIES):
        # Twice each: as it comes, then scaled by what it showed.
        last = made(shapes[-1], keys[len(fixed) + attempt // 2], scale)
        growth, applications = _growth([*fixed, last], multiply, first)
        best = last if best is None else _chosen(mx.abs(growth) < least, last, best)
        least = mx.minimum(least, mx.abs(growth))
        if float(mx.max(least)) * 2 * applications <= BEARABLE:
            break
        scale = scale * mx.exp(-growth) if attempt % 2 == 0 else unscaled
    mx.eval(best)
    return [*fixed, best]


def _growth(matrices: list[Weights], multiply: Multiply, x: Array) -> tuple[Array, int]:
    """Mean logarithm of the factor by which applying all matrices once changes each norm, after a first quarter.

    And how often they were applied.
    """
    begin = time.monotonic()
    logs: list[Array] = []
    while len(logs) < STRETCHES and (len(logs) < SETTLED or time.monotonic() - begin < PATIENCE_S):
        for weights in matrices * STRETCH:
            x = multiply(x, weights)
        norm = mx.sqrt(mx.mean(mx.square(x.astype(mx.float32)), axis=(-2, -1), keepdims=True))
        norm = mx.maximum(norm, VANISHED)
        x = (x / norm).astype(x.dtype)
        logs.append(mx.log(norm))
        mx.eval(x, logs[-1])
    return mx.mean(mx.stack(logs[len(logs) // 4 :]), axis=0) / STRETCH, len(logs) * STRETCH


def _chosen(better: Array, one: Weights, other: Weights) -> Weights:
    return tree_map(lambda new, old: mx.where(better, new, old), one, other)
