"""What one graph of a trace took, what it could take, and which of its nodes ran in a row without need."""

from functools import cached_property

import numpy as np

from tracekit.analysis.results import SerialPairs
from tracekit.graph.dag import Dag, Floats
from tracekit.graph.replays import COPY, Replays
from tracekit.intervals import Ints, Sweep, sweep


class GraphFigures:
    """Measures of a graph's launches (ns); ``solo`` gives the solo duration of each kernel key, nan where unknown."""

    def __init__(self, graph: Replays, dag: Dag | None, solo: Floats) -> None:
        self.graph = graph
        self.dag = dag
        self._solo = solo

    @cached_property
    def duration(self) -> Ints:
        """Of each node (column) in each launch (row)."""
        return self.graph.end - self.graph.start

    @cached_property
    def median(self) -> Floats:
        """Of each node over the launches."""
        middle: Floats = np.median(self.duration, axis=0)
        return middle

    @cached_property
    def span(self) -> Ints:
        """First start to last end of each launch."""
        span: Ints = self.graph.end.max(axis=1) - self.graph.start.min(axis=1)
        return span

    @cached_property
    def solo(self) -> Floats:
        """Solo duration of each node: of its kernel, nan where unknown; a copy's is its median."""
        return solo_of_nodes(self.graph, self._solo)

    @cached_property
    def _moments(self) -> Sweep:
        launches, size = self.graph.start.shape
        devices = int(self.graph.device.max(initial=0)) + 1
        place = np.repeat(np.arange(launches), size) * devices + self.graph.device.ravel()
        return sweep(self.graph.start.ravel(), self.graph.end.ravel(), place)

    @cached_property
    def max_depth(self) -> int:
        """Most nodes of a launch at once on one device."""
        return int(self._moments.depth.max(initial=0))

    @cached_property
    def beside_others(self) -> Ints:
        """How long each node ran beside others of its launch, over all launches."""
        within: Ints = self._moments.within(2).reshape(self.graph.start.shape).sum(axis=0)
        return within

    @cached_property
    def busy(self) -> int:
        """Time in which any node ran, over all launches, each device by itself."""
        return self._moments.total(1)

    @property
    def summed(self) -> int:
        """Durations of all nodes of all launches."""
        return int(self.duration.sum())

    @property
    def concurrency(self) -> float | None:
        """Mean number of nodes at once while any ran."""
        return self.summed / self.busy if self.busy else None

    def critical(self, lengths: Floats, pause: float = 0.0) -> float | None:
        """The longest path by these durations of the nodes; None where the order or a duration is unknown."""
        if self.dag is None or np.isnan(lengths).any():
            return None
        return float(self.dag.finished(lengths, pause).max())

    @property
    def possible_concurrency(self) -> float | None:
        """Mean number of nodes at once were each as fast as alone and started once those before it ended."""
        ideal = self.critical(self.solo)
        return float(self.solo.sum()) / ideal if ideal else None

    def serial_pairs(self) -> SerialPairs | None:
        """Nodes that ran one right after the other, by what orders them; None where edges are not known."""
        if self.dag is None:
            return None
        order = np.lexsort((self.graph.end, self.graph.start))
        one, other = order[:, :-1], order[:, 1:]
        ended = np.take_along_axis(self.graph.end, one, axis=1) <= np.take_along_axis(self.graph.start, other, axis=1)
        one, other = one[ended], other[ended]
        edge = self.dag.has_edge(one, other)
        path = self.dag.has_path(one, other)
        return SerialPairs(int(edge.sum()), int((path & ~edge).sum()), int((~path).sum()))


def solo_of_nodes(graph: Replays, solo: Floats) -> Floats:
    """Solo duration of each node by those of the kernel keys, nan where unknown; the median of a copy.

    A node that ran several launch configurations has the median of theirs.
    """
    duration = graph.end - graph.start
    alone = np.where(graph.key == COPY, duration, solo[graph.key] if solo.size else np.nan)
    return np.median(alone, axis=0)
