"""Answer of ``tracekit graph``."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Answer, Kernel, Number


class SerialPairs(msgspec.Struct, frozen=True):
    """Nodes that ran one right after the other, over all launches.

    They are ordered by an edge, by a path over others, or by neither: these could have run at once.
    """

    by_edge: int
    by_path: int
    by_neither: int


class GraphShape(msgspec.Struct, frozen=True):
    """Launches that ran the same kernels in the same order of nodes, and what orders those.

    ``order`` says where ``edges`` are from: a ``dump``, else ``inferred`` from so many ``launches``. ``chain`` is the
    most nodes on one path, ``critical_ns`` the longest path by median durations, ``ideal_ns`` by solo durations.
    Concurrency is the summed time of nodes over the time in which any ran: as measured, and as it could be were
    every node as fast as alone and started as soon as those before it ended. ``share`` is of all kernel time, null
    where records were lost.
    """

    graph: int
    process: int | None
    executables: int
    launches: int
    first_launch: int
    nodes: int
    kinds: dict[str, int]
    order: Literal["dump", "inferred", "unknown"]
    dump: str | None
    edges: int | None
    width: int | None
    max_depth: int
    chain: int | None
    span_ns: Number
    busy_ns: Number
    summed_ns: Number
    share: float | None
    critical_ns: Number | None
    ideal_ns: Number | None
    concurrency: float | None
    possible_concurrency: float | None
    serial_pairs: SerialPairs | None
    note: str | None


class GraphNode(Kernel, frozen=True):
    """A node, in the order of creation. ``level``: most nodes on a path to it; ``after``: the nodes it waits for.

    ``start_ns`` and ``duration_ns`` are of the launch shown; quartiles and ``overlapped_fraction`` (time beside other
    nodes of its launch) are over all launches, ``share`` is of their summed time.
    """

    node: int
    kind: Literal["kernel", "copy"]
    level: int | None
    after: list[int]
    start_ns: int
    duration_ns: int
    median_ns: Number
    p25_ns: Number
    p75_ns: Number
    share: float | None
    solo_ns: Number | None
    overlapped_fraction: float | None


class LevelRun(msgspec.Struct, frozen=True):
    """Levels that repeat: ``levels`` from ``first``, ``times`` times in a row. Each is told by its nodes' numbers."""

    first: int
    times: int
    levels: list[list[int]]


class GraphDetail(msgspec.Struct, frozen=True):
    """One graph and one of its launches: the one asked for, else the longest of the graph that takes most time."""

    graph: int
    launch: int
    span_ns: int
    nodes: list[GraphNode]
    outline: list[LevelRun]


class GraphAnswer(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit graph``: the trace's graphs, those with most time first, and one of them in detail."""

    dumps: int
    dumps_used: int
    graphs: list[GraphShape]
    detail: GraphDetail
