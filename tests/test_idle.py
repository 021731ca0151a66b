"""Every nanosecond in which the GPU does nothing is charged to one cause, as a walk through time charges it."""

from collections import Counter
from typing import NamedTuple

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tracekit.analysis.phases.call_time import CallTime
from tracekit.analysis.phases.idle import CAUSES, idle_causes
from tracekit.analysis.phases.instances import Work
from tracekit.trace import schema
from tracekit.trace.calls import ROLES, SETUP_ROLES, WORK_ROLES


class Piece(NamedTuple):
    """GPU work of a phase instance (None: of none), launched by the call of its process and correlation id."""

    start: int
    end: int
    device: int = 0
    process: int = 1
    correlation: int | None = 1
    instance: int | None = 0


class Call(NamedTuple):
    start: int
    end: int
    role: str = "launch"
    correlation: int | None = 1
    process: int = 1
    thread: int = 1


class Window(NamedTuple):
    """A phase time: the last ``time`` ns up to the end of the instance's work."""

    instance: int
    time: int


def charged(work: list[Piece], calls: list[Call], windows: list[Window]) -> dict[int, dict[str, int]]:
    """Instance -> idle time by cause."""
    columns = {name: [getattr(piece, name) for piece in work] for name in Piece._fields}
    types = {"device": pl.Int32, "instance": pl.UInt32, "correlation": pl.Int64}
    frame = pl.DataFrame(columns, schema_overrides=types)
    kernels, copies = frame[::2].sort("start", "end"), frame[1::2].sort("start", "end")
    called = pl.DataFrame(
        {name: [getattr(call, name) for call in calls] for name in Call._fields},
        schema={name: schema.CALLS[name] for name in Call._fields},
    ).with_columns(failed=pl.lit(False))
    timed = pl.DataFrame(
        {
            "instance": [window.instance for window in windows],
            "time": [window.time for window in windows],
            "last": [_last(work, window.instance) for window in windows],
            "active": [_active(work, window.instance) for window in windows],
        },
        schema={"instance": pl.UInt32, "time": pl.Int64, "last": pl.Int64, "active": pl.Int64},
    )
    found = idle_causes(Work(kernels, copies, frame.clear()), CallTime(called, "thread"), timed)
    return {row.pop("instance"): row for row in found.to_dicts()}


def _own(work: list[Piece], instance: int) -> list[Piece]:
    return [piece for piece in work if piece.instance == instance]


def _last(work: list[Piece], instance: int) -> int:
    return max(piece.end for piece in _own(work, instance))


def _active(work: list[Piece], instance: int) -> int:
    """Time with any of its work running, each device by itself."""
    return len({(piece.device, moment) for piece in _own(work, instance) for moment in range(piece.start, piece.end)})


def walked(work: list[Piece], calls: list[Call], window: Window) -> dict[str, int]:
    """The same, one nanosecond at a time."""
    last = _last(work, window.instance)
    devices = {piece.device for piece in _own(work, window.instance)}
    there = [piece for piece in work if piece.device in devices]
    times = Counter[str]()
    for moment in range(last - window.time, last):
        if not any(piece.start <= moment < piece.end for piece in there):
            ended_by = _next(moment, there)
            times[_cause(moment, ended_by, calls)] += 1
            times["no_call"] += not any(
                call.start <= moment < call.end for call in calls if call.process == ended_by.process
            )
    told = {cause: times[cause] for cause in CAUSES}
    left = window.time - _active(work, window.instance) - sum(told.values())
    return told | {"unattributed": left, "no_call": times["no_call"]}


def _next(moment: int, work: list[Piece]) -> Piece:
    return min((piece for piece in work if piece.start > moment), key=lambda piece: piece.start)


def _cause(moment: int, following: Piece, calls: list[Call]) -> str:
    launches = [
        call
        for call in calls
        if call.correlation is not None
        and (call.process, call.correlation) == (following.process, following.correlation)
    ]
    if not launches:
        return "unknown"
    launch = min(launches, key=lambda call: (call.start, call.thread))
    if launch.start > following.start:
        return "unknown"
    if moment >= launch.end:
        return "gaps"
    on_thread = [call for call in calls if call.thread == launch.thread and call.start <= moment < call.end]
    if not on_thread:
        return "host_work"
    outermost = min(on_thread, key=lambda call: (call.start, -call.end))
    return "launch_bound" if outermost.role in WORK_ROLES else "setup" if outermost.role in SETUP_ROLES else "host_work"


