"""How long a phase takes: which instances count, what is measured between, and what each instance holds."""

import json
from fractions import Fraction
from pathlib import Path

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nsys_export import Export
from oracle import Run
from phase_building import INSTANTIATE, OWN, against_itself, phase, work
from random_runs import run_sets

from tracekit.analysis.arms import build_arms
from tracekit.analysis.diff import compare
from tracekit.trace.source import open_trace


def steps(setups: list[int], *, pipelined: bool = False) -> Export:
    """Steps of one kernel of 5000 ns; each instantiates a graph for so many ns first (0: none)."""
    export, now = Export(), 1_000_000
    for setup in setups:
        begin = now
        if setup:
            export.api(now, now + setup, INSTANTIATE)
            now += setup
        work(export, now + 100, now + 1000, 5000)
        end = now + (500 if pipelined else 7000)
        export.range(begin, end, "step", domain=OWN)
        now = end + (4000 if pipelined else 1_000_000)
    return export


@pytest.mark.parametrize(
    ("setups", "counted", "left_out"),
    [
        ([0, 0, 0, 0, 0], 4, 1),
        # Only the first instantiates.
        ([50_000, 0, 0, 0, 0], 4, 1),
        # So does a later one, for once.
        ([50_000, 0, 0, 50_000, 0, 0, 0, 0], 6, 2),
        # All instantiate, the first for much longer.
        ([50_000, 9000, 9000, 10_000, 9000, 9000], 5, 1),
        # So does a later one.
        ([50_000, 9000, 9000, 40_000, 9000, 9000], 4, 2),
        # A single instance has nothing to warm up for.
        ([50_000], 1, 0),
    ],
)
def test_warm_up_is_the_first_instance_and_those_that_set_up_unusually(
    tmp_path: Path, setups: list[int], counted: int, left_out: int
) -> None:
    found = phase(against_itself(steps(setups), tmp_path), "step")
    assert (found.n_a, found.warm_up_a) == (counted, left_out)


def test_setup_in_every_instance_is_steady_cost(tmp_path: Path) -> None:
    found = phase(against_itself(steps([30_000] * 6), tmp_path), "step")
    assert found.time_ns_a == 30_000 + 1000 + 5000
    later = phase(against_itself(steps([30_000] * 6), tmp_path, warm_up=0), "step")
    assert (later.n_a, later.warm_up_a) == (6, 0)


def test_when_every_instance_sets_up_alike_nothing_is_left_out(tmp_path: Path) -> None:
    found = phase(against_itself(steps([30_000] * 6), tmp_path), "step")
    assert (found.n_a, found.warm_up_a) == (6, 0)


@pytest.mark.parametrize(("warm_up", "counted"), [(0, 8), (1, 7), (3, 5)])
def test_the_number_of_warm_up_instances_can_be_given(tmp_path: Path, warm_up: int, counted: int) -> None:
    found = phase(against_itself(steps([0] * 8), tmp_path, warm_up=warm_up), "step")
    assert (found.n_a, found.warm_up_a) == (counted, warm_up)


def test_instances_apart_are_timed_from_range_start_to_completion(tmp_path: Path) -> None:
    found = phase(against_itself(steps([0] * 6), tmp_path), "step")
    assert found.time_basis == "range start to last GPU completion"
    assert (found.time_ns_a, found.gpu_span_ns_a, found.wall_ns_a) == (6000, 5000, 7000)


def test_instances_that_follow_one_another_are_timed_by_their_period(tmp_path: Path) -> None:
    """Each range launches its work and ends before the work does, as a pipelined loop."""
    found = phase(against_itself(steps([0] * 6, pipelined=True), tmp_path), "step")
    assert found.time_basis == "period: last GPU completion to last GPU completion"
    assert (found.time_ns_a, found.gpu_span_ns_a, found.wall_ns_a) == (4500, 5000, 500)


def test_one_arm_apart_makes_both_be_timed_the_same_way(tmp_path: Path) -> None:
    traces = [
        open_trace(steps([0] * 7, pipelined=pipelined).write(tmp_path / f"{pipelined}.sqlite"), cached=False)
        for pipelined in (True, False)
    ]
    (found,) = compare(traces).phases
    assert found.time_basis == "range start to last GPU completion"
    assert (found.time_ns_a, found.time_ns_b) == (6000, 6000)


