"""The order of a graph's nodes as far as its replays show it."""

import numpy as np

from tracekit.graph.dag import Dag
from tracekit.intervals import Ints

MOST_NODES = 4000
"""Nodes whose order is inferred: time and memory grow with the square of their number and more."""

_CELLS = 1 << 22
"""Pairs of nodes times replays that are looked at together."""


def interval_order(start: Ints, end: Ints) -> Dag:
    """Which nodes come before which: u before v where u ended by the time v started in every replay.

    ``start`` and ``end`` hold a row for each replay and a column for each node. That of one replay is an interval
    order (Fishburn 1970); several may only share a part. The edges are its transitive reduction: those that no
    path of others stands for. Every edge of the graph holds in every replay, so no order of the graph is missed,
    but nodes that only happened to run in turn are ordered too.
    """
    replays, size = start.shape
    before = np.ones((size, size), np.bool_)
    step = max(1, _CELLS // (size * size or 1))
    for at in range(0, replays, step):
        ends, starts = end[at : at + step, :, None], start[at : at + step, None, :]
        before &= (ends <= starts).all(axis=0)
    # Two nodes of no length at one moment each end by the other's start: neither is first.
    before &= ~before.T
    # The diagonal is false by now. Sums of fewer than 2^24 ones are exact.
    steps = before.astype(np.float32)
    return Dag.of(size, np.argwhere(before & (steps @ steps == 0)))