@st.composite
def nested_calls(draw: st.DrawFn, thread: int, process: int) -> list[Call]:
    """Calls of one thread: one after another, some of which make further calls."""
    calls, moment = [], 0
    for _ in range(draw(st.integers(0, 6))):
        start = moment + draw(st.integers(0, 4))
        end = start + draw(st.integers(0, 9))
        moment = end
        ids = st.one_of(st.none(), st.integers(1, 8))
        calls.append(Call(start, end, draw(st.sampled_from([*ROLES, "other"])), draw(ids), process, thread))
        if end - start > 2 and draw(st.booleans()):
            calls.append(Call(start + 1, end - 1, draw(st.sampled_from(sorted(ROLES))), draw(ids), process, thread))
    return calls


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Piece], list[Call], list[Window]]:
    processes = draw(st.integers(1, 2))
    calls = [
        call
        for process in range(1, processes + 1)
        for thread in range(draw(st.integers(1, 2)))
        for call in draw(nested_calls(10 * process + thread, process))
    ]
    starts = draw(st.lists(st.integers(0, 60), min_size=1, max_size=10, unique=True))
    work = []
    for start in sorted(starts):
        work.append(
            Piece(
                start,
                start + draw(st.integers(0, 8)),
                draw(st.integers(0, 1)),
                draw(st.integers(1, processes)),
                draw(st.one_of(st.none(), st.integers(1, 8))),
                draw(st.one_of(st.none(), st.integers(0, 2))),
            )
        )
    instances = sorted({piece.instance for piece in work if piece.instance is not None})
    windows = [Window(instance, draw(st.integers(0, 70))) for instance in instances]
    return work, draw(st.permutations(calls)), windows


@given(runs())
def test_each_nanosecond_is_charged_as_a_walk_through_time_charges_it(
    run: tuple[list[Piece], list[Call], list[Window]],
) -> None:
    work, calls, windows = run
    found = charged(work, calls, windows)
    assert found == {window.instance: walked(work, calls, window) for window in windows}


@given(runs())
def test_the_causes_add_up_to_the_phase_time_without_work(
    run: tuple[list[Piece], list[Call], list[Window]],
) -> None:
    work, calls, windows = run
    found = charged(work, calls, windows)
    for window in windows:
        causes = [*CAUSES, "unattributed"]
        assert sum(found[window.instance][cause] for cause in causes) == window.time - _active(work, window.instance)


def idle(work: list[Piece], calls: list[Call], time: int) -> dict[str, int]:
    """The causes that there are, of the one instance."""
    found = charged(work, calls, [Window(0, time)])[0]
    return {cause: ns for cause, ns in found.items() if ns and cause != "no_call"}


def test_a_pause_before_work_that_was_launched_long_ago_is_the_devices_own() -> None:
    work = [Piece(100, 200, correlation=1), Piece(230, 300, correlation=2)]
    calls = [Call(10, 20, correlation=1), Call(20, 30, correlation=2)]
    assert idle(work, calls, 200) == {"gaps": 30}


def test_nodes_of_one_graph_launch_wait_for_the_device_only() -> None:
    work = [Piece(100, 200), Piece(230, 300), Piece(340, 400)]
    assert idle(work, [Call(10, 90, "graph launch")], 300) == {"gaps": 70}


def test_a_pause_is_divided_into_host_work_then_the_launch_call_then_the_device() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [Call(10, 20, correlation=1), Call(250, 280, correlation=2)]
    assert idle(work, calls, 300) == {"host_work": 50, "launch_bound": 30, "gaps": 20}


def test_work_that_starts_before_its_launch_call_returns_has_no_pause_of_the_device() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [Call(10, 20, correlation=1), Call(250, 320, correlation=2)]
    assert idle(work, calls, 300) == {"host_work": 50, "launch_bound": 50}


