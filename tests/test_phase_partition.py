"""Phases and the work outside of them make up the whole trace."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nsys_export import Export
from phase_building import GRAPH_LAUNCH, OWN, against_itself, kernels_by_phase, opened, work

from tracekit.analysis.diff import compare
from tracekit.analysis.results import ALL, OUTSIDE
from tracekit.analysis.selection import phases_of
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.errors import WrongUsage
from tracekit.trace.source import open_trace


def test_copies_and_whole_graphs_belong_to_phases_too(tmp_path: Path) -> None:
    export = Export(graph_mode="Graph")
    export.range(1000, 2000, "prefill", domain=OWN)
    export.memcpy(1200, 1300, correlation=export.launch(1100, 1110, "cudaMemcpyAsync_v3020"))
    export.memset(2200, 2300, correlation=export.launch(2100, 2110, "cudaMemsetAsync_v3020"))
    export.graph_trace(1500, 1900, export.launch(1400, 1410, GRAPH_LAUNCH))
    phases = phases_of(opened(export, tmp_path))
    assert phases.copies.to_list() == [0, None]
    assert phases.graph_executions.to_list() == [0]


def test_fifty_phases_with_the_most_gpu_time_are_kept_and_the_rest_is_outside(tmp_path: Path) -> None:
    export = Export()
    letters = [f"{one}{other}" for one in "abcdefgh" for other in "abcdefgh"][:60]
    for i, name in enumerate(letters):
        export.range(10_000 * i + 1000, 10_000 * i + 5000, name, domain=OWN)
        work(export, 10_000 * i + 2000, 10_000 * i + 3000, 100 + i)
    trace = opened(export, tmp_path)
    found = kernels_by_phase(trace)
    assert set(found) == {*letters[10:], OUTSIDE}
    assert len(found[OUTSIDE]) == 10
    answer = compare([trace, trace])
    assert sum(each.kernel_rows_a for each in answer.phases) == 60
    assert sum(each.kernel_ns_a for each in answer.phases) == sum(100 + i for i in range(60))


def test_without_ranges_the_whole_trace_is_one_phase(tmp_path: Path) -> None:
    export = Export()
    for launch in (1500, 2500):
        work(export, launch, launch + 100)
    answer = against_itself(export, tmp_path)
    (only,) = answer.phases
    assert (only.name, only.n_a, only.kernel_rows_a, only.verdict.winner) == (ALL, 1, 2, "undecided")
    assert (only.time_ns_a, only.wall_ns_a) == (1100, None)


def test_traces_without_a_common_phase_are_compared_as_wholes(tmp_path: Path) -> None:
    traces = []
    for name in ("prefill", "decode"):
        export = Export()
        export.range(1000, 2000, name, domain=OWN)
        work(export, 1500, 1600)
        traces.append(open_trace(export.write(tmp_path / f"{name}.sqlite"), cached=False))
    assert [each.name for each in compare(traces).phases] == [ALL]


def test_the_parts_that_can_be_selected_add_up_to_the_whole(tmp_path: Path) -> None:
    export = Export()
    for i, name in enumerate(("prefill", "decode", "decode")):
        export.range(10_000 * i + 1000, 10_000 * i + 5000, name, domain=OWN)
        for kernel in range(3 + i):
            work(export, 10_000 * i + 1500 + kernel, 10_000 * i + 2000 + 200 * kernel)
    work(export, 100_000, 101_000)
    trace = opened(export, tmp_path)
    parts = {
        name: sum(each.count for each in summarise_trace(trace, Selection(phase=name)).kernels)
        for name in ("prefill", "decode", OUTSIDE)
    }
    assert parts == {"prefill": 3, "decode": 9, OUTSIDE: 1}
    with pytest.raises(WrongUsage, match="prefill"):
        summarise_trace(trace, Selection(phase="prefil"))


class Launch(NamedTuple):
    """A launch call of one thread of one process, and how long after it its kernel starts (before: < 0)."""

    pid: int
    thread: int
    at: int
    delay: int
    recorded: bool


class Range(NamedTuple):
    pid: int
    thread: int
    start: int
    end: int
    name: str


def nested_ranges(pid: int, thread: int) -> st.SearchStrategy[list[Range]]:
    """Properly nested push/pop ranges of one thread: brackets on the even moments, each moment used once."""

    def nest(moves: list[bool]) -> list[Range]:
        found, stack = [], []
        for moment, push in enumerate(moves):
            if push:
                stack.append(moment)
            elif stack:
                start = stack.pop()
                found.append(Range(pid, thread, start * 2, moment * 2, f"r{chr(97 + start % 7)}"))
        return found

    return st.lists(st.booleans(), max_size=20).map(nest)


launches = st.lists(
    st.builds(
        Launch,
        st.integers(1, 2),
        st.integers(1, 3),
        st.integers(0, 45),
        st.sampled_from((-1, 1, 3, 20)),
        st.sampled_from((True, True, True, False)),
    ),
    min_size=1,
    max_size=20,
)


def phase_by_definition(launch: Launch, ranges: list[Range]) -> str:
    """The innermost range open on the launching thread; where that has none at all, on its process."""
    if not launch.recorded or launch.delay < 0:
        return OUTSIDE
    of_process = [each for each in ranges if each.pid == launch.pid]
    mine = [each for each in of_process if each.thread == launch.thread]
    open_now = [each for each in mine or of_process if each.start <= launch.at < each.end]
    return max(open_now, key=lambda each: each.start).name if open_now else OUTSIDE


@settings(max_examples=80, deadline=None)
@given(launches=launches, one=nested_ranges(1, 1), other=nested_ranges(2, 2))
def test_random_work_is_parted_by_the_definition(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Launch], one: list[Range], other: list[Range]
) -> None:
    export, unit, origin = Export(), 1000, 10**9
    ranges = [*one, *other]
    for each in ranges:
        start, end = origin + each.start * unit, origin + each.end * unit
        export.range(start, end, each.name, pid=each.pid, tid=each.thread, domain=OWN)
    expected = Counter[str]()
    durations = Counter[str]()
    for i, launch in enumerate(launches):
        at = origin + launch.at * unit
        if launch.recorded:
            export.api(at, at + 10, "cudaLaunchKernel_v7000", i, pid=launch.pid, tid=launch.thread)
        start = at + launch.delay * unit
        export.kernel(start, start + 100 + i, pid=launch.pid, correlation=i)
        phase = phase_by_definition(launch, ranges) if ranges else ALL
        expected[phase] += 1
        durations[phase] += 100 + i
    path = export.write(tmp_path_factory.mktemp("phases") / "trace.sqlite")
    with open_trace(path, cached=False) as trace:
        found = kernels_by_phase(trace)
        phases = compare([trace, trace]).phases
    if ranges:
        assert {name: len(starts) for name, starts in found.items()} == dict(expected)
    assert {row.name: row.kernel_rows_a for row in phases} == dict(expected)
    assert {row.name: row.kernel_ns_a for row in phases} == dict(durations)
