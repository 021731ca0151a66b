"""Overlap arithmetic on random intervals, against the slow oracle and against its own identities."""

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Run
from random_runs import (
    Solo,
    devices_of,
    durations,
    exact,
    found_in,
    in_one_file,
    kernel_frame,
    known,
    run_sets,
    solo_frame,
)

from tracekit.analysis.kernels.solo import alone, of_instances
from tracekit.analysis.overlap.episodes import total
from tracekit.analysis.overlap.pairs import kernel_pairs
from tracekit.analysis.overlap.streams import stream_lines, stream_pairs, streams_by_device
from tracekit.analysis.results import Overlap
from tracekit.analysis.side_by_side import overlaps_of
from tracekit.analysis.wanted import Selection
from tracekit.intervals import overlap_by_device, sweep
from tracekit.trace.source import open_trace

examples = settings(max_examples=150, deadline=None)


@examples
@given(run_sets())
def test_each_instance_is_overlapped_while_another_runs_beside_it_on_its_device(runs: list[Run]) -> None:
    overlapped = overlap_by_device(kernel_frame(runs))[0].to_list()
    expected = {
        id(run): time
        for of_device in oracle.by_device(runs).values()
        for run, time in zip(of_device, oracle.overlapped_each(of_device), strict=True)
    }
    assert overlapped == [expected[id(run)] for run in runs]


@examples
@given(run_sets(), st.lists(st.integers(0, 5), min_size=16, max_size=16))
def test_groups_of_one_sweep_never_meet(runs: list[Run], groups: list[int]) -> None:
    group = groups[: len(runs)]
    start, end = (np.array([getattr(run, side) for run in runs], np.int64) for side in ("start", "end"))
    beside = sweep(start, end, np.array(group, np.int64)).within(2).tolist()
    expected = [0] * len(runs)
    for each in set(group):
        members = [i for i, number in enumerate(group) if number == each]
        for i, time in zip(members, oracle.overlapped_each([runs[i] for i in members]), strict=True):
            expected[i] = time
    assert beside == expected


@examples
@given(run_sets(), run_sets(6))
def test_device_time_depths_and_kinds_of_overlap(kernels: list[Run], copies: list[Run]) -> None:
    of_kernels, of_copies = oracle.by_device(kernels), oracle.by_device(copies)
    lines = devices_of(kernels, copies)
    assert [line.device for line in lines] == sorted({*of_kernels, *of_copies})
    for line in lines:
        mine = of_kernels.get(line.device, [])
        depths = oracle.time_by_depth(mine)
        time = oracle.device_time(mine, of_copies.get(line.device, []))
        across, branches, same = oracle.kinds(mine)
        assert line.kernel_rows == len(mine)
        assert line.depth_ns == {str(depth): length for depth, length in depths.items()}
        assert line.max_depth == max(depths, default=0)
        assert line.busy_ns == sum(depths.values())
        assert line.overlapped_ns == sum(length for depth, length in depths.items() if depth >= 2)
        assert line.stream_overlap_ns == across
        assert line.graph_branch_overlap_ns == branches
        assert line.same_stream_overlap_ns == same
        assert (line.span_ns, line.idle_ns, line.copy_ns) == (time.span, time.idle, time.copy)
        assert [(gap.count, gap.total_ns) for gap in known(line.gaps)] == time.gaps


@examples
@given(run_sets(), run_sets(6))
def test_device_times_add_up(kernels: list[Run], copies: list[Run]) -> None:
    for line in devices_of(kernels, copies):
        durations = sum(run.duration for run in kernels if run.device == line.device)
        assert line.summed_ns == durations
        assert sum(int(depth) * time for depth, time in known(line.depth_ns).items()) == durations
        parts = (line.stream_overlap_ns, line.graph_branch_overlap_ns, line.same_stream_overlap_ns)
        assert line.overlapped_ns == sum(map(known, parts))
        assert line.idle_ns == sum(gap.total_ns for gap in known(line.gaps))
        active, busy = known(line.span_ns) - known(line.idle_ns), known(line.busy_ns)
        assert max(busy, line.copy_ns) <= active <= busy + line.copy_ns


@examples
@given(run_sets())
def test_streams_and_pairs_of_streams(runs: list[Run]) -> None:
    devices = streams_by_device(kernel_frame(runs))
    lines = {
        (line.device, (line.process, line.stream)): (line.kernel_rows, line.busy_ns, line.overlapped_ns)
        for line in stream_lines(devices)
    }
    pairs = {
        (pair.device, (pair.process_a, pair.a), (pair.process_b, pair.b)): pair.overlap_ns
        for pair in stream_pairs(devices)
    }
    parts = oracle.by_device(runs).items()
    assert lines == {
        (device, owner): times for device, mine in parts for owner, times in oracle.stream_times(mine).items()
    }
    assert pairs == {
        (device, *pair): time for device, mine in parts for pair, time in oracle.stream_pairs(mine).items()
    }


