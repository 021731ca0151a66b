"""What overlapping gained or lost by set of kernels: totals, pairs, and the interval."""

from collections.abc import Sequence
from pathlib import Path

import beside_oracle
import numpy as np
import oracle
import polars as pl
import pytest
from field_notation import overlap_of
from hypothesis import given, settings
from planted_overlap import compared
from random_runs import Solo, durations, exact, found_in, in_one_file, known, run_sets

from tracekit.analysis.overlap.episode_sets import sets_of
from tracekit.analysis.results import OverlapSet
from tracekit.analysis.statistics.ratios import Floats

examples = settings(max_examples=60, deadline=None)


def as_sets(rows: Sequence[OverlapSet]) -> dict[tuple[frozenset[str], bool], tuple[float, int, int | None]]:
    return {
        (frozenset(str(kernel.name) for kernel in row.members), row.pair): (row.episodes, row.wall_ns, row.solo_ns)
        for row in rows
    }


@examples
@given(run_sets(), durations)
def test_episodes_by_set_add_up_to_those_of_the_slow_way(runs: list[oracle.Run], solo: Solo) -> None:
    one_device = [run._replace(device=0) for run in runs]
    found = found_in(one_device, solo)
    block = pl.zeros(found.episodes.height, pl.Int64, eager=True)
    rows = sets_of(found.episodes.with_columns(stratum=0), found.kernels, block, None)
    expected = beside_oracle.episode_sets(one_device, solo)
    assert {
        (frozenset(row["members"]), row["pair"]): (row["episodes"], row["wall"], row["solo"])
        for row in rows.iter_rows(named=True)
    } == {key: (each.episodes, each.wall, exact(each.solo)) for key, each in expected.items()}
    gains = rows["gain"].drop_nulls()
    assert gains.abs().is_sorted(descending=True)
    assert all(len(row["members"]) == 2 for row in rows.filter("pair").iter_rows(named=True))


@examples
@given(runs=run_sets())
def test_gains_of_all_sets_of_a_trace_add_up_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, runs: list[oracle.Run]
) -> None:
    answer = overlap_of(in_one_file(runs, tmp_path_factory.mktemp("sets") / "trace.sqlite"), Path())
    assert sum(row.wall_ns for row in answer.sets) == answer.episodes.wall_ns
    assert sum(row.episodes for row in answer.sets) == answer.episodes.count
    assert sum(row.gain_ns for row in answer.sets if row.gain_ns is not None) == (answer.episodes.gain_ns or 0)


def test_gains_of_all_sets_of_a_phase_add_up_to_its_mean_gain(tmp_path: Path) -> None:
    stretch = {"x": 2.0, "y": 1.3, "xy": 3.1}
    answer = compared(stretch, tmp_path)
    times = [1.001, 0.999, 1.0, 1.001, 0.999, 1.0, 1.001, 0.999]
    # v beside x or y for so long, while each of them runs on for 8000 ns; beside both, three run at once.
    whole = sum(times) / len(times)
    gains = [row.gain_ns for row in answer.overlaps if row.arm == "b" and row.phase == "step"]
    assert None not in gains
    expected = 0.0
    for beside, factor in stretch.items():
        wall = 1000 * factor if len(beside) == 1 else 8000
        solo = 1000 + 8000 * len(beside) - (8000 - wall) * len(beside)
        expected += solo - wall * whole
    assert sum(map(known, gains)) == pytest.approx(expected, abs=60)
    phase = next(row for row in answer.phases if row.name == "step")
    assert sum(map(known, gains)) == pytest.approx(known(phase.overlap_gain_ns_b), abs=60)


def test_gain_belongs_to_a_pair_only_in_episodes_of_two(tmp_path: Path) -> None:
    rows = as_sets(compared({"x": 2.0, "xy": 2.0}, tmp_path).overlaps)
    assert (frozenset("vx"), True) in rows
    assert (frozenset("vxy"), False) in rows
    assert all(len(members) <= 2 for members, pair in rows if pair)


def episodes_of(lost: Sequence[float] | Floats) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Episodes of one set that lost so many ns each, and their kernels."""
    count = len(lost)
    episodes = pl.DataFrame(
        {
            "episode": np.arange(count),
            "members": np.full(count, 2),
            "set": np.ones(count, np.uint64),
            "known": np.ones(count, np.bool_),
            "wall": (10_000 + np.asarray(lost)).astype(np.int64),
            **{name: np.full(count, 10_000.0) for name in ("solo", "solo_low", "solo_high")},
        }
    )
    kernels = pl.DataFrame({"episode": np.repeat(np.arange(count), 2), "group": np.tile([1, 2], count)})
    return episodes, kernels


def test_intervals_of_a_sets_gain_hold_the_truth() -> None:
    random = np.random.default_rng(4)
    instances, each, held, trials = 12, 3, 0, 300
    for _ in range(trials):
        lost = np.repeat(random.normal(1000, 200, instances), each) + random.normal(0, 100, instances * each)
        block = pl.Series(np.repeat(np.arange(instances), each))
        (row,) = sets_of(*episodes_of(lost), block, pl.ones(instances, eager=True)).to_dicts()
        held += row["low"] <= -1000 * instances * each <= row["high"]
    assert held / trials == pytest.approx(0.95, abs=0.03)


def test_a_gain_in_few_instances_of_a_phase_is_less_certain_than_the_same_in_all() -> None:
    def width(instances: list[int]) -> float:
        rows = sets_of(
            *episodes_of([400 // len(instances)] * len(instances)), pl.Series(instances), pl.ones(20, eager=True)
        )
        assert rows["gain"].to_list() == [-400]
        return float(rows["high"][0] - rows["low"][0])

    assert width([3, 11]) > 100
    assert width(list(range(20))) == 0
