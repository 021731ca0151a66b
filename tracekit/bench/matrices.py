"""Values and matrices in the types and formats of MLX: random ones to time with, permutations to check with."""

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from tracekit.bench.protocol import Array, Case, Weights

DTYPES = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}

Shape = tuple[int, ...]
Pack = Callable[[Array], Weights]
Floats = npt.NDArray[np.float32]

WORD = 32
"""Bits that codes are packed into."""


def dense(case: Case) -> Pack:
    """Keep a matrix as it is, in the case's type."""
    return lambda matrix: matrix.astype(DTYPES[case.dtype])


def quantised(case: Case) -> Pack:
    """Quantise a matrix of the case's type."""

    def pack(matrix: Array) -> Weights:
        return mx.quantize(matrix.astype(DTYPES[case.dtype]), **quantisation(case))

    return pack


def quantised_exactly(case: Case) -> Pack:
    """Quantise a matrix of zeros and ones: codes 0 and 1 with a scale of one, where codes fill their words."""
    if case.mode != "affine" or WORD % case.bits:
        return quantised(case)
    each = WORD // case.bits
    places = mx.arange(each, dtype=mx.uint32) * case.bits

    def pack(matrix: Array) -> Weights:
        ones = matrix.astype(mx.uint32).reshape(*matrix.shape[:-1], -1, each)
        groups = (*matrix.shape[:-1], matrix.shape[-1] // case.group_size)
        codes = mx.sum(mx.left_shift(ones, places), axis=-1).astype(mx.uint32)
        return codes, mx.ones(groups, dtype=DTYPES[case.dtype]), mx.zeros(groups, dtype=DTYPES[case.dtype])

    return pack


def quantisation(case: Case) -> dict[str, Any]:
    """What MLX's functions call the format."""
    return {"group_size": case.group_size, "bits": case.bits, "mode": case.mode}


def partial_permutation(outputs: int, inputs: int, seed: int) -> list[int]:
    """Which input each output repeats, each at most once; -1 for outputs that stay zero."""
    key = mx.random.key(seed)
    if outputs <= inputs:
        chosen: list[int] = mx.random.permutation(inputs, key=key)[:outputs].tolist()  # type: ignore[assignment]
        return chosen
    places: list[int] = mx.random.permutation(outputs, key=key).tolist()  # type: ignore[assignment]
    return [place if place < inputs else -1 for place in places]


def one_hot(source: Sequence[int], inputs: int) -> Array:
    """The matrix (outputs x inputs) that gives each output the input of that index."""
    return (mx.array(list(source))[:, None] == mx.arange(inputs)[None, :]).astype(mx.float32)


def normal(leading: Shape, columns: int, case: Case, seed: int) -> Array:
    """Random values of the case's type, others for each seed and for each seed of the case."""
    key = mx.random.key(1_000_003 * (case.seed + 1) + seed)
    return mx.random.normal((*leading, columns), key=key).astype(DTYPES[case.dtype])


def as_float(array: Array) -> Floats:
    """As a numpy array in float32."""
    return np.asarray(array.astype(mx.float32))
