"""A graph launch with every kind of node, as a trace and as a DOT dump, whose loss is planted."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from dot_dumps import cluster, digraph, kernel, other
from nsys_export import Export

UNIT = 1 << 32
US = 1000

GEMM_ALONE, COPY_ALONE, TOGETHER = 100 * US, 50 * US, 300 * US
"""How long two kernels take alone, and both of them side by side in the graph."""

LOST = TOGETHER - GEMM_ALONE - COPY_ALONE

STATIC = {"softmax_c0": 1000, "softmax_c1": 0, "gemm_a": 0, "copy_b": 4224, "add_d": 0}
REGISTERS = {"softmax_c0": 40, "softmax_c1": 33, "gemm_a": 128, "copy_b": 20, "add_d": 90}
BLOCKS = {"gemm_a": 48, "copy_b": 96, "softmax_c0": 10, "softmax_c1": 12, "add_d": 14}


class Planted(NamedTuple):
    """The files."""

    trace: Path
    dump: Path


def plant(folder: Path, *, launches: int = 3, registers: bool = True) -> Planted:
    """Write both: kernels alone first, then so many launches of the graph, the second one the worst by 50 us."""
    export = Export()
    export.gpu(0, "NVIDIA Test GPU")
    at = 1000 * US
    for name, length in (("gemm_a", GEMM_ALONE), ("copy_b", COPY_ALONE), ("softmax_c0", 20 * US)):
        for _ in range(3):
            _kernel(export, at, length, name)
            at += length + 10 * US
    for launch in range(launches):
        at = _launch(export, at + 100 * US, launch, TOGETHER + (50 * US if launch == 1 else 0))
    trace = export.write(folder / "graph.sqlite")
    with closing(sqlite3.connect(trace)) as connection, connection:
        for name, size in STATIC.items():
            connection.execute(
                "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET staticSharedMemory = ? "
                "WHERE shortName = (SELECT id FROM StringIds WHERE value = ?)",
                (size, name),
            )
        if not registers:
            connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN registersPerThread")
    dump = folder / "graph_1.dot"
    dump.write_text(dumped())
    return Planted(trace, dump)


def _kernel(
    export: Export,
    start: int,
    length: int,
    name: str,
    stream: int = 7,
    node: int | None = None,
    correlation: int | None = None,
) -> None:
    export.kernel(
        start,
        start + length,
        name=name,
        grid=(BLOCKS[name], 1, 1),
        block=(128, 1, 1),
        cluster=(2, 1, 1) if name == "gemm_a" else (0, 0, 0),
        smem=65536 if name == "gemm_a" else 0,
        registers=REGISTERS[name],
        stream=stream,
        node=node,
        correlation=correlation,
    )


def _launch(export: Export, start: int, launch: int, together: int) -> int:
    """One launch; returns its end."""
    correlation = 500 + launch
    nodes = [UNIT + i for i in range(7)]
    _kernel(export, start, together, "gemm_a", stream=7, node=nodes[0], correlation=correlation)
    _kernel(export, start, together, "copy_b", stream=8, node=nodes[1], correlation=correlation)
    at = start + together + US
    for i, (name, length) in enumerate((("softmax_c0", 20 * US), ("softmax_c1", 30 * US)), start=2):
        _kernel(export, at, length, name, stream=7, node=nodes[i], correlation=correlation)
        at += length + US
    export.memcpy(at, at + 5 * US, stream=7, bytes=4096, kind=1, node=nodes[4], correlation=correlation)
    export.memset(at, at + 3 * US, stream=8, bytes=2048, node=nodes[5], correlation=correlation)
    _kernel(export, at + 6 * US, 40 * US, "add_d", stream=7, node=nodes[6], correlation=correlation)
    return at + 46 * US


def dumped() -> str:
    """The dump: two kernels, an empty node that joins them, a child graph, copies, a host node, a kernel."""
    child = cluster([kernel(0, "softmax_c0"), kernel(1, "softmax_c1")], [(0, 1)], graph=2)
    nodes = [
        kernel(0, "gemm_a"), kernel(1, "copy_b"), other(2, "EMPTY"), other(3, "graph_2"),
        other(4, "MEMCPY\n(HtoD,4096)"), other(5, "MEMSET\n(0,1,2048)"), other(6, "HOST"), kernel(7, "add_d"),
    ]  # fmt: skip
    edges = [(0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 6), (5, 7), (6, 7)]
    return digraph(cluster(nodes, edges), child)


IN_ORDER = ["gemm_a", "copy_b", "empty", "softmax_c0", "softmax_c1", "memcpy", "host", "memset", "add_d"]
"""The nodes as they have to be launched, and the edges between these places."""

EDGES = [(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (4, 7), (5, 6), (6, 8), (7, 8)]
