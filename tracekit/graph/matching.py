"""Which dump shows which of a trace's graphs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tracekit.graph.dag import Dag
from tracekit.graph.dumps import Dump
from tracekit.graph.replays import COPY, Replays
from tracekit.graph.shape import Node

KernelName = tuple[str | None, str]
"""Mangled name, where it is recorded, and short name of a kernel key."""


class Found(NamedTuple):
    """The edges between a graph's nodes as a dump shows them, its file, and which of its nodes those are.

    ``fitting`` counts the ways in which dumps fit that do not agree on the edges; ``dag`` is None for several.
    """

    dag: Dag | None
    file: str | None
    nodes: tuple[int, ...]
    fitting: int


class _Candidate(NamedTuple):
    nodes: tuple[Node, ...]
    dag: Dag
    file: str
    numbers: tuple[int, ...]


def match_dumps(graphs: Sequence[Replays], names: Sequence[KernelName], dumps: Sequence[Dump]) -> list[Found | None]:
    """For each graph the dump whose kernels have the same names in the same order; None where there is none.

    ``names`` are those of the kernel keys. An update puts other kernels into an executable but cannot change its
    nodes' number and edges: a graph that no dump fits by name has those of a graph that shares an executable.
    """
    by_size: dict[int, list[_Candidate]] = {}
    for candidate in _candidates(dumps):
        by_size.setdefault(len(candidate.nodes), []).append(candidate)
    fitting = [
        [candidate for candidate in by_size.get(graph.size, []) if _fits(candidate.nodes, _names_of(graph, names))]
        for graph in graphs
    ]
    of_executable: dict[tuple[int | None, int, int], list[_Candidate]] = {}
    for graph, candidates in zip(graphs, fitting, strict=True):
        for place in _places(graph):
            of_executable.setdefault(place, []).extend(candidates)
    return [
        _agreed(candidates or [found for place in _places(graph) for found in of_executable[place]])
        for graph, candidates in zip(graphs, fitting, strict=True)
    ]


def _candidates(dumps: Iterable[Dump]) -> Iterator[_Candidate]:
    """A trace may lack copies, and number the nodes of child graphs in place or after those of the outer one."""
    for dump in dumps:
        for copies in (True, False):
            for in_place in (True, False):
                nodes, dag = dump.shape.recorded(copies=copies, in_place=in_place)
                numbers = dump.shape.recorded_nodes(copies=copies, in_place=in_place)
                yield _Candidate(nodes, dag, dump.file, tuple(numbers))


def _names_of(graph: Replays, names: Sequence[KernelName]) -> list[KernelName | None]:
    """The names of its nodes; None for a copy."""
    return [None if key == COPY else names[key] for key in graph.key[0].tolist()]


def _places(graph: Replays) -> set[tuple[int | None, int, int]]:
    return {(graph.process, executable, graph.size) for executable in graph.executable.tolist()}


def _fits(nodes: Sequence[Node], names: Sequence[KernelName | None]) -> bool:
    return all(_same(node, name) for node, name in zip(nodes, names, strict=True))


def _same(node: Node, name: KernelName | None) -> bool:
    if name is None or node.kind != "kernel":
        return name is None and node.kind != "kernel"
    mangled, short = name
    if mangled is not None:
        return node.name == mangled
    # A mangled name holds the base name after its length.
    return node.name == short or f"{len(short)}{short}" in node.name


def _agreed(candidates: Sequence[_Candidate]) -> Found | None:
    different: dict[bytes, _Candidate] = {}
    for candidate in candidates:
        different.setdefault(np.ascontiguousarray(candidate.dag.edges).tobytes(), candidate)
    if not different:
        return None
    first = next(iter(different.values()))
    if len(different) > 1:
        return Found(None, None, (), len(different))
    return Found(first.dag, first.file, first.numbers, 1)
