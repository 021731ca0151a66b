"""One benchmark: prepare every cell, time them in turn over rounds, and hand over the samples."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import mlx.core as mx
from mlx.utils import tree_map

from tracekit.analysis.results.bench import OutputCheck, Residency
from tracekit.bench.cells import Candidate, Plan, Timed, prepared
from tracekit.bench.checks import check
from tracekit.bench.loops import bytes_of
from tracekit.bench.protocol import Weights
from tracekit.bench.rows import Measured
from tracekit.errors import TracekitError, UnusableInput

COLD_CACHES = 2
"""Cold weights go round over so many times the last-level cache."""

WARM_UP = 1
"""Rounds that are not counted."""


def measure(plan: Plan) -> tuple[list[Measured], list[OutputCheck]]:
    """Samples of every cell, and what the checks of the outputs found.

    Rounds go through all cells in a shuffled order that the seed fixes, so that drift meets all alike.
    """
    timed: list[Timed] = []
    checks: list[OutputCheck] = []
    for candidate in plan.candidates:
        try:
            for cells, found in _ready(plan, candidate):
                timed += cells
                checks.append(found)
        except TracekitError:
            raise
        except Exception as error:  # The operation is the user's, or the shape one that MLX refuses.
            reason = " ".join(str(error).split())
            raise UnusableInput(f"{candidate.name}: cannot be run in this shape ({reason})") from error
    order = random.Random(plan.case.seed)
    usable = [each for each in timed if each.take]
    for turn in range(WARM_UP + plan.rounds):
        for each in order.sample(usable, len(usable)):
            each.time(counted=turn >= WARM_UP)
    return [each.measured() for each in timed], checks


def _ready(plan: Plan, candidate: Candidate) -> Iterator[tuple[list[Timed], OutputCheck]]:
    """The cells of one candidate, M by M, all with the same weights, and the check of each M."""
    weights: list[Weights] = []
    sets: dict[Residency, list[Sequence[Weights]]] = {}
    for m in plan.sizes:
        case = replace(plan.case, m=m)
        calls = candidate.operation(case)
        if not sets:
            weights = [call.weights() for call in calls]
            mx.eval(weights)
            sets = {kind: _sets(weights, kind, plan.cache) for kind in _residencies(plan, weights)}
        exact = candidate.exact(case) if candidate.exact and m == plan.sizes[0] else None
        yield list(prepared(plan, candidate.name, m, calls, sets)), check(candidate.name, case, calls, weights, exact)


def _residencies(plan: Plan, weights: Sequence[Weights]) -> Sequence[Residency]:
    """What has no weights cannot have cold ones."""
    return plan.weights if bytes_of(weights) else ["hot"]


def _sets(weights: Sequence[Weights], kind: Residency, cache: int) -> list[Sequence[Weights]]:
    """One set of weights; or as many copies, each in memory of its own, as the caches cannot hold."""
    if kind == "hot":
        return [weights]
    copies = [weights]
    while len(copies) * bytes_of(weights) < COLD_CACHES * cache or len(copies) < 2:
        copies.append(tree_map(lambda array: array + 0, weights))
        mx.eval(copies[-1])
    return copies