@settings(max_examples=50, deadline=None)
@given(runs=run_sets(), cuts=st.lists(st.integers(0, 2), min_size=16, max_size=16))
def test_each_instance_holds_the_time_of_its_own_kernels(
    tmp_path_factory: pytest.TempPathFactory, runs: list[Run], cuts: list[int]
) -> None:
    """Kernels of three ranges run side by side; each range counts its own, each device apart."""
    runs = [run._replace(process=1) for run in runs if run.start > 0]
    export, launches = Export(), min((run.start for run in runs), default=0) - 1000
    for number in range(3):
        export.range(launches + number * 100, launches + number * 100 + 50, f"phase {'abc'[number]}", domain=OWN)
    of_phase: dict[str, list[Run]] = {}
    for run, number in zip(runs, cuts, strict=False):
        correlation = export.launch(launches + number * 100, launches + number * 100 + 1)
        export.kernel(run.start, run.end, run.stream, f"k{run.kernel}", device=run.device, correlation=correlation)
        of_phase.setdefault(f"phase {'abc'[number]}", []).append(run)
    path = export.write(tmp_path_factory.mktemp("instances") / "trace.sqlite")
    with open_trace(path, cached=False) as trace:
        figures = {row["phase"]: row for row in build_arms([trace], None, 0)[0].figures.to_dicts()}
    solo = {kernel: times[0] for kernel, times in oracle.solo_durations(runs).items()}
    if not runs:
        return
    assert figures.keys() == of_phase.keys()
    for name, mine in of_phase.items():
        row, devices = figures[name], oracle.by_device(mine).values()
        depths = [oracle.time_by_depth(each) for each in devices]
        episodes = [episode for each in devices for episode in oracle.episodes(each, solo)]
        covered = [episode for episode in episodes if episode.known]
        assert (row["kernel_rows"], row["launches"]) == (len(mine), len(mine))
        assert (row["first"], row["last"]) == (min(run.start for run in mine), max(run.end for run in mine))
        assert row["summed"] == sum(run.duration for run in mine)
        assert row["busy"] == sum(time for each in depths for time in each.values())
        assert row["overlapped"] == sum(time for each in depths for depth, time in each.items() if depth >= 2)
        assert row["idle"] == sum(oracle.device_time(each, []).idle for each in devices)
        assert row["episodes"] == len(episodes)
        assert row["extra_members"] == sum(episode.members - 1 for episode in episodes)
        gain = sum((episode.solo - episode.wall for episode in covered), Fraction(0))
        assert row["gain"] == pytest.approx(float(gain), rel=1e-9, abs=1e-3)
        wall = sum(episode.wall for episode in episodes)
        assert row["coverage"] == pytest.approx(sum(e.wall for e in covered) / wall if wall else 1)


def test_the_serial_prediction_by_hand(tmp_path: Path) -> None:
    """Two kernels of 1000 ns alone take 1500 ns at once; in a row they would take 500 + a gap of 200 ns more."""
    export, now = Export(), 1_000_000
    for step in range(8):
        export.range(now, now + 10_000, "step", domain=OWN)
        correlation = export.launch(now, now + 100, "cudaGraphLaunch_v10000")
        alone = [(1000 + 1200 * i, 2000 + 1200 * i, 7, f"k{i % 2}") for i in range(6)]
        at_once = [(8200, 9700, 7, "k0"), (8200, 9700, 8, "k1")]
        for node, (start, end, stream, name) in enumerate([*alone, *at_once], start=1):
            export.kernel(now + start, now + end, stream, name, correlation=correlation, node=node)
        now += 1_000_000 + step
    found = phase(against_itself(export, tmp_path), "step")
    assert found.time_ns_a == 9700
    assert found.overlap_gain_ns_a == 500
    assert found.what_if_serial_ns_a == 9700 + 500 + 200
    assert found.what_if_serial_interval_a == (10_400, 10_400)


@pytest.mark.parametrize(
    "arm",
    [
        "on",
        "serial",
    ],
)
@pytest.mark.parametrize("model", ["stock", "gbx", "moe"])
def test_the_gap_between_dependent_kernels_is_the_planted_one(model: str, arm: str) -> None:
    name = f"{model}-graphs-{arm}.sqlite"
    samples = Path(__file__).parents[1] / "sample_traces"
    planted = json.loads((samples / "truth.json").read_text(encoding="utf-8"))["files"][name]
    with open_trace(samples / name, cached=False) as trace:
        gap = build_arms([trace], None, 1)[0].gap
    assert gap is not None
    assert gap[0] == pytest.approx(planted["planted_gap_ns"]["prefill"], rel=0.05)
