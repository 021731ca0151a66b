"""Directed acyclic graphs: levels, paths, reachability and width, all exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from tracekit.intervals import Ints, distinct

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dag:
    """Nodes 0 to ``size`` - 1 and distinct ``edges``, one row (from, to) each."""

    size: int
    edges: Ints

    @classmethod
    def of(cls, size: int, edges: Sequence[tuple[int, int]] | Ints) -> Self:
        """The graph of some edges, repeated ones counted once. Raises ValueError where they lead in a circle."""
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        codes = distinct(pairs[:, 0] * size + pairs[:, 1])
        dag = cls(size, np.stack([codes // size, codes % size], axis=1) if codes.size else pairs)
        if len(dag.order) < size:
            raise ValueError("the edges lead in a circle")
        return dag

    @cached_property
    def successors(self) -> list[list[int]]:
        """The nodes that each node's edges lead to."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for one, other in self.edges.tolist():
            found[one].append(other)
        return found

    @cached_property
    def order(self) -> list[int]:
        """The nodes so that every edge leads onward (Kahn 1962); those on a circle are left out."""
        awaited = np.bincount(self.edges[:, 1], minlength=self.size).tolist()
        ready = [node for node in range(self.size) if not awaited[node]]
        for node in ready:
            for after in self.successors[node]:
                awaited[after] -= 1
                if not awaited[after]:
                    ready.append(after)
        return ready

    @cached_property
    def levels(self) -> Ints:
        """For each node the most edges on a path to it."""
        return (self.finished(np.ones(self.size)) - 1).astype(np.int64)

    def finished(self, lengths: Floats, pause: float = 0.0) -> Floats:
        """When each node ends if it starts ``pause`` after the last node it waits for, and those without at 0.

        This is the list schedule (Graham 1966) of a machine that is wide enough for all that is ready; the latest
        end is the length of the critical path.
        """
        start, length = [0.0] * self.size, lengths.tolist()
        for node in self.order:
            next_start = start[node] + length[node] + pause
            for after in self.successors[node]:
                if next_start > start[after]:
                    start[after] = next_start
        return np.array(start, np.float64) + lengths

    @cached_property
    def _reached(self) -> npt.NDArray[np.uint8]:
        """Row u holds a bit for every node that a path leads to from u."""
        rows = np.zeros((self.size, self.size // 8 + 1), np.uint8)
        for node in reversed(self.order):
            after = np.array(self.successors[node], np.int64)
            if after.size:
                rows[node] = np.bitwise_or.reduce(rows[after], axis=0)
                np.bitwise_or.at(rows[node], after >> 3, np.left_shift(1, after & 7).astype(np.uint8))
        return rows

    def has_path(self, one: Ints, other: Ints) -> Bools:
        """Whether a path leads from each of ``one`` to each of ``other``, pair by pair."""
        found: Bools = (self._reached[one, other >> 3] >> (other & 7)) & 1 == 1
        return found

    def has_edge(self, one: Ints, other: Ints) -> Bools:
        """Whether an edge leads from each of ``one`` to each of ``other``, pair by pair."""
        return np.isin(one * self.size + other, self.edges[:, 0] * self.size + self.edges[:, 1])

    @cached_property
    def width(self) -> int:
        """The most nodes of which no path leads from one to another: as many as can run at once.

        By Dilworth (1950) it is the fewest paths that cover all nodes, where paths may share nodes. A path cover is
        a matching of nodes with their successors, and what it cannot match starts a path (Fulkerson 1956); an arc
        from each node's arrival to its departure lets a path run through nodes that others cover, which stands for
        the transitive closure without building it.
        """
        if not self.edges.size:
            return self.size
        # Imported late: most commands need none of it.
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        departure = np.arange(self.size) + 2
        arrival = departure + self.size
        source, sink = np.zeros(self.size, np.int64), np.ones(self.size, np.int64)
        one, other = self.edges.T
        tail = np.concatenate([source, arrival, departure[one], arrival])
        head = np.concatenate([departure, sink, arrival[other], departure])
        room = np.full(tail.size, self.size, np.int32)
        room[: 2 * self.size] = 1
        network = csr_array((room, (tail, head)), shape=(2 * self.size + 2,) * 2)
        return self.size - int(maximum_flow(network, 0, 1).flow_value)

    def among(self, kept: Sequence[int]) -> "Dag":
        """The kept nodes, renumbered in that order; paths through left out nodes become edges."""
        number = {node: i for i, node in enumerate(kept)}
        onward: list[set[int]] = [set() for _ in range(self.size)]
        for node in reversed(self.order):
            for after in self.successors[node]:
                onward[node] |= {number[after]} if after in number else onward[after]
        return Dag.of(len(kept), [(number[node], after) for node in kept for after in onward[node]])
