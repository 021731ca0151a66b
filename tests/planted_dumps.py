"""Dumps of the graphs planted in the sample traces, with the edges that the plan gives them."""

from pathlib import Path

from dot_dumps import plain_dump
from sample_models import MODELS
from sample_plan import Graph, Group, Train, kernels_of

Edge = tuple[int, int]


def planted_edges(graph: Graph) -> list[Edge]:
    """Each group waits for all of the one before; what a group runs at once has no order."""
    edges: list[Edge] = []
    first, ends = 0, list[int]()
    for group in graph:
        starts, last = _ends(group, first)
        edges += [(one, other) for one in ends for other in starts]
        if isinstance(group, Train):
            edges += [(node, node + 1) for node in range(first + 1, first + group.count)]
        first, ends = first + len(group.kernels), last
    return edges


def _ends(group: Group, first: int) -> tuple[list[int], list[int]]:
    """The nodes of a group that wait for none of it, and those that none of it waits for."""
    if isinstance(group, Train):
        return [first, first + 1], [first, first + group.count]
    nodes = list(range(first, first + len(group.kernels)))
    return nodes, nodes


def planted_dump(graph: Graph) -> str:
    """The graph as CUDA would dump it."""
    return plain_dump([kernel.mangled for kernel in kernels_of(graph)], planted_edges(graph))


def write_dumps(model: str, folder: Path) -> Path:
    """One dump for each different graph of a model, numbered as a framework does."""
    graphs = [*MODELS[model].prefill, *MODELS[model].decode]
    for number, text in enumerate(dict.fromkeys(map(planted_dump, graphs))):
        (folder / f"graph_{number + 1}.dot").write_text(text)
    return folder