@examples
@given(run_sets(), durations)
def test_pairs_of_kernels(runs: list[Run], solo: Solo) -> None:
    frame = kernel_frame(runs)
    rows = kernel_pairs(frame, frame["key"], of_instances(frame["key"], solo_frame(solo)))
    expected = oracle.kernel_pairs(runs, solo)
    assert rows.height == len(expected)
    assert rows["overlap_ns"].is_sorted(descending=True)
    for a, b, overlap, instances, stretch_a, stretch_b in rows.iter_rows():
        pair = expected[a, b]
        assert (overlap, instances) == (pair.overlap, pair.instances)
        assert (stretch_a, stretch_b) == (exact(pair.stretch_a), exact(pair.stretch_b))


@examples
@given(run_sets())
def test_solo_durations_come_from_instances_that_ran_alone(runs: list[Run]) -> None:
    frame = kernel_frame(runs)
    found = alone(frame, frame["key"], "here")
    expected = oracle.solo_durations(runs)
    assert set(found["group"]) == set(expected)
    for row in found.iter_rows(named=True):
        middle, low, high = expected[row["group"]]
        assert (row["solo"], row["solo_low"], row["solo_high"]) == (exact(middle), exact(low), exact(high))


@examples
@given(run_sets(), durations)
def test_episodes(runs: list[Run], solo: Solo) -> None:
    rows = found_in(runs, solo).episodes.sort("place", "start").to_dicts()
    expected = [
        (device, episode) for device, mine in oracle.by_device(runs).items() for episode in oracle.episodes(mine, solo)
    ]
    assert len(rows) == len(expected)
    for row, (device, episode) in zip(rows, expected, strict=True):
        assert (row["place"], row["start"], row["end"]) == (device, episode.start, episode.end)
        assert (row["wall"], row["members"]) == (episode.wall, episode.members)
        assert (row["known"], row["unknown"]) == (episode.known, episode.unknown)
        assert row["solo"] == exact(episode.solo)


@examples
@given(run_sets(), durations)
def test_sums_over_episodes(runs: list[Run], solo: Solo) -> None:
    answer = total(found_in(runs, solo).episodes, solo_frame(solo))
    expected = [episode for mine in oracle.by_device(runs).values() for episode in oracle.episodes(mine, solo)]
    covered = [episode for episode in expected if episode.known]
    wall, covered_wall = (sum(episode.wall for episode in each) for each in (expected, covered))
    assert (answer.count, answer.wall_ns) == (len(expected), wall)
    assert (answer.covered_count, answer.covered_wall_ns) == (len(covered), covered_wall)
    assert answer.coverage == (covered_wall / wall if wall else None)
    if not covered:
        assert answer.solo_ns is None and answer.gain_ns is None
    else:
        work = float(sum(episode.solo for episode in covered))
        assert answer.solo_ns == pytest.approx(work, rel=1e-9, abs=1)
        assert answer.gain_ns == pytest.approx(work - covered_wall, rel=1e-9, abs=1)
    known = float(sum(episode.solo for episode in expected))
    unknown = sum(episode.unknown for episode in expected)
    assert answer.bound_low_ns == pytest.approx(known - wall, rel=1e-9, abs=1)
    assert answer.bound_high_ns == pytest.approx(known + unknown - wall, rel=1e-9, abs=1)


@examples
@given(run_sets(), st.fixed_dictionaries(dict.fromkeys(range(4), st.integers(1, 10**6).map(Fraction))))
def test_gains_and_concurrency_explain_the_difference_to_solo_work(runs: list[Run], solo: Solo) -> None:
    """summed - sum(solo) = (W - S) + the integral of (depth - 1)+, over the instances involved; and the
    gains add up to sum(solo) - busy of those instances."""
    overlapped = overlap_by_device(kernel_frame(runs))[0].to_list()
    involved = [run for run, time in zip(runs, overlapped, strict=True) if time]
    answer = total(found_in(runs, solo).episodes, solo_frame(solo))
    lines = devices_of(involved, [])
    work = sum(solo[run.kernel] for run in involved)
    summed = sum(known(line.summed_ns) for line in lines)
    busy = sum(known(line.busy_ns) for line in lines)
    depths = [known(line.depth_ns) for line in lines]
    concurrent = sum((int(depth) - 1) * time for times in depths for depth, time in times.items())
    gain = answer.gain_ns or 0
    assert summed - work == pytest.approx(concurrent - gain, rel=1e-9, abs=1)
    assert gain == pytest.approx(float(work - busy), rel=1e-9, abs=1)


