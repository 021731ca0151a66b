"""A benchmark from what was asked for to its answer."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib import metadata
from typing import Literal

import mlx.core as mx

from tracekit import __version__
from tracekit.analysis.results import Warn
from tracekit.analysis.results.bench import Bench, BenchRow, OutputCheck, Surroundings
from tracekit.bench.cells import Candidate, Plan
from tracekit.bench.checks import exact_chain
from tracekit.bench.contrasts import contrasts, crossovers, flips, steps
from tracekit.bench.limits import cache_size, measured_bandwidth, measured_floor
from tracekit.bench.linear import LINEAR
from tracekit.bench.operations import OPERATIONS, named_operation
from tracekit.bench.protocol import link, load_operation
from tracekit.bench.rows import rows_of
from tracekit.bench.session import measure
from tracekit.capture.machine import GpuState, gpu_states

LINEAR_SHAPE = ("k", "n", "dtype", "seed")
QUANTISED_SHAPE = (*LINEAR_SHAPE, "bits", "group_size", "mode")
SHAPES = {
    "matmul": LINEAR_SHAPE,
    "qmm": QUANTISED_SHAPE,
    "gather_qmm": (*QUANTISED_SHAPE, "experts", "top_k"),
    "rms_norm": ("k", "dtype", "seed"),
    "sdpa": ("heads", "kv_heads", "head_dim", "context", "dtype", "seed"),
    "copy": ("k", "dtype", "seed"),
}
"""What of a case each operation uses; a user's own may use all of it."""


def known_cache(given: int | None) -> tuple[int, str]:
    """The last-level cache in bytes."""
    return (given, "given") if given else cache_size()


def named_candidate(name: str, *, pair: bool) -> Candidate:
    """One of the operations that can be named, or the user's ``module:function``."""
    if name not in OPERATIONS:
        return Candidate(name, load_operation(name))
    exact = partial(exact_chain, LINEAR[name]) if name in LINEAR else None
    return Candidate(name, named_operation(name, pair=pair), exact)


def benchmark(plan: Plan, cache_basis: str, bandwidth: float | None) -> Bench:
    """Measure and compare. ``bandwidth`` in bytes/s, None to measure it."""
    ceiling, basis = (bandwidth, "given") if bandwidth else measured_bandwidth(plan.cache)
    floor = measured_floor()
    before = gpu_states()
    measured, checks = measure(plan)
    after = gpu_states()
    rows = rows_of(measured, ceiling, floor)
    return Bench(
        tracekit=__version__,
        command="bench",
        traces=[],
        warnings=_warnings(rows, checks),
        operation=" against ".join(candidate.name for candidate in plan.candidates),
        shape=shape_of(plan),
        link=_link(plan),
        surroundings=Surroundings(
            device=device_name(),
            versions={"tracekit": __version__, "mlx": metadata.version("mlx")},
            cache_bytes=plan.cache,
            cache_basis=cache_basis,
            bandwidth=ceiling,
            bandwidth_basis=basis,
            floor_ns=floor,
            clocks_mhz=[[state.sm_clock for state in states] for states in (before, after) if states],
            temperatures_c=[[state.temperature for state in states] for states in (before, after) if states],
            throttled=_throttled([*before, *after]),
        ),
        rows=rows,
        contrasts=contrasts(rows),
        flips=flips(rows),
        steps=steps(rows),
        crossovers=crossovers(rows),
        checks=checks,
    )


def device_name() -> str:
    """What MLX computes on."""
    # MLX has it in the namespace of each backend before it has it here.
    info = mx.device_info() if hasattr(mx, "device_info") else {}
    return f"{info.get('device_name', 'unknown')} ({mx.default_device().type.name})"


def shape_of(plan: Plan) -> dict[str, int | str]:
    """What of the case the candidates use."""
    fields = asdict(plan.case)
    used = [SHAPES.get(candidate.name, tuple(fields)) for candidate in plan.candidates]
    return {name: value for name, value in fields.items() if name != "m" and any(name in names for names in used)}


def _link(plan: Plan) -> Literal["pair", "projection", "none"]:
    calls = plan.candidates[0].operation(plan.case)
    if calls[0].feed is link:
        return "projection"
    return "pair" if len(calls) > 1 else "none"


def _throttled(states: Sequence[GpuState]) -> list[str]:
    return sorted({reason for state in states for reason in state.throttle_reasons if reason != "gpu_idle"})


def _warnings(rows: Sequence[BenchRow], checks: Sequence[OutputCheck]) -> list[Warn]:
    wrong = [each for each in checks if each.error is not None and each.allowed and not each.error <= each.allowed]
    inexact = [each for each in checks if each.exact_chain is False]
    unchecked = [each for each in checks if each.error is None and each.exact_chain is None]
    found = [
        Warn("wrong_output", f"{_names(wrong)}: the output is not that of the float32 reference", len(wrong)),
        Warn("inexact_chain", f"{_names(inexact)}: a chain of permutations changes values", len(inexact)),
        Warn("unchecked_output", f"{_names(unchecked)}: has no reference: its output is unchecked", len(unchecked)),
        _marked(rows, "merged", "calls were merged or fused by the compiler: withheld; leave out --compile"),
        _marked(rows, "unbounded", "values of the chain vanish or grow without bound: withheld"),
        _marked(rows, "unsettled", "times did not settle with the longest chain: is the machine busy?"),
        _marked(rows, "unsteady", "times drift or have two states: their medians stand for neither"),
    ]
    return [warning for warning in found if warning.count]


def _marked(rows: Sequence[BenchRow], mark: str, message: str) -> Warn:
    count = sum(mark in row.marks for row in rows)
    return Warn(mark, f"{count} of {len(rows)} rows: {message}", count)


def _names(checks: Sequence[OutputCheck]) -> str:
    return ", ".join(dict.fromkeys(f"{each.candidate} M={each.m}" for each in checks))
