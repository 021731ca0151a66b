"""Kernels, laws and arms that scenarios are put together from."""

from proving.contention_laws import Bandwidth, Waves
from proving.gpu_model import Kernel, Law
from proving.scenario import Expected, Scenario
from proving.workload import EAGER, GRAPH, Arm, Launching, Phase, Work, chain, in_order

MATMUL = Kernel("qmm_sm80", 160_000, bandwidth=0.9, compute=0.3, blocks=960, working_set=14)
ATTENTION = Kernel("sdpa_full", 110_000, bandwidth=0.7, compute=0.25, blocks=480, working_set=13)
COPY = Kernel("copy_gg_nd", 24_000, bandwidth=0.8, compute=0.05, blocks=192, working_set=12)
NORM = Kernel("rms_norm", 9_000, bandwidth=0.3, compute=0.2, blocks=64, working_set=3)
ROPE = Kernel("rope", 14_000, bandwidth=0.25, compute=0.3, blocks=40, working_set=2)
GEMV = Kernel("qmv_fast", 30_000, bandwidth=0.3, compute=0.3, blocks=44, working_set=4)
TINY = Kernel("binary_vv", 3_000, bandwidth=0.2, compute=0.1, blocks=24, working_set=1)

FAIR, PAGES_BROKEN = Bandwidth(), Bandwidth(interference=0.6)
"""Memory shared without loss; memory whose open pages kernels break up for each other."""

ROOMY, THRASHED = Waves(), Waves(thrash=1.7, refill=0.04)
"""Working sets that fit, whatever runs; a cache that two large ones overflow."""


def layers(work: Work, count: int = 5) -> Work:
    """The work so often, one layer after another, each begun by a norm."""
    return in_order(*(part for _ in range(count) for part in (chain(NORM), work)))


def prefill(work: Work, how: Launching, instances: int = 6) -> Phase:
    """Isolated instances: each waits for its work."""
    return Phase("prefill", work, how, instances)


def decode(work: Work, how: Launching, instances: int = 8) -> Phase:
    """Instances that follow one another, each launched while the one before it runs."""
    return Phase("decode", work, how, instances, pipelined=True)


def prefills(law: Law, work: Work, expected: Expected, a: Launching = GRAPH, b: Launching = EAGER) -> Scenario:
    """The same work in both arms, launched in two ways."""
    return Scenario(law, (Arm((prefill(work, a),)), Arm((prefill(work, b),))), {"prefill": expected})


def decodes(law: Law, work: Work, expected: Expected, a: Launching = GRAPH, b: Launching = EAGER) -> Scenario:
    """The same as decode steps."""
    return Scenario(law, (Arm((decode(work, a),)), Arm((decode(work, b),))), {"decode": expected})
