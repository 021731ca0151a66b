"""The order that replays show, against two loops over all pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.graph.interval_order import interval_order

Replay = list[tuple[int, int]]


@st.composite
def replays(draw: st.DrawFn) -> list[Replay]:
    """Launches of one graph: of few moments, so that nodes touch, tie and have no length."""
    size = draw(st.integers(1, 7))
    node = st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda at: (at[0], at[0] + at[1]))
    return draw(st.lists(st.lists(node, min_size=size, max_size=size), min_size=1, max_size=4))


def before(launches: list[Replay], one: int, other: int) -> bool:
    return all(launch[one][1] <= launch[other][0] for launch in launches)


def inferred(launches: list[Replay]) -> set[tuple[int, int]]:
    start, end = np.array(launches, np.int64).transpose(2, 0, 1)
    return {(one, other) for one, other in interval_order(start, end).edges.tolist()}


@settings(deadline=None)
@given(replays())
def test_edges_are_the_pairs_in_order_in_every_replay_that_no_third_node_explains(launches: list[Replay]) -> None:
    nodes = range(len(launches[0]))
    ordered = {
        (one, other)
        for one in nodes
        for other in nodes
        if before(launches, one, other) and not before(launches, other, one)
    }
    explained = {(one, last) for one, other in ordered for first, last in ordered if other == first}
    assert inferred(launches) == ordered - explained


def test_nodes_that_overlap_or_change_places_once_are_not_ordered() -> None:
    in_turn = [(0, 10), (10, 20), (20, 30)]
    assert inferred([in_turn]) == {(0, 1), (1, 2)}
    assert inferred([in_turn, [(0, 10), (9, 20), (20, 30)]]) == {(0, 2), (1, 2)}
    assert inferred([in_turn, [(10, 20), (0, 10), (20, 30)]]) == {(0, 2), (1, 2)}


def test_many_replays_are_looked_at_in_parts_as_if_at_once() -> None:
    size, count = 300, 100
    start = np.tile(np.arange(size) * 10, (count, 1))
    end = start + 10
    start[-1, 5] -= 1
    assert interval_order(start, end).width == 2
