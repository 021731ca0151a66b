"""Plans drawn by a seed: graphs that lose time by overlap, and comparisons in which nothing differs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from proving.building import prefill
from proving.contention_laws import Bandwidth, Waves
from proving.gpu_model import Kernel, Law
from proving.noise import Noise
from proving.recording import record
from proving.scenario import Scenario
from proving.truth import Account
from proving.workload import EAGER, GRAPH, QUIET, SERIAL_GRAPH, Arm, Noisy, Work, chain, in_order, side_by_side

LawName = Literal["bandwidth", "waves"]
LAW_NAMES: tuple[LawName, LawName] = ("bandwidth", "waves")

LEAST_LOSS, MOST_LOSS = 0.25, 1.5
"""Loss of a drawn graph, as a share of its kernels' solo time."""

_KEYS = 7
_MOST_TRIES = 200


def losing_plan(law_name: LawName, seed: int) -> Scenario:
    """A graph whose overlap loses time, against the same kernels launched eagerly."""
    for attempt in range(_MOST_TRIES):
        draw = Noise("losing", law_name, seed, attempt)
        law = _law(draw, law_name)
        work = _graph(draw, [_kernel(draw, number) for number in range(_KEYS)])
        noise = _noisy(draw, 0.006)
        plan = Scenario(law, tuple(Arm((prefill(work, how),), noise=noise) for how in (GRAPH, EAGER)), {})
        account = without_noise(plan)
        solo = sum(ran.solo for ran in account.kernels.values())
        if LEAST_LOSS * solo <= account.lost <= MOST_LOSS * solo and not account.gained:
            return plan
    raise RuntimeError(f"no graph that loses enough in {_MOST_TRIES} tries, seed {seed}")


def equal_plan(law_name: LawName, seed: int) -> Scenario:
    """Two arms that differ in nothing but noise, or in how they launch kernels that run one after another."""
    draw = Noise("equal", law_name, seed)
    law = _law(draw, law_name)
    work = _graph(draw, [_kernel(draw, number) for number in range(_KEYS)])
    noise = _noisy(draw, 0.015)
    ways = draw.one_of(((SERIAL_GRAPH, EAGER), (GRAPH, GRAPH), (EAGER, EAGER)))
    return Scenario(law, tuple(Arm((prefill(work, how),), noise=noise) for how in ways), {})


def without_noise(plan: Scenario) -> Account:
    """What one instance of the first arm's first phase does when nothing varies."""
    arm = plan.arms[0]
    phase = replace(arm.phases[0], instances=2)
    return record(replace(arm, phases=(phase,), noise=QUIET), plan.law, 0, "quiet").accounts[phase.name][0]


def _law(draw: Noise, name: LawName) -> Law:
    if name == "bandwidth":
        return Bandwidth(interference=draw.between(0.4, 1.2))
    return Waves(thrash=draw.between(1.5, 2.6), refill=draw.between(0, 0.06))


def _kernel(draw: Noise, number: int) -> Kernel:
    """One of several kernels: long and short ones, waiting for memory or not."""
    return Kernel(
        f"kernel_{'abcdefgh'[number]}",
        solo_ns=15_000 * 12 ** draw.between(0, 1),
        bandwidth=draw.between(0.2, 1.0),
        compute=draw.between(0.1, 0.5),
        blocks=draw.count(60, 1500),
        per_sm=draw.count(1, 4),
        working_set=draw.between(5, 20),
    )


def _graph(draw: Noise, kernels: Sequence[Kernel]) -> Work:
    """Segments one after another, each of one to three branches; some nodes are of another shape."""
    parts = []
    for _ in range(draw.count(4, 7)):
        branches = [[draw.one_of(kernels) for _ in range(draw.count(1, 3))] for _ in range(draw.count(1, 3))]
        parts.append(side_by_side(*branches))
    mixed = draw.one_of(kernels)
    work = in_order(chain(kernels[0]), *parts)
    return tuple(replace(node, size=draw.one_of((0.6, 1.0, 1.8))) if node.kernel == mixed else node for node in work)


def _noisy(draw: Noise, most_of_recording: float) -> Noisy:
    return Noisy(
        kernel=draw.between(0.004, 0.025),
        instance=draw.between(0.001, 0.005),
        recording=draw.between(0.002, most_of_recording),
        times=0.06,
        law=draw.between(0.005, 0.03),
    )
