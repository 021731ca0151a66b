"""Width, reachability and paths of random graphs, against definitions spelt out."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.graph.dag import Dag
from tracekit.graph.outline import outline

Edge = tuple[int, int]


@st.composite
def dags(draw: st.DrawFn, most: int = 9) -> tuple[int, list[Edge]]:
    """Edges lead along a hidden order of the nodes, so that none of them is numbered by it."""
    size = draw(st.integers(1, most))
    order = draw(st.permutations(range(size)))
    pairs = list(combinations(range(size), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=2 * size) if pairs else st.just([]))
    return size, [(order[one], order[other]) for one, other in chosen]


def paths(size: int, edges: list[Edge]) -> set[Edge]:
    """All pairs that a path joins."""
    found = set(edges)
    while True:
        longer = {(one, last) for one, other in found for start, last in found if other == start} | found
        if longer == found:
            return found
        found = longer


def test_a_diamond_is_two_wide_and_three_long() -> None:
    dag = Dag.of(4, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 1)])
    assert (len(dag.edges), dag.width, dag.levels.tolist()) == (4, 2, [0, 1, 1, 2])
    assert dag.finished(np.array([1.0, 5.0, 2.0, 1.0]), pause=0.5).max() == 8.0


@settings(deadline=None)
@given(dags())
def test_width_is_the_largest_set_of_nodes_without_a_path_between_any(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    joined = paths(size, edges)
    apart = [
        len(chosen)
        for count in range(1, size + 1)
        for chosen in combinations(range(size), count)
        if not any((one, other) in joined or (other, one) in joined for one, other in combinations(chosen, 2))
    ]
    assert Dag.of(size, edges).width == max(apart)


@settings(deadline=None)
@given(dags(20))
def test_paths_and_edges_are_found_between_the_nodes_they_join(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    dag = Dag.of(size, edges)
    one, other = (each.ravel() for each in np.indices((size, size)))
    joined = dag.has_path(one, other)
    assert {
        pair for pair, path in zip(zip(one.tolist(), other.tolist(), strict=True), joined, strict=True) if path
    } == paths(size, edges)
    direct = dag.has_edge(one, other)
    assert {(int(a), int(b)) for a, b, edge in zip(one, other, direct, strict=True) if edge} == set(edges)


@settings(deadline=None)
@given(dags(), st.lists(st.integers(0, 50), min_size=9, max_size=9), st.integers(0, 5))
def test_a_node_starts_when_the_last_it_waits_for_has_ended(
    graph: tuple[int, list[Edge]], lengths: list[int], pause: int
) -> None:
    size, edges = graph

    def end(node: int) -> int:
        return lengths[node] + max((end(one) + pause for one, other in edges if other == node), default=0)

    finished = Dag.of(size, edges).finished(np.array(lengths[:size], np.float64), pause)
    assert finished.tolist() == [end(node) for node in range(size)]


@settings(deadline=None)
@given(dags(), st.data())
def test_left_out_nodes_keep_ordering_those_that_stay(graph: tuple[int, list[Edge]], data: st.DataObject) -> None:
    size, edges = graph
    kept = data.draw(st.lists(st.sampled_from(range(size)), unique=True))
    left = Dag.of(size, edges).among(kept)
    found = paths(len(kept), [(one, other) for one, other in left.edges.tolist()])
    assert {(kept[one], kept[other]) for one, other in found} == {
        (one, other) for one, other in paths(size, edges) if one in kept and other in kept
    }


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 1), (1, 0)], [(0, 1), (1, 2), (2, 1)]])
def test_edges_in_a_circle_are_refused(edges: list[Edge]) -> None:
    with pytest.raises(ValueError, match="circle"):
        Dag.of(3, edges)


def test_a_chain_of_ten_thousand_is_one_wide_and_ten_thousand_apart_are_as_wide() -> None:
    chain = Dag.of(10_000, [(i, i + 1) for i in range(9_999)])
    assert (chain.width, int(chain.levels.max())) == (1, 9_999)
    assert chain.has_path(np.array([0, 9_999]), np.array([9_999, 0])).tolist() == [True, False]
    assert Dag.of(10_000, []).width == 10_000


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=40))
def test_an_outline_told_in_full_is_the_sequence(items: list[int]) -> None:
    told = [item for run in outline(items) for item in items[run.first : run.first + run.length] * run.times]
    assert told == items


def test_an_outline_tells_what_repeats_once() -> None:
    assert outline("abcdbcdbcdee") == [(0, 1, 1), (1, 3, 3), (10, 1, 2)]
