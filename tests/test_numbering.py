"""Numbering rows, order statistics of groups, and finding launch calls: each against a slow reading of its words."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.analysis.statistics.grouped import Grouped
from tracekit.numbering import numbered
from tracekit.trace.launches import launch_calls

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUE = st.none() | st.integers(-3, 3) | st.sampled_from([2**40, -(2**40), 2**22, 2**31]) | INT64


def rows_of(value: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[tuple[int | None, ...]]]:
    """Rows of one to four columns."""
    return st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[value] * width), min_size=1, max_size=40))


@given(rows_of(VALUE))
def test_equal_rows_have_one_number_and_numbers_follow_the_order_of_rows_with_null_last(
    rows: list[tuple[int | None, ...]],
) -> None:
    columns = [pl.Series(values, dtype=pl.Int64) for values in zip(*rows, strict=True)]
    numbers = numbered(columns)
    different = sorted(set(rows), key=lambda row: [(value is None, value or 0) for value in row])
    assert numbers.of_rows.tolist() == [different.index(row) for row in rows]
    assert numbers.count == len(different)
    assert numbers.first().tolist() == [rows.index(row) for row in different]


def test_no_rows_have_no_numbers() -> None:
    numbers = numbered([pl.Series([], dtype=pl.Int64)])
    assert (numbers.of_rows.size, numbers.count, numbers.first().size) == (0, 0, 0)


def test_more_different_rows_than_a_table_holds_are_numbered_in_order() -> None:
    random = np.random.default_rng(1)
    values = [random.integers(0, size, 5000) for size in (3000, 5000, 2**40)]
    numbers = numbered([pl.Series(each) for each in values])
    rows = list(zip(*(each.tolist() for each in values), strict=True))
    place = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert numbers.of_rows.tolist() == [place[row] for row in rows]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20) | st.integers(0, 2**62)), max_size=60),
    st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.95, 1.0]),
)
def test_sums_extremes_and_quantiles_are_those_of_each_group(rows: list[tuple[int, int]], share: float) -> None:
    of = Grouped.of(*(pl.Series([row[i] for row in rows], dtype=pl.Int64) for i in (0, 1)))
    groups = {group: [value for each, value in rows if each == group] for group in sorted({row[0] for row in rows})}
    assert of.group.tolist() == list(groups)
    assert of.count.tolist() == [len(values) for values in groups.values()]
    assert of.least().tolist() == [min(values) for values in groups.values()]
    assert of.most().tolist() == [max(values) for values in groups.values()]
    assert of.quantile(share) == pytest.approx([np.quantile(values, share) for values in groups.values()], rel=1e-9)
    if all(sum(values) < 2**63 for values in groups.values()):
        assert of.total().tolist() == [sum(values) for values in groups.values()]


ID = st.none() | st.integers(0, 4)
CALL = st.tuples(ID, ID, st.integers(0, 9))


@given(st.lists(CALL, max_size=12), st.lists(st.tuples(ID, ID), max_size=12))
def test_the_launch_of_work_is_the_earliest_call_of_its_process_and_correlation_id(
    calls: list[tuple[int | None, int | None, int]], work: list[tuple[int | None, int | None]]
) -> None:
    kind = pl.Int64
    call_frame = pl.DataFrame(calls, schema={"process": kind, "correlation": kind, "start": kind}, orient="row")
    work_frame = pl.DataFrame(work, schema={"process": kind, "correlation": kind}, orient="row")
    found = launch_calls(work_frame, call_frame).to_list()
    for key, row in zip(work, found, strict=True):
        own = [start for process, correlation, start in calls if (process, correlation) == key]
        assert (row is None) == (None in key or not own)
        if row is not None:
            assert calls[row] == (*key, min(own))
