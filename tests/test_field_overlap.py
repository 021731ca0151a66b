"""Intervals that touch, coincide, have no length or lie inside their predecessor."""

from pathlib import Path

import pytest
from field_notation import MS, codes, diff_of, overlap_of, shown, summary_of
from nsys_export import Export

Row = tuple[int, int, int]
"""start, end, stream"""


def on_one_device(*rows: Row) -> Export:
    export = Export()
    for start, end, stream in rows:
        export.kernel(MS + start, MS + end, stream)
    return export


def test_full_overlap_uses_the_device_fully_and_not_twice(tmp_path: Path) -> None:
    answer = overlap_of(on_one_device((0, 100, 1), (0, 100, 2)), tmp_path)
    (device,) = answer.devices
    assert (device.summed_ns, device.busy_ns, device.overlapped_ns, device.span_ns) == (200, 100, 100, 100)
    assert (device.idle_ns, device.max_depth, device.depth_ns) == (0, 2, {"2": 100})
    assert device.stream_overlap_ns == 100
    assert [(pair.a, pair.b, pair.overlap_ns) for pair in answer.stream_pairs] == [(1, 2, 100)]
    assert (answer.episodes.count, answer.episodes.wall_ns) == (1, 100)


@pytest.mark.parametrize("streams", [(7, 7), (7, 8)])
def test_kernels_that_touch_neither_overlap_nor_leave_a_gap(tmp_path: Path, streams: tuple[int, int]) -> None:
    answer = overlap_of(on_one_device((10, 20, streams[0]), (20, 30, streams[1])), tmp_path)
    (device,) = answer.devices
    assert (device.busy_ns, device.idle_ns, device.overlapped_ns, device.max_depth) == (20, 0, 0, 1)
    assert device.gaps is not None
    assert sum(gap.count for gap in device.gaps) == 0
    assert (answer.stream_pairs, answer.kernel_pairs, answer.episodes.count) == ([], [], 0)


@pytest.mark.parametrize("pids", [(1, 1), (1, 2)])
def test_devices_do_not_overlap_each_other(tmp_path: Path, pids: tuple[int, int]) -> None:
    export = Export()
    for device, pid in enumerate(pids):
        export.kernel(MS, MS + 100, device=device, pid=pid)
    answer = overlap_of(export, tmp_path)
    assert [(each.busy_ns, each.overlapped_ns, each.span_ns) for each in answer.devices] == [(100, 0, 100)] * 2
    assert (answer.stream_pairs, answer.kernel_pairs, answer.episodes.count) == ([], [], 0)
    assert [row.overlapped_fraction for row in summary_of(export, tmp_path).kernels] == [0]


def test_processes_on_one_device_overlap_each_other_and_it_is_said(tmp_path: Path) -> None:
    export = Export()
    export.kernel(MS, MS + 100, pid=1)
    export.kernel(MS + 50, MS + 150, pid=2)
    answer = overlap_of(export, tmp_path)
    (device,) = answer.devices
    assert (device.overlapped_ns, device.stream_overlap_ns) == (50, 50)
    assert codes(answer)["processes_merged"] == 2


@pytest.mark.parametrize("stream", [7, 8])
@pytest.mark.parametrize("at", [50, 100, 200])
def test_a_row_of_no_length_overlaps_nothing_and_is_reported(tmp_path: Path, stream: int, at: int) -> None:
    answer = overlap_of(on_one_device((at, at, stream), (50, 200, 7)), tmp_path)
    (device,) = answer.devices
    assert (device.busy_ns, device.overlapped_ns, device.max_depth, device.kernel_rows) == (150, 0, 1, 2)
    assert codes(answer) == {"zero_length": 1}
    assert "1 kernel rows of no length" in shown(answer)


def test_overlap_within_a_stream_is_a_kind_of_its_own(tmp_path: Path) -> None:
    export = on_one_device((0, 100, 7), (80, 180, 7))
    answer = overlap_of(export, tmp_path)
    (device,) = answer.devices
    assert (device.same_stream_overlap_ns, device.stream_overlap_ns, device.overlapped_ns) == (20, 0, 20)
    assert answer.stream_pairs == []
    assert codes(answer)["same_stream_overlap"] == 1
    for each in (answer, summary_of(export, tmp_path), diff_of(export, export, tmp_path)):
        assert "start inside their predecessor" in shown(each)


def test_overlap_of_streams_is_not_taken_for_overlap_within_one(tmp_path: Path) -> None:
    answer = overlap_of(on_one_device((0, 100, 7), (80, 180, 8), (100, 120, 7)), tmp_path)
    (device,) = answer.devices
    assert (device.same_stream_overlap_ns, device.stream_overlap_ns) == (0, 40)
    assert "same_stream_overlap" not in codes(answer)


def test_branches_of_one_graph_on_one_stream_are_their_own_kind(tmp_path: Path) -> None:
    export = Export()
    correlation = export.launch(0, 100, "cudaGraphLaunch_v10000")
    for node in range(2):
        start = MS + node * 80
        export.kernel(start, start + 100, correlation=correlation, node=2 << 32 | node)
    (device,) = overlap_of(export, tmp_path).devices
    assert (device.graph_branch_overlap_ns, device.same_stream_overlap_ns) == (20, 0)


def durations(*values: int) -> Export:
    export = Export()
    for index, value in enumerate(values):
        at = MS + index * 100_000
        export.kernel(at + 10, at + 10 + value, correlation=export.launch(at, at + 5))
    return export


def test_a_cold_first_instance_does_not_move_the_median(tmp_path: Path) -> None:
    (row,) = summary_of(durations(27_000, 1, 1, 1, 1), tmp_path).kernels
    assert (row.count, row.median_ns, row.min_ns, row.max_ns) == (5, 1, 1, 27_000)


@pytest.mark.parametrize("values", [(27_000,), (27_000, 1), (27_000, 1, 1)])
def test_too_few_instances_decide_nothing_and_the_number_is_said(tmp_path: Path, values: tuple[int, ...]) -> None:
    count = len(values)
    few, many = durations(*values), durations(*[27_000] * 40)
    for a, b in ((few, few), (few, many), (many, few)):
        answer = diff_of(a, b, tmp_path)
        (row,) = answer.kernels
        assert (row.status, row.ci95) == ("undecided", None)
        assert row.note is not None
        assert f"n = {count} is too few" in row.note
        assert f"n = {count} is too few" in shown(answer)
