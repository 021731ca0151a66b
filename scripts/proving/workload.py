"""What a program runs and how it launches it: graphs of kernels, phases, arms."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from proving.gpu_model import Kernel

Setup = Literal["none", "instantiate", "update", "capture"]


@dataclass(frozen=True)
class Node:
    """A kernel in a graph; ``after`` are the numbers of its predecessors.

    ``size`` makes the work larger than the kernel's own: another shape under the same key. It may begin when the
    predecessors have done the share ``trigger`` of their work (below 1: programmatic dependent launch).
    """

    kernel: Kernel
    after: tuple[int, ...] = ()
    size: float = 1.0
    trigger: float = 1.0


Work = tuple[Node, ...]
"""The kernels of one phase instance, in the order in which they are launched eagerly."""


def chain(*kernels: Kernel) -> Work:
    """Kernels one after another."""
    return tuple(Node(kernel, (number - 1,) if number else ()) for number, kernel in enumerate(kernels))


def side_by_side(*branches: Sequence[Kernel]) -> Work:
    """Branches without an edge between them, each a chain."""
    whole: list[Node] = []
    for branch in branches:
        first = len(whole)
        whole += [_moved(node, first, ()) for node in chain(*branch)]
    return tuple(whole)


def in_order(*parts: Work) -> Work:
    """Graphs one after another: each begins when all ends of the one before it are reached."""
    whole: list[Node] = []
    ends: tuple[int, ...] = ()
    for part in parts:
        first = len(whole)
        whole += [_moved(node, first, ends) for node in part]
        followed = {number for node in part for number in node.after}
        ends = tuple(first + number for number in range(len(part)) if number not in followed)
    return tuple(whole)


def in_a_row(work: Work) -> Work:
    """The same kernels, each after the one before it."""
    return tuple(replace(node, after=(number - 1,) if number else ()) for number, node in enumerate(work))


def _moved(node: Node, first: int, roots_after: tuple[int, ...]) -> Node:
    return replace(node, after=tuple(first + number for number in node.after) or roots_after)


@dataclass(frozen=True)
class Launching:
    """How the host launches the work of one phase instance. Times are ns.

    ``graphs``: how many graph launches it is cut into; 0 launches kernel by kernel. ``serial`` runs kernels one after
    another whatever edges there are. ``gap_ns`` passes on the GPU between a kernel and one that waits for it.
    ``host_ns`` is work of the host in no CUDA call, before each launch. ``setup`` precedes each graph launch and
    takes ``setup_ns``. ``copies`` of ``copy_ns`` each go before the kernels.
    """

    graphs: int = 0
    serial: bool = False
    launch_ns: float = 2500
    node_launch_ns: float = 60
    gap_ns: float = 1300
    host_ns: float = 0
    setup: Setup = "none"
    setup_ns: float = 0
    copies: int = 0
    copy_ns: float = 4000


EAGER = Launching(serial=True)
GRAPH = Launching(graphs=1, launch_ns=9000)
SERIAL_GRAPH = replace(GRAPH, serial=True)


@dataclass(frozen=True)
class Phase:
    """A phase of an arm: its work, how it is launched, how often.

    ``pipelined``: each range launches the next instance and waits for its own, as mlx_lm decodes.
    """

    name: str
    work: Work
    launching: Launching
    instances: int = 6
    pipelined: bool = False


@dataclass(frozen=True)
class Noisy:
    """Deviations, as shares: of a kernel instance, of all kernels of a phase instance, of all of a recording,
    of pauses and host times, of the contention law's strength in a recording."""

    kernel: float = 0.01
    instance: float = 0.003
    recording: float = 0.004
    times: float = 0.05
    law: float = 0.02


QUIET = Noisy(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Arm:
    """One way to run the phases.

    ``clock`` makes every kernel so many times as long, ``states`` those of each recording in turn, ``drift`` those of
    the last phase instance against the first, growing evenly. ``slower`` makes single kernels (by name) longer.
    ``traced_ns`` is what the profiler adds to the pause before each kernel.
    """

    phases: tuple[Phase, ...]
    clock: float = 1.0
    states: tuple[float, ...] = ()
    drift: float = 0.0
    slower: dict[str, float] = field(default_factory=dict)
    traced_ns: float = 0.0
    noise: Noisy = Noisy()
