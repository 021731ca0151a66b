"""The nodes of a traced launch as they are rebuilt."""

from collections.abc import Sequence
from math import isnan, prod
from typing import Any, NamedTuple

import polars as pl

from tracekit.analysis.graphs import by_key
from tracekit.errors import UnusableInput
from tracekit.graph.dag import Dag
from tracekit.graph.replays import COPY
from tracekit.graph.shape import Node as DumpNode
from tracekit.graph.shape import Shape
from tracekit.repro.kinds import stand_in
from tracekit.repro.launch_rows import LaunchRow
from tracekit.repro.model import Gpu, KernelFacts, NodeKind, ReproNode, Size
from tracekit.repro.work import guess_bytes, guess_iterations

TO_DEVICE, FROM_DEVICE, WITHIN_DEVICE = 1, 2, 8
"""CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, _DTOH and _DTOD; other kinds of copies stand as the last."""

MOST_THREADS = 1024
"""Threads of a block."""

MOST_GRID, MOST_GRID_YZ = (1 << 31) - 1, (1 << 16) - 1
"""Blocks of a grid along x, and along y and z (CUDA C++ Programming Guide, compute capabilities)."""


class Graph(NamedTuple):
    """Nodes in the order of the dump or of the trace, their edges, and the graph that holds each, 0 the outermost."""

    nodes: list[ReproNode]
    dag: Dag
    graphs: list[int]


class Kernels:
    """What is known of a trace's kernel keys; ``names`` gives the name to publish of each short name."""

    def __init__(
        self, keys: pl.DataFrame, labels: pl.DataFrame, solo: pl.DataFrame, names: dict[str, str], gpu: Gpu
    ) -> None:
        self._keys = keys.rows(named=True)
        self._solo = [by_key(labels, solo, column).tolist() for column in ("solo", "solo_low", "solo_high")]
        self._names = names
        self._gpu = gpu

    def node(self, row: LaunchRow, first: int, stream: int) -> ReproNode:
        """A recorded node; ``first`` is the launch's first start. Raises UnusableInput for a launch no GPU takes."""
        if row.key == COPY:
            kind: NodeKind = "memset" if row.is_set else "memcpy"
            known = row.copy_kind if row.copy_kind in (TO_DEVICE, FROM_DEVICE) else WITHIN_DEVICE
            return ReproNode(
                name=kind,
                kind=kind,
                stream=stream,
                start_ns=row.start - first,
                duration_ns=row.end - row.start,
                bytes=row.bytes or 0,
                copy_kind=known,
                value=(row.value or 0) & 0xFF,
            )
        key = self._keys[row.key]
        solo, low, high = (None if isnan(values[row.key]) else values[row.key] for values in self._solo)
        return ReproNode(
            name=self._names.get(key["short_name"], key["short_name"]),
            kind="kernel",
            stream=stream,
            start_ns=row.start - first,
            duration_ns=row.end - row.start,
            solo_ns=solo,
            solo_p25_ns=low,
            solo_p75_ns=high,
            kernel=self._kernel(key, row, solo or float(row.end - row.start)),
        )

    def _kernel(self, key: dict[str, Any], row: LaunchRow, duration: float) -> KernelFacts:
        grid, block, cluster = _launch_size(key, "grid"), _launch_size(key, "block"), _cluster(key)
        if prod(block) > MOST_THREADS or grid[0] > MOST_GRID or max(grid[1:]) > MOST_GRID_YZ:
            raise UnusableInput(
                f"kernel {key['short_name']}: no GPU runs grid {grid} with block {block}: choose another launch"
            )
        body, why = stand_in(key["short_name"])
        return KernelFacts(
            grid=grid,
            block=block,
            cluster=cluster,
            dynamic_smem=max(0, key["dynamicSharedMemory"] or 0),
            registers=row.registers,
            static_smem=row.static_smem,
            local=row.local,
            body=body,
            why=why,
            bytes=guess_bytes(body, duration, self._gpu.bandwidth),
            iterations=guess_iterations(body, duration, grid, self._gpu.sms),
        )


def _launch_size(key: dict[str, Any], what: str) -> Size:
    x, y, z = (key[f"{what}{axis}"] for axis in "XYZ")
    if not x or x < 0:
        raise UnusableInput(
            f"kernel {key['short_name']}: the trace does not hold its {what} size: record it with nsys 2020 or later"
        )
    return x, max(1, y or 1), max(1, z or 1)


def _cluster(key: dict[str, Any]) -> Size:
    """Blocks of a cluster; one where there is none or the export does not tell."""
    x, y, z = (max(1, key[f"cluster{axis}"] or 1) for axis in "XYZ")
    return x, y, z


def with_unrecorded(recorded: list[ReproNode], dag: Dag, shape: Shape | None, positions: Sequence[int]) -> Graph:
    """The whole graph of a dump, of which a trace records ``recorded``, at these positions; without one those alone."""
    if shape is None:
        return Graph(recorded, dag, [0] * len(recorded))
    known = dict(zip(positions, recorded, strict=True))
    nodes = [known.get(i) or _unrecorded(node) for i, node in enumerate(shape.nodes)]
    return Graph(nodes, shape.dag, [node.graph for node in shape.nodes])


def _unrecorded(node: DumpNode) -> ReproNode:
    """A node that leaves no row in a trace; one whose work is not known is kept for the order that it gives."""
    return ReproNode(node.kind, "host" if node.kind == "host" else "empty", stream=0)
