"""What a repro is made of: the nodes of one traced graph launch, their edges, and what the launch lost."""

from typing import Literal

import msgspec

Size = tuple[int, int, int]

NodeKind = Literal["kernel", "memcpy", "memset", "host", "empty"]

Body = Literal["matmul", "matvec", "copy", "reduce", "elementwise"]
"""What a stand-in kernel does; each is a kernel of the CUDA program."""


class KernelFacts(msgspec.Struct, frozen=True):
    """How a kernel was launched, and what stands in for it. ``registers`` are per thread, ``static_smem`` and
    ``dynamic_smem`` bytes per block, ``local`` bytes per thread; null where the trace does not record them.
    ``why`` says how the stand-in was chosen. ``bytes`` and ``iterations`` are first guesses of its work."""

    grid: Size
    block: Size
    cluster: Size
    dynamic_smem: int
    registers: int | None
    static_smem: int | None
    local: int | None
    body: Body
    why: str
    bytes: int
    iterations: int


class ReproNode(msgspec.Struct, frozen=True):
    """One node, times in ns; null where the trace does not tell.

    ``start_ns`` counts from the launch's first start; ``solo_ns`` is how long the kernel takes alone, with its p25 and
    p75. ``stream`` numbers the traced streams from 0. ``child`` numbers child graphs, null for the outermost.
    ``bytes``, ``copy_kind`` (as CUPTI numbers it) and ``value`` are of copies and sets.
    """

    name: str
    kind: NodeKind
    stream: int
    child: int | None = None
    start_ns: int | None = None
    duration_ns: int | None = None
    solo_ns: float | None = None
    solo_p25_ns: float | None = None
    solo_p75_ns: float | None = None
    kernel: KernelFacts | None = None
    bytes: int = 0
    copy_kind: int = 0
    value: int = 0


class Loss(msgspec.Struct, frozen=True):
    """What overlap cost one launch, whose kernels ran side by side for ``side_by_side_ns`` in all: over the episodes
    whose kernels' solo durations are known, ``wall_ns`` that they took and ``solo_ns`` that the same work takes one
    after another."""

    episodes: int
    side_by_side_ns: int
    wall_ns: int
    solo_ns: float | None

    @property
    def coverage(self) -> float | None:
        """Share of the side-by-side time for which it is known what it cost."""
        return self.wall_ns / self.side_by_side_ns if self.side_by_side_ns else None

    @property
    def lost_ns(self) -> float | None:
        """Positive where running side by side took longer."""
        return None if self.solo_ns is None else self.wall_ns - self.solo_ns


class Gpu(msgspec.Struct, frozen=True):
    """The traced GPU. ``bandwidth`` is bytes a second, where the trace tells."""

    name: str
    compute_capability: str | None
    sms: int | None
    bandwidth: int | None


class Repro(msgspec.Struct, frozen=True):
    """One graph launch to be reproduced. Nodes stand in an order in which every edge leads onward.

    ``launch`` is its number in the trace, one of ``launches`` of its graph; ``slower_launches`` of those
    ``known_launches`` whose loss is known lost time. ``chosen`` says why it was taken, ``notes`` what is not as in the
    traced graph.
    """

    tracekit: str
    gpu: Gpu
    launch: int
    launches: int
    known_launches: int
    slower_launches: int
    median_lost_ns: float | None
    chosen: str
    phase: str | None
    order: Literal["dump", "inferred"]
    span_ns: int
    busy_ns: int
    summed_ns: int
    max_depth: int
    loss: Loss
    nodes: list[ReproNode]
    edges: list[tuple[int, int]]
    notes: list[str]

    @property
    def kernels(self) -> list[int]:
        """Numbers of the kernel nodes."""
        return [i for i, node in enumerate(self.nodes) if node.kernel]
