"""What a graph's nodes are, and which edges order them."""

from typing import Literal, NamedTuple

from tracekit.graph.dag import Dag

Kind = Literal["kernel", "memcpy", "memset", "host", "event", "empty", "child", "other"]

RECORDED: frozenset[Kind] = frozenset({"kernel", "memcpy", "memset"})
"""Nodes that leave rows in a trace; the others do nothing on the GPU that is recorded."""

Size = tuple[int, int, int]


class Node(NamedTuple):
    """A node. ``name`` is a kernel's; launch figures are None where the dump has none.

    ``graph`` numbers the graph that holds the node: 0 for the outermost, then child graphs as they are met.
    """

    kind: Kind
    name: str = ""
    grid: Size | None = None
    block: Size | None = None
    smem: int | None = None
    graph: int = 0


class Shape(NamedTuple):
    """A graph's nodes, in the order of their creation, and their edges; child graphs stand in place."""

    nodes: tuple[Node, ...]
    dag: Dag

    def recorded(self, *, copies: bool, in_place: bool) -> "Shape":
        """The nodes that leave rows in a trace; paths through the others become edges."""
        kept = self.recorded_nodes(copies=copies, in_place=in_place)
        return Shape(tuple(self.nodes[i] for i in kept), self.dag.among(kept))

    def recorded_nodes(self, *, copies: bool, in_place: bool) -> list[int]:
        """The nodes that leave rows in a trace, in the order of its node ids. Without ``copies`` kernels alone.

        Unless ``in_place``, child graphs follow the graph that holds them.
        """
        kept = [i for i, node in enumerate(self.nodes) if node.kind == "kernel" or (copies and node.kind in RECORDED)]
        if not in_place:
            kept.sort(key=lambda i: self.nodes[i].graph)
        return kept