def test_instantiating_and_updating_while_the_gpu_waits_is_setup() -> None:
    work = [Piece(100, 200, correlation=1), Piece(400, 500, correlation=2)]
    calls = [
        Call(10, 20, correlation=1),
        Call(210, 300, "instantiate", None),
        Call(300, 350, "graph update", None),
        Call(360, 390, "graph launch", 2),
    ]
    assert idle(work, calls, 400) == {"host_work": 20, "setup": 140, "launch_bound": 30, "gaps": 10}


def test_a_call_made_within_another_counts_as_the_outer_one() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [
        Call(10, 20, correlation=1),
        Call(200, 260, "instantiate", None),
        Call(210, 240, "launch", None),
        Call(260, 300, correlation=2),
        Call(262, 298, "setup", 2),
    ]
    assert idle(work, calls, 300) == {"setup": 60, "launch_bound": 40}


def test_waiting_for_an_idle_gpu_is_host_work() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [Call(10, 20, correlation=1), Call(30, 260, "wait", None), Call(260, 300, correlation=2)]
    assert idle(work, calls, 300) == {"host_work": 60, "launch_bound": 40}


def test_only_the_thread_that_launches_the_next_work_is_looked_at() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [
        Call(10, 20, correlation=1),
        Call(200, 300, "instantiate", None, thread=2),
        Call(290, 300, correlation=2, thread=1),
    ]
    assert idle(work, calls, 300) == {"host_work": 90, "launch_bound": 10}


def test_the_same_ids_in_two_processes_are_two_launches() -> None:
    work = [Piece(100, 200, process=1), Piece(300, 400, process=2)]
    calls = [Call(10, 20), Call(290, 300, process=2, thread=2)]
    assert idle(work, calls, 300) == {"host_work": 90, "launch_bound": 10}


def test_another_device_does_not_end_a_pause_of_this_one() -> None:
    work = [
        Piece(100, 200, correlation=1),
        Piece(220, 280, device=1, correlation=3, instance=1),
        Piece(300, 400, correlation=2),
    ]
    calls = [Call(10, 20, correlation=1), Call(20, 30, correlation=2), Call(30, 40, correlation=3)]
    assert idle(work, calls, 300) == {"gaps": 100}


def test_a_pause_without_a_recorded_launch_is_not_attributed() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    assert idle(work, [Call(10, 20, correlation=1)], 300) == {"unattributed": 100}


def test_a_launch_call_recorded_after_its_kernel_began_is_not_believed() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    assert idle(work, [Call(10, 20, correlation=1), Call(350, 360, correlation=2)], 300) == {"unattributed": 100}


def test_time_in_which_other_work_ran_is_not_idle_and_has_no_cause() -> None:
    work = [
        Piece(100, 200, correlation=1),
        Piece(220, 280, correlation=3, instance=None),
        Piece(300, 400, correlation=2),
    ]
    calls = [Call(10, 20, correlation=1), Call(20, 30, correlation=3), Call(30, 40, correlation=2)]
    assert idle(work, calls, 300) == {"gaps": 40, "unattributed": 60}


def test_times_at_the_far_end_of_the_clock_are_counted_to_the_nanosecond() -> None:
    far = 2**55
    work = [Piece(far + 100, far + 200, correlation=1), Piece(far + 301, far + 400, correlation=2)]
    calls = [Call(far + 10, far + 20, correlation=1), Call(far + 250, far + 280, correlation=2)]
    assert idle(work, calls, 300) == {"host_work": 50, "launch_bound": 30, "gaps": 21}


def test_time_without_any_call_is_looked_for_on_every_thread_of_the_process() -> None:
    work = [Piece(100, 200, correlation=1), Piece(300, 400, correlation=2)]
    calls = [
        Call(10, 20, correlation=1),
        Call(210, 250, "wait", None, thread=2),
        Call(240, 270, correlation=2, thread=1),
        Call(200, 300, "wait", None, process=2, thread=3),
    ]
    assert charged(work, calls, [Window(0, 300)])[0]["no_call"] == 10 + 30
