"""What can be timed: an operation by how its inputs are made, how it is applied, and how its output feeds the next.

A function for ``--op`` takes a ``Case`` and returns a ``Call``, or a tuple of calls that feed one another in turn::

    def silu(case: Case) -> Call:
        return Call(
            weights=lambda: (),
            input=lambda seed: mx.random.normal((case.m, case.k), key=mx.random.key(seed)),
            apply=lambda x, weights: x * mx.sigmoid(x),
        )
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracekit.errors import UnusableInput, WrongUsage

Array = Any
"""An ``mlx.core.array``: MLX is not needed to know what can be timed."""

Weights = Any
"""Arrays in tuples, lists or dictionaries, as MLX's own functions take them."""

LINK = 2.0**-6
"""Share of the output that the link carries: far below 1, so that a chain through it stays as bounded as its input."""


@dataclass(frozen=True)
class Case:
    """The shape of the work: ``m`` rows of ``k`` values into ``n``. What an operation has no use for is ignored."""

    m: int = 1
    k: int = 4096
    n: int = 4096
    dtype: str = "bf16"
    bits: int = 4
    group_size: int = 64
    mode: str = "affine"
    experts: int = 64
    top_k: int = 8
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    context: int = 2048
    seed: int = 0


@dataclass(frozen=True)
class Call:
    """One call of an operation.

    ``weights`` makes what it reads beside its input, the same for every M. ``input`` makes an input, another one for
    each seed. ``feed`` makes the next call's input from a first input of the right shape and this call's output; None
    where the output itself is the next input. ``reference`` computes the output in float32 with numpy from the
    weights and an input. ``weight_bytes`` is how many bytes of the weights one call reads, None where it reads all.
    ``operations`` is how many operations one call stands for.
    """

    weights: Callable[[], Weights]
    input: Callable[[int], Array]
    apply: Callable[[Array, Weights], Array]
    feed: Callable[[Array, Array], Array] | None = None
    reference: Callable[[Weights, Array], Any] | None = None
    weight_bytes: Callable[[Weights], int] | None = None
    operations: int = 1


Calls = tuple[Call, ...]
Operation = Callable[[Case], Calls]


def link(first: Array, output: Array) -> Array:
    """An input of the shape of ``first`` that depends on ``output``, of whatever shape, through its first column."""
    return first + LINK * output[..., :1]


def load_operation(name: str) -> Operation:
    """The user's ``module:function`` (or ``file.py:function``). Raises WrongUsage or UnusableInput."""
    module, colon, function = name.rpartition(":")
    if not colon or not module or not function:
        raise WrongUsage(f"{name}: write module:function, such as my_kernels:fused_mlp")
    found = getattr(_module(module), function, None)
    if not callable(found):
        raise UnusableInput(f"{name}: there is no function {function} in {module}")

    def operation(case: Case) -> Calls:
        calls = found(case)
        calls = calls if isinstance(calls, tuple) else (calls,)
        if not calls or not all(isinstance(call, Call) for call in calls):
            raise UnusableInput(f"{name}: returns {type(calls[0]).__name__ if calls else 'nothing'}, not a Call")
        return calls

    return operation


def _module(name: str) -> Any:  # noqa: ANN401
    """By name, from the current folder too; a file by its path."""
    file = Path(name)
    place, stem = (file.parent, file.stem) if file.suffix == ".py" else (Path(), name)
    sys.path.insert(0, str(place.absolute()))
    try:
        return importlib.import_module(stem)
    except ImportError as error:
        raise UnusableInput(f"{name}: cannot be imported ({error})") from error
    finally:
        sys.path.pop(0)
