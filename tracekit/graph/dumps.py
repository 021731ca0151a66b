"""DOT files that ``cudaGraphDebugDotPrint`` wrote, plain (flags 0) or verbose, as shapes."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from tracekit.errors import UnusableInput
from tracekit.graph.dag import Dag
from tracekit.graph.dot_syntax import Cluster, DotError, parse
from tracekit.graph.shape import Kind, Node, Shape, Size

MOST_BYTES = 64 << 20
"""A dump of 100,000 verbose nodes takes about this."""

MOST_NODES, MOST_EDGES, DEEPEST = 100_000, 1_000_000, 50
"""Nodes and edges with child graphs in place, and how deep those lie in each other."""

_NODE_ID = re.compile(r"graph_\d+_node_\d+")
_GRAPH_ID = re.compile(r"graph_\d+")
_SIZE = r"\d+|\{\d+(?:,\d+){0,2}\}"
_LAUNCH = re.compile(rf"(?P<name>.*)<<<(?P<grid>{_SIZE}),(?P<block>{_SIZE}),(?P<smem>\d+)>>>", re.DOTALL)
_KINDS: dict[str, Kind] = {
    "KERNEL": "kernel", "MEMCPY": "memcpy", "MEMSET": "memset", "HOST": "host", "EMPTY": "empty",
    "EVENT_RECORD": "event", "EVENT_WAIT": "event", "WAIT_EVENT": "event",
}  # fmt: skip
"""The word that names a node's kind, in both forms."""


class Dump(NamedTuple):
    """A dump and the file it is from."""

    file: str
    shape: Shape


def read_dumps(files: list[str]) -> list[Dump]:
    """The dumps in these files. Raises UnusableInput."""
    return [Dump(file, read_dump(Path(file))) for file in files]


def dump_files(paths: list[str]) -> list[str]:
    """Files as they are, and of each folder its ``.dot`` files by their numbers. Raises UnusableInput."""
    return [str(file) for name in paths for file in _files(Path(name))]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.dot"), key=lambda file: (_last_number(file), file.name))
    if not found:
        raise UnusableInput(f"{path}: holds no .dot files: name the folder that the graphs were dumped to")
    return found


def _last_number(file: Path) -> int:
    digits = re.findall(r"\d+", file.stem)
    return int(digits[-1]) if digits else 0


def read_dump(file: Path) -> Shape:
    """The shape of one dump. Raises UnusableInput."""
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise UnusableInput(f"{file}: {size >> 20} MiB is too big: a dump of one graph has at most 64 MiB")
        return shape_of(file.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise UnusableInput(f"{file}: cannot be read ({error.strerror}): check the path") from error
    except DotError as error:
        raise UnusableInput(f"{file}: no usable DOT dump: {error}: dump the graph again") from error


def shape_of(text: str) -> Shape:
    """The shape of a dump's outermost graph, its child graphs in place. Raises DotError."""
    clusters = [cluster for cluster in parse(text) if cluster.nodes or cluster.label]
    if not clusters or not all(_NODE_ID.fullmatch(node) for cluster in clusters for node in cluster.nodes):
        raise DotError("its nodes are not named as cudaGraphDebugDotPrint names them (graph_1_node_0)")
    placed = _Placed({cluster.label: cluster for cluster in reversed(clusters)})
    placed.put(clusters[0].label, ())
    try:
        return Shape(tuple(placed.nodes), Dag.of(len(placed.nodes), placed.edges))
    except ValueError as error:
        raise DotError(str(error)) from error


class _Placed:
    """Nodes and edges as graphs are put in place, each child graph where its node stands."""

    def __init__(self, clusters: dict[str, Cluster]) -> None:
        self._clusters = clusters
        self._graphs = 0
        self.nodes: list[Node] = []
        self.edges: list[tuple[int, int]] = []

    def put(self, label: str, outer: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Place one graph; the nodes that wait for none of its own, and those that none of its own waits for."""
        if label not in self._clusters:
            raise DotError(f"child graph {label} is not in it")
        if label in outer or len(outer) > DEEPEST:
            raise DotError(f"child graph {label} lies inside of itself or too deep")
        cluster = self._clusters[label]
        graph, self._graphs = self._graphs, self._graphs + 1
        ends: dict[str, tuple[list[int], list[int]]] = {}
        for name, attributes in cluster.nodes.items():
            node, child = _node(attributes, graph)
            inside = self.put(child, (*outer, label)) if child else ([], [])
            # A child graph of nothing still orders what is before and after it.
            ends[name] = inside if inside[0] else self._add(node)
        for one, other in cluster.edges:
            if one not in ends or other not in ends:
                raise DotError(f"an edge names {one if one not in ends else other}, which is no node of {label}")
            self.edges += product(ends[one][1], ends[other][0])
            if len(self.edges) > MOST_EDGES:
                raise DotError(f"it has more than {MOST_EDGES} edges")
        followed, waiting = ({edge[i] for edge in cluster.edges} for i in (0, 1))
        return (
            [node for name, (first, _) in ends.items() if name not in waiting for node in first],
            [node for name, (_, last) in ends.items() if name not in followed for node in last],
        )

    def _add(self, node: Node) -> tuple[list[int], list[int]]:
        if len(self.nodes) == MOST_NODES:
            raise DotError(f"it has more than {MOST_NODES} nodes")
        self.nodes.append(node)
        return [len(self.nodes) - 1], [len(self.nodes) - 1]


def _node(attributes: dict[str, str], graph: int) -> tuple[Node, str | None]:
    """A node by its label, and the child graph it stands for if it does."""
    label = attributes.get("label", "")
    if attributes.get("shape") == "record":
        fields = list(_record_fields(label))
        kind = _KINDS.get(fields[0], "other") if fields else "other"
        if kind == "kernel":
            return _launched(fields, graph), None
    else:
        # The first line is the node's number, the others what it is.
        fields = [line for line in re.split(r"\n|\\[nlr]", label)[1:] if line]
        if attributes.get("shape") == "octagon":
            return Node("kernel", "".join(fields), graph=graph), None
        kind = _KINDS.get(fields[0].split()[0], "other") if fields and fields[0].strip() else "other"
    child = next((field for field in fields if _GRAPH_ID.fullmatch(field)), None) if kind == "other" else None
    return Node("child" if child else kind, graph=graph), child


def _record_fields(label: str) -> Iterator[str]:
    """The texts of a record label, which braces and bars part."""
    for field in re.split(r"(?<!\\)[{}|]", label):
        text = re.sub(r"\\(.)", r"\1", field, flags=re.DOTALL).strip()
        if text:
            yield text


def _launched(fields: list[str], graph: int) -> Node:
    """A kernel by its name and launch configuration."""
    for field in fields:
        if found := _LAUNCH.fullmatch(field):
            size = _size(found["grid"]), _size(found["block"])
            return Node("kernel", found["name"], *size, int(found["smem"]), graph)
    raise DotError("a kernel's label does not say its name and launch configuration")


def _size(text: str) -> Size:
    x, y, z = [*map(int, text.strip("{}").split(",")), 1, 1][:3]
    return x, y, z
