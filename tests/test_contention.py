"""Who slowed whom: stretch by the set of kernels beside, its interval, and when a set is told apart."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import beside_oracle
import numpy as np
import oracle
import polars as pl
import pytest
from beside_oracle import BANDS
from field_notation import Kernel as Planned
from field_notation import diff_of, overlap_of, shown, steps
from hypothesis import given, settings
from planted_overlap import compared, one_by_one, planted
from random_runs import Solo, durations, exact, kernel_frame, known, run_sets, solo_frame

import tracekit.analysis.overlap.contention as module
from tracekit.analysis.diff import compare
from tracekit.analysis.kernels.solo import of_instances
from tracekit.analysis.overlap.companions import companions
from tracekit.analysis.overlap.contention import VICTIMS, contention
from tracekit.analysis.results import Contention
from tracekit.analysis.statistics.bootstrap import bounds, deviations
from tracekit.trace.source import open_trace

examples = settings(max_examples=60, deadline=None)

CHANCE = 0.05


def victims_in(frame: pl.DataFrame, solo: Solo) -> tuple[pl.DataFrame, pl.DataFrame]:
    beside = companions(frame, frame["key"])
    rows = frame.select(
        "overlapped",
        of_instances(frame["key"], solo_frame(solo)),
        group="key",
        phase=pl.lit(0, pl.Int64),
        moment=pl.int_range(pl.len()),
        duration=pl.col("end") - pl.col("start"),
        set=beside.of_instances,
    )
    return rows.select(list(VICTIMS)), beside.members


@examples
@given(run_sets(), durations)
def test_instances_are_grouped_by_the_set_of_kernels_beside_them(runs: list[oracle.Run], solo: Solo) -> None:
    """Sets of any number of instances are told, so that every one can be looked at."""
    one_device = [run._replace(device=0) for run in runs]
    rows, members = victims_in(kernel_frame(one_device), solo)
    with mock.patch.object(module, "FEWEST", 1):
        found = contention(rows, members, [])
    of_set = {key: frozenset(part["group"]) for (key,), part in members.partition_by("set", as_dict=True).items()}
    expected = beside_oracle.victims(one_device, solo)
    beside_others = {victim for victim, band, _ in expected if band != "alone"}
    told = {
        (row["group"], BANDS[row["band"]], of_set.get(row["set"], frozenset())): row
        for row in found.iter_rows(named=True)
        if row["companion"] is None
    }
    assert set(told) == {key for key in expected if key[0] in beside_others}
    for key, row in told.items():
        assert (row["instances"], row["spent"], row["beside"]) == (
            expected[key].instances,
            expected[key].spent,
            expected[key].overlapped,
        )
        assert row["stretch"] == exact(expected[key].stretch)


@examples
@given(run_sets(most=30))
def test_rare_sets_are_summed_up_for_each_victim(runs: list[oracle.Run]) -> None:
    one_device = [run._replace(device=0) for run in runs]
    rows, members = victims_in(kernel_frame(one_device), {})
    found = contention(rows, members, [])
    expected = beside_oracle.victims(one_device, {})
    for (victim,), part in (
        found.filter(pl.col("band").is_null() | (pl.col("band") > 0)).partition_by("group", as_dict=True).items()
    ):
        sets = {key: beside for key, beside in expected.items() if key[0] == victim and key[1] != "alone"}
        assert part["instances"].sum() == sum(beside.instances for beside in sets.values())
        rare = part.filter(pl.col("band").is_null())
        assert rare["instances"].sum() == sum(beside.instances for beside in sets.values() if beside.instances < 5)


def of_victim(rows: Sequence[Contention], victim: str, arm: str | None = "b") -> dict[tuple[str, bool], Contention]:
    """(companions as letters, whether it is a separate effect) -> row, of those beside others."""
    return {
        ("".join(str(kernel.name) for kernel in row.companions), row.split): row
        for row in rows
        if row.victim.name == victim and row.arm == arm and row.companions
    }


def holds(row: Contention, stretch: float) -> bool:
    low, high = known(row.ci95)
    return low <= stretch <= high


def test_of_two_companions_the_one_that_hurts_is_told_from_the_one_that_does_not(tmp_path: Path) -> None:
    rows = of_victim(compared({"x": 2.0, "y": 1.0, "xy": 2.0}, tmp_path).contention, "v")
    assert set(rows) == {("x", False), ("y", False), ("xy", False), ("x", True), ("y", True)}
    assert {key: round(known(row.stretch), 2) for key, row in rows.items()} == {
        ("x", False): 2.0,
        ("y", False): 1.0,
        ("xy", False): 2.0,
        ("x", True): 2.0,
        ("y", True): 1.0,
    }
    assert holds(rows["x", True], 2.0)
    assert not holds(rows["x", True], 1.0)
    assert holds(rows["y", True], 1.0)
    assert rows["x", True].instances == rows["x", False].instances + rows["xy", False].instances == 16
    assert "told apart" in known(rows["xy", False].note)


def test_a_set_whose_membership_never_varies_stays_one_set(tmp_path: Path) -> None:
    rows = of_victim(compared({"xy": 2.0}, tmp_path).contention, "v")
    assert set(rows) == {("xy", False)}
    assert known(rows["xy", False].note).startswith("one set:")
    assert holds(rows["xy", False], 2.0)


def test_a_companion_that_is_never_there_without_the_other_is_not_told_apart(tmp_path: Path) -> None:
    rows = of_victim(compared({"x": 1.5, "xy": 3.0}, tmp_path).contention, "v")
    assert set(rows) == {("x", False), ("xy", False)}
    assert "varies too little" in known(rows["xy", False].note)


def test_effects_that_do_not_multiply_are_not_told_apart(tmp_path: Path) -> None:
    rows = of_victim(compared({"x": 2.0, "y": 2.0, "xy": 2.0}, tmp_path).contention, "v")
    assert not any(split for _, split in rows)
    assert "do not multiply" in known(rows["xy", False].note)


def test_the_share_of_time_beside_others_divides_instances(tmp_path: Path) -> None:
    kernels: list[Planned] = [(0, 1000, 7, "v"), (5000, 6200, 7, "v"), (5900, 9000, 8, "x"), (7000, 9000, 7, "v")]
    eager = steps(one_by_one("vx"), graphs=False)
    rows = [
        (row.band, row.instances, round(known(row.stretch), 1), round(row.overlapped_fraction, 2))
        for row in diff_of(eager, steps(kernels, graphs=True), tmp_path).contention
        if row.victim.name == "v" and row.arm == "b"
    ]
    assert sorted(rows) == [("alone", 8, 1.0, 0.0), ("over half", 8, 2.0, 1.0), ("up to half", 8, 1.2, 0.25)]


def test_a_kernel_beside_itself_is_its_own_companion(tmp_path: Path) -> None:
    twice: list[Planned] = [(0, 2100, 7, "v"), (0, 2100, 8, "v")]
    answer = diff_of(steps(one_by_one("v"), graphs=False), steps(twice, graphs=True), tmp_path)
    rows = of_victim(answer.contention, "v")
    assert {key: row.instances for key, row in rows.items()} == {("v", False): 16}
    assert [(row.pair, [kernel.name for kernel in row.members]) for row in answer.overlaps] == [(True, ["v", "v"])]


def test_without_a_solo_duration_there_is_no_stretch_and_it_is_said(tmp_path: Path) -> None:
    kernels: list[Planned] = [(0, 2000, 7, "v"), (0, 2000, 8, "x")]
    rows = of_victim(overlap_of(steps(kernels, graphs=True), tmp_path).contention, "v", arm=None)
    assert [(row.instances, row.stretch, row.ci95) for row in rows.values()] == [(9, None, None)]
    assert known(rows["x", False].note) == "its solo duration is unknown"


def test_one_moment_gives_no_interval(tmp_path: Path) -> None:
    """All of it happened in one twentieth of the run: another might have given another stretch."""
    kernels = planted({"x": 2.0}, times=6)
    long_after: Planned = (1_000_000_000, 1_000_001_000, 7, "w")
    trace = steps([*kernels, long_after], graphs=False, count=1)
    rows = of_victim(overlap_of(trace, tmp_path).contention, "v", arm=None)
    assert (rows["x", False].instances, rows["x", False].ci95) == (6, None)
    assert known(rows["x", False].note) == "too few moments for an interval"


def noisy(random: np.random.Generator, moments: int, each: int, shared: float) -> pl.DataFrame:
    """Instances of forty kernels, half of them beside another that does nothing: noise of their own, and noise that
    all instances of a moment share."""
    groups = 40
    count = groups * moments * each
    moment = np.tile(np.repeat(np.arange(moments), each), groups)
    group = np.repeat(np.arange(groups), moments * each)
    state = random.normal(0, shared, (groups, moments))[group, moment]
    duration = 100_000 * np.exp(random.normal(0, 0.05, count) + state)
    beside = random.random(count) < 0.5
    frame = pl.DataFrame({"group": group, "moment": moment, "duration": duration.astype(np.int64), "beside": beside})
    return frame.select(
        pl.col("group").cast(pl.UInt32),
        "moment",
        "duration",
        phase=pl.lit(0, pl.Int64),
        set=pl.when("beside").then(pl.lit(7, pl.UInt64)).otherwise(0),
        overlapped=pl.when("beside").then("duration").otherwise(0),
        solo=pl.col("duration").filter(~pl.col("beside")).median().over("group"),
    ).select(list(VICTIMS))


@pytest.mark.parametrize("shared", [0.0, 0.05])
def test_where_nothing_slows_a_kernel_no_more_intervals_than_chance_lie_away_from_one(shared: float) -> None:
    random = np.random.default_rng(1)
    members = pl.DataFrame({"set": [7], "group": [40]}, schema={"set": pl.UInt64, "group": pl.UInt32})
    away = seen = 0
    for _ in range(10):
        rows = noisy(random, moments=12, each=4, shared=shared)
        found = contention(rows, members, [rows]).filter(pl.col("band") == 2)
        away += int(((found["low"] > 1) | (found["high"] < 1)).sum())
        seen += found.height
    assert seen == 400
    assert away <= (CHANCE + 0.02) * seen


@pytest.mark.parametrize("blocks", [3, 5, 9, 20, 100])
def test_intervals_of_means_over_blocks_hold_the_truth_as_often_as_they_say(blocks: int) -> None:
    values = np.random.default_rng(2).normal(0, 1, (4000, blocks))
    low, high = bounds(deviations(values, np.ones_like(values), "t"))
    mean = values.mean(axis=1)
    assert np.mean((mean + low <= 0) & (mean + high >= 0)) == pytest.approx(0.95, abs=0.025)


def test_neighbours_that_resemble_each_other_widen_the_interval() -> None:
    random = np.random.default_rng(3)
    walks = np.cumsum(random.normal(0, 1, (200, 40)), axis=1)
    shuffled = random.permuted(walks, axis=1)
    in_order, out_of_order = (
        np.median(np.subtract(*bounds(deviations(values, np.ones_like(values), "t"))[::-1]))
        for values in (walks, shuffled)
    )
    assert in_order > 1.3 * out_of_order


def test_a_stretch_is_not_called_a_loss(tmp_path: Path) -> None:
    """Two at once in less than twice the time: both are stretched, and time is saved."""
    pair: list[Planned] = [(0, 12_800, 7, "v"), (0, 12_800, 8, "v")]
    eager: list[Planned] = [(0, 7400, 7, "v"), (8000, 15_400, 7, "v")]
    answer = diff_of(steps(eager, graphs=False), steps(pair, graphs=True), tmp_path)
    (row,) = of_victim(answer.contention, "v").values()
    (gained,) = answer.overlaps
    assert known(row.stretch) == pytest.approx(1.73, abs=0.01)
    assert known(gained.gain_ns) == pytest.approx(2000, abs=20)
    assert 0 < known(gained.low_ns) <= known(gained.gain_ns) <= known(gained.high_ns)
    assert "2.00 us" in shown(answer)


def test_a_person_is_shown_ten_rows_of_each_and_told_of_the_rest(tmp_path: Path) -> None:
    names = "abcdefghijkl"
    pairs = [
        ((at, at + 8000, 8, name), (at + 1000, at + 3000, 7, "v"))
        for at, name in zip(range(0, 240_000, 20_000), names, strict=True)
    ]
    kernels: list[Planned] = [kernel for pair in pairs for kernel in pair]
    text = shown(overlap_of(steps(kernels, graphs=True), tmp_path, steps(one_by_one("v" + names), graphs=False)))
    beside, sets = (text.split(title)[1].split("\n\n")[0] for title in ("\nBeside whom\n", "\nWhat overlapping gained"))
    assert sum("1x1x1" in line for line in beside.splitlines()) == 10
    assert sum("1x1x1" in line for line in sets.splitlines()) == 10
    assert "14 more: --format json lists all" in beside
    assert "2 more: --format json lists all" in sets


@pytest.mark.parametrize(("blocks", "decided"), [(2, False), (5, True)])
def test_of_several_blocks_the_blocks_are_resampled(tmp_path: Path, blocks: int, decided: bool) -> None:
    with ExitStack() as stack:
        arms = [
            [
                stack.enter_context(open_trace(export.write(tmp_path / f"{arm}{i}.sqlite"), cached=False))
                for i, export in enumerate(recorded)
            ]
            for arm, recorded in (
                ("eager", [steps(one_by_one("vx"), graphs=False) for _ in range(blocks)]),
                ("graphs", [steps(planted({"x": 2 + 0.01 * i}), graphs=True) for i in range(blocks)]),
            )
        ]
        answer = compare(arms)
    row = of_victim(answer.contention, "v")["x", False]
    assert row.instances == 8 * blocks
    assert (row.ci95 is not None) == decided
    (gained,) = (row for row in answer.overlaps if row.arm == "b")
    assert (gained.episodes, gained.low_ns is not None) == (1, decided)
    if decided:
        assert holds(row, 2.02)
        assert not holds(row, 1.9)
