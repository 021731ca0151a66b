"""The operations that can be named: how each makes its inputs, applies itself and is checked."""

from functools import partial

import mlx.core as mx
import numpy as np

from tracekit.bench.linear import LINEAR, chained_linear
from tracekit.bench.matrices import Floats, as_float, normal
from tracekit.bench.protocol import Call, Calls, Case, Operation

EPSILON = 1e-5
"""Of the RMS norm, as models have it."""


def rms_norm(case: Case) -> Calls:
    """Over the last of M x K; its weights are near one."""
    return (
        Call(
            weights=lambda: 1 + 0.1 * normal((), case.k, case, -1),
            input=partial(normal, (case.m,), case.k, case),
            apply=lambda x, weight: mx.fast.rms_norm(x, weight, EPSILON),
            reference=lambda weight, x: _normed(as_float(x)) * as_float(weight),
        ),
    )


def sdpa(case: Case) -> Calls:
    """M queries of each head over a context; the output is the next query."""
    cached = (1, case.kv_heads, case.context)
    scale = case.head_dim**-0.5
    return (
        Call(
            weights=lambda: tuple(normal(cached, case.head_dim, case, seed) for seed in (-1, -2)),
            input=partial(normal, (1, case.heads, case.m), case.head_dim, case),
            apply=lambda x, kept: mx.fast.scaled_dot_product_attention(x, *kept, scale=scale),
            reference=lambda kept, x: _attention(as_float(x), as_float(kept[0]), as_float(kept[1]), scale),
        ),
    )


def copy(case: Case) -> Calls:
    """Negation of M x K values: it reads and writes each once, as a copy does, and MLX leaves none out."""
    return (
        Call(
            weights=tuple,
            input=partial(normal, (case.m,), case.k, case),
            apply=lambda x, _: -x,
            reference=lambda _, x: -as_float(x),
        ),
    )


OTHERS: dict[str, Operation] = {"rms_norm": rms_norm, "sdpa": sdpa, "copy": copy}
OPERATIONS = (*LINEAR, *OTHERS)


def named_operation(name: str, *, pair: bool) -> Operation:
    """One of OPERATIONS; ``pair`` says how matrices that are not square are chained."""
    return partial(chained_linear, LINEAR[name], pair) if name in LINEAR else OTHERS[name]


def _normed(x: Floats) -> Floats:
    normed: Floats = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + EPSILON)
    return normed


def _attention(queries: Floats, keys: Floats, values: Floats, scale: float) -> Floats:
    shared = queries.shape[1] // keys.shape[1]
    keys, values = (np.repeat(part, shared, axis=1) for part in (keys, values))
    scores = scale * queries @ np.swapaxes(keys, -1, -2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attended: Floats = weights / weights.sum(axis=-1, keepdims=True) @ values
    return attended
