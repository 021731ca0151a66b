"""Nodes in an order in which every edge leads onward, those of a child graph side by side."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import product

from tracekit.graph.dag import Dag


def child_graphs(graphs: Sequence[int], dag: Dag) -> tuple[list[int | None], int]:
    """The child graph of each node, None for those of the outermost, and how many child graphs lose their frame.

    ``graphs`` numbers the graph that holds each node, 0 the outermost. A child graph is kept where all that enters it
    leads to all its first nodes, and all that leaves it comes from all its last ones: then one node that stands for
    it orders the same. Child graphs that hold others do not, and are put in place.
    """
    members: dict[int, set[int]] = {}
    for node, graph in enumerate(graphs):
        if graph:
            members.setdefault(graph, set()).add(node)
    edges = set(map(tuple, dag.edges.tolist()))
    kept = {graph for graph, inside in members.items() if _is_closed(inside, edges)}
    return [graph if graph in kept else None for graph in graphs], len(members) - len(kept)


def _is_closed(inside: set[int], edges: set[tuple[int, ...]]) -> bool:
    within = {edge for edge in edges if edge[0] in inside and edge[1] in inside}
    first = inside - {edge[1] for edge in within}
    last = inside - {edge[0] for edge in within}
    entering = {edge for edge in edges if edge[0] not in inside and edge[1] in inside}
    leaving = {edge for edge in edges if edge[0] in inside and edge[1] not in inside}
    return entering == set(product({edge[0] for edge in entering}, first)) and leaving == set(
        product(last, {edge[1] for edge in leaving})
    )


def arranged(dag: Dag, starts: Sequence[float], children: Sequence[int | None]) -> list[int]:
    """The nodes: of those that may come next always the one with the earliest start, a child graph in one piece."""
    unit = [node if child is None else dag.size + child for node, child in enumerate(children)]
    members: dict[int, list[int]] = {}
    for node in dag.order:
        members.setdefault(unit[node], []).append(node)
    awaited = dict.fromkeys(members, 0)
    after: dict[int, set[int]] = {each: set() for each in members}
    for one, other in dag.edges.tolist():
        if unit[one] != unit[other] and unit[other] not in after[unit[one]]:
            after[unit[one]].add(unit[other])
            awaited[unit[other]] += 1
    first = {each: (min(starts[node] for node in nodes), min(nodes)) for each, nodes in members.items()}
    ready = [(first[each], each) for each, count in awaited.items() if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        each = heappop(ready)[1]
        order += members[each]
        for other in after[each]:
            awaited[other] -= 1
            if not awaited[other]:
                heappush(ready, (first[other], other))
    return order