@settings(max_examples=40, deadline=None)
@given(runs=run_sets())
def test_a_whole_export_answers_the_same(tmp_path_factory: pytest.TempPathFactory, runs: list[Run]) -> None:
    # A start of zero is how a missing timestamp looks, so it is left out of a file on purpose.
    runs = [run for run in runs if run.start]
    path = in_one_file(runs, tmp_path_factory.mktemp("runs") / "runs.sqlite")
    with open_trace(path, cached=False) as trace:
        answer = overlaps_of(trace, None, Selection())
    parts = oracle.by_device(runs)
    quartiles = oracle.solo_durations(runs)
    solo, low, high = ({kernel: times[i] for kernel, times in quartiles.items()} for i in range(3))
    assert {line.device: line.depth_ns for line in answer.devices} == {
        device: {str(depth): time for depth, time in oracle.time_by_depth(mine).items()}
        for device, mine in parts.items()
    }
    expected = oracle.kernel_pairs(runs, solo)
    assert len(answer.kernel_pairs) == len(expected)
    for pair in answer.kernel_pairs:
        a, b = sorted(int(str(kernel.name)[1:]) for kernel in (pair.a, pair.b))
        assert (pair.overlap_ns, pair.instances) == expected[a, b][:2]
    found = [episode for mine in parts.values() for episode in oracle.episodes(mine, solo)]
    covered = [episode for episode in found if episode.known]
    wall = sum(episode.wall for episode in covered)
    assert (answer.episodes.count, answer.episodes.covered_count) == (len(found), len(covered))
    assert answer.episodes.wall_ns == sum(episode.wall for episode in found)
    gains = {"gain_ns": solo, "gain_low_ns": low, "gain_high_ns": high}
    for field, durations_taken in gains.items():
        every = [episode for mine in parts.values() for episode in oracle.episodes(mine, durations_taken)]
        work = float(sum(episode.solo for episode in every if episode.known))
        gain = pytest.approx(work - wall, rel=1e-9, abs=1)
        assert getattr(answer.episodes, field) == (gain if covered else None)


@settings(max_examples=30, deadline=None)
@given(runs=run_sets(), seed=st.integers(0, 1000))
def test_order_of_rows_means_nothing(tmp_path_factory: pytest.TempPathFactory, runs: list[Run], seed: int) -> None:
    path = tmp_path_factory.mktemp("order") / "runs.sqlite"

    def answer(shuffle: int | None) -> Overlap:
        with open_trace(in_one_file(runs, path, shuffle), cached=False) as trace:
            return overlaps_of(trace, None, Selection())

    assert answer(seed) == answer(None)


def test_a_kernel_of_no_length_neither_runs_nor_splits_an_episode() -> None:
    runs = [Run(0, 10, stream=1), Run(0, 10, stream=2), Run(5, 5, stream=3)]
    rows = found_in(runs, {0: Fraction(10)}).episodes
    assert rows.select("start", "end", "wall", "members").rows() == [(0, 10, 10, 2)]


def test_kernels_that_only_touch_do_not_overlap() -> None:
    (line,) = devices_of([Run(0, 10, stream=1), Run(10, 20, stream=2)], [])
    assert (line.busy_ns, line.overlapped_ns, line.max_depth, line.idle_ns) == (20, 0, 1, 0)


def test_an_episode_goes_on_while_its_members_change() -> None:
    runs = [Run(0, 10, stream=1), Run(5, 10, stream=2), Run(10, 20, stream=1), Run(10, 15, stream=2)]
    rows = found_in(runs, {0: Fraction(5)}).episodes
    assert rows.select("start", "end", "members").rows() == [(5, 15, 4)]


def test_two_at_once_beat_two_in_a_row_and_three_beat_three() -> None:
    """12.8 ms for two kernels of 7.4 ms gains, 21.4 ms for two of 7.6 ms loses, for three of them gains."""
    for wall, solo, count, gain in ((128, 74, 2, 20), (214, 76, 2, -62), (214, 76, 3, 14)):
        runs = [Run(0, wall, stream=stream) for stream in range(count)]
        assert total(found_in(runs, {0: Fraction(solo)}).episodes, solo_frame({})).gain_ns == gain


def test_the_one_percent_that_still_counts_as_alone() -> None:
    runs = [Run(0, 10_000, stream=1, kernel=0), Run(9_900, 10_300, stream=2, kernel=1)]
    frame = kernel_frame(runs)
    assert alone(frame, frame["key"], "here")["group"].to_list() == [0]
    longer = kernel_frame([runs[0], runs[1]._replace(start=9_899)])
    assert alone(longer, longer["key"], "here").is_empty()


def test_nothing_gives_nothing() -> None:
    assert devices_of([], []) == []
    assert total(found_in([], {}).episodes, solo_frame({})).count == 0


def test_without_recorded_streams_the_kind_of_overlap_is_not_told(tmp_path: Path) -> None:
    path = in_one_file([Run(1000, 1100, stream=1), Run(1050, 1150, stream=2)], tmp_path / "runs.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId")
    with open_trace(path, cached=False) as trace:
        (line,) = overlaps_of(trace, None, Selection()).devices
    assert line.overlapped_ns == 50
    kinds = (line.stream_overlap_ns, line.graph_branch_overlap_ns, line.same_stream_overlap_ns)
    assert kinds == (None, None, None)
