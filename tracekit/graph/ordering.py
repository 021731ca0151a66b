"""What orders the nodes of a trace's graphs: the edges of a dump, else what their replays show."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tracekit.graph.dag import Dag
from tracekit.graph.dumps import Dump
from tracekit.graph.interval_order import MOST_NODES, interval_order
from tracekit.graph.matching import Found, KernelName, match_dumps
from tracekit.graph.replays import Replays

Source = Literal["dump", "inferred", "unknown"]


class Ordered(NamedTuple):
    """The order of a graph's nodes, None where it is unknown; ``note`` says what to know of it.

    Where it is from a dump, ``file`` is the dump's and ``dump_nodes`` which of the dump's nodes each node is.
    """

    dag: Dag | None
    source: Source
    file: str | None
    note: str | None
    dump_nodes: tuple[int, ...] = ()


def order_graphs(graphs: Sequence[Replays], names: Sequence[KernelName], dumps: Sequence[Dump]) -> list[Ordered]:
    """The order of each graph's nodes; ``names`` are those of the kernel keys."""
    return [_ordered(graph, found) for graph, found in zip(graphs, match_dumps(graphs, names, dumps), strict=True)]


def _ordered(graph: Replays, found: Found | None) -> Ordered:
    if found and found.dag:
        broken = broken_edges(graph, found.dag)
        note = f"{broken} of the dump's edges did not hold in every replay" if broken else None
        return Ordered(found.dag, "dump", found.file, note, found.nodes)
    note = f"dumps fit it in {found.fitting} ways that differ in their edges: none is used" if found else None
    if graph.size > MOST_NODES:
        return Ordered(None, "unknown", None, note or f"more than {MOST_NODES} nodes: give a dump of it (--dot)")
    return Ordered(interval_order(graph.start, graph.end), "inferred", None, note)


def broken_edges(graph: Replays, dag: Dag) -> int:
    """Edges whose second node started before the first had ended, in any replay."""
    one, other = dag.edges.T
    return int((graph.start[:, other] < graph.end[:, one]).any(axis=0).sum())
