"""Which kernel of one trace is which of another: never by position, names loosened only where it is safe."""

import random
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.kernels.matching import matched_labels, normalised_name
from tracekit.analysis.results import Diff
from tracekit.trace import schema
from tracekit.trace.source import open_trace

HASHED = "CompiledSigmoidMultiply_6142509188972423790_contiguous"
OTHER_HASH = "CompiledSigmoidMultiply_9070615843301846377_contiguous"
THIRD_HASH = "CompiledSigmoidMultiply_1111111111111111111_contiguous"


class K(NamedTuple):
    """A kernel key."""

    name: str
    grid: int = 1
    mangled: str | None = None
    cluster: int | None = 0
    smem: int = 0


def keys(*kernels: K) -> pl.DataFrame:
    rows = [
        {
            "key": i,
            "name": kernel.name,
            "mangled_name": kernel.mangled,
            "short_name": kernel.name,
            **dict.fromkeys(schema.LAUNCH_SHAPE, 1),
            "gridX": kernel.grid,
            "dynamicSharedMemory": kernel.smem,
            **dict.fromkeys(("clusterX", "clusterY", "clusterZ"), kernel.cluster),
        }
        for i, kernel in enumerate(kernels)
    ]
    return pl.DataFrame(rows, schema=schema.KERNEL_KEYS)


def matches(*traces: list[K]) -> set[tuple[K | None, ...]]:
    """Each group's kernel in every trace (None: not in it); at most one a trace."""
    labels = matched_labels([keys(*kernels) for kernels in traces])
    found = set()
    for (_,), rows in labels.partition_by("group", as_dict=True).items():
        members: list[K | None] = [None] * len(traces)
        for trace, key in rows.select("trace", "key").iter_rows():
            assert members[trace] is None
            members[trace] = traces[trace][key]
        found.add(tuple(members))
    return found


def both(kernel: K) -> tuple[K, K]:
    return kernel, kernel


def test_kernels_match_by_name_and_launch_configuration_not_by_position() -> None:
    a, b, c = K("a"), K("b"), K("c")
    assert matches([a, b], [a, c]) == {both(a), (b, None), (None, c)}
    assert matches([a, b, c], [c, b, a]) == {both(a), both(b), both(c)}


def test_another_launch_configuration_is_another_kernel() -> None:
    small, large = K("k", grid=64), K("k", grid=4096)
    assert matches([small], [large]) == {(small, None), (None, large)}
    assert matches([small, large], [large, small]) == {both(small), both(large)}
    more_memory = K("k", grid=64, smem=1024)
    assert matches([small], [more_memory]) == {(small, None), (None, more_memory)}


def test_two_mangled_names_under_one_demangled_name_are_two_kernels() -> None:
    one, other = K("f(int)", mangled="_Z1fi"), K("f(int)", mangled="_Z1fi.clone")
    assert matches([one, other], [other, one]) == {both(one), both(other)}


def test_a_constant_hash_is_loosened_when_one_candidate_stands_on_each_side() -> None:
    assert matches([K(HASHED)], [K(OTHER_HASH)]) == {(K(HASHED), K(OTHER_HASH))}


def test_a_constant_hash_stays_when_two_candidates_stand_on_a_side() -> None:
    assert matches([K(HASHED), K(THIRD_HASH)], [K(OTHER_HASH)]) == {
        (K(HASHED), None),
        (K(THIRD_HASH), None),
        (None, K(OTHER_HASH)),
    }
    assert matches([K(HASHED)], [K(OTHER_HASH), K(THIRD_HASH)]) == {
        (K(HASHED), None),
        (None, K(OTHER_HASH)),
        (None, K(THIRD_HASH)),
    }


def test_an_exact_match_comes_before_a_loose_one() -> None:
    assert matches([K(HASHED)], [K(HASHED), K(OTHER_HASH)]) == {both(K(HASHED)), (None, K(OTHER_HASH))}
    assert (K(HASHED), K(OTHER_HASH)) not in matches([K(HASHED), K("a")], [K(OTHER_HASH), K(HASHED)])


def test_loose_names_still_need_the_same_launch_configuration() -> None:
    one, other = K(HASHED, grid=17), K(OTHER_HASH, grid=17408)
    assert matches([one], [other]) == {(one, None), (None, other)}
    pairs = [(K(HASHED, grid=grid), K(OTHER_HASH, grid=grid)) for grid in (17, 17408)]
    assert matches([one for one, _ in pairs], [other for _, other in pairs]) == set(pairs)


def test_three_traces_share_one_loosened_kernel() -> None:
    assert matches([K(HASHED)], [K(OTHER_HASH)], [K(OTHER_HASH)]) == {(K(HASHED), K(OTHER_HASH), K(OTHER_HASH))}
    assert matches([K(HASHED)], [K("a")], [K(OTHER_HASH)]) == {
        (K(HASHED), None, K(OTHER_HASH)),
        (None, K("a"), None),
    }


def test_a_kernel_that_two_of_three_traces_share_is_no_loosened_one() -> None:
    labels = matched_labels([keys(K(HASHED)), keys(K(HASHED)), keys(K("a"))])
    assert not labels["normalised"].any()


def test_a_mangled_name_that_one_trace_lacks_does_not_part_a_kernel() -> None:
    named, bare = K("f(int)", mangled="_Z1fi"), K("f(int)")
    assert matches([named], [bare]) == {(named, bare)}


def test_a_cluster_that_is_not_recorded_is_no_cluster() -> None:
    recorded, absent = K("f(int)", cluster=0), K("f(int)", cluster=None)
    assert matches([recorded], [absent]) == {(recorded, absent)}


@pytest.mark.parametrize("seed", range(5))
def test_order_of_keys_means_nothing(seed: int) -> None:
    kernels = [K(HASHED), K("a"), K("a", grid=2), K("b"), K("c", mangled="_Z1c"), K("c", mangled="_Z1d")]
    others = [K(OTHER_HASH), K("a"), K("b"), K("d")]
    expected = matches(kernels, others)
    order = random.Random(seed)
    assert matches(order.sample(kernels, len(kernels)), order.sample(others, len(others))) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (HASHED, OTHER_HASH),
        ("triton_poi_fused_add_0_0d1d2d", "triton_poi_fused_add_0_0d1d2d3d"),
        ("triton_poi_fused_add_0_0d1d2", "triton_poi_fused_add_0_0d1d2d3d"),
        ("square$jit$abc", "square$jit$xyz"),
        ("loop_add.jit.1", "loop_add.jit.22"),
        ("kernel_0123456789abcdef0", "kernel_fedcba9876543210f"),
    ],
)
def test_what_a_compiler_varies_goes(one: str, other: str) -> None:
    names = pl.DataFrame({"name": [one, other]}).select(normalised_name(pl.col("name")))["name"]
    assert names.n_unique() == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x128_tn"),
        ("gemv_4bit", "gemv_8bit"),
        ("void f<int, 4>(int)", "void f<int, 8>(int)"),
        ("layer_1", "layer_2"),
    ],
)
def test_what_a_kernel_is_stays(one: str, other: str) -> None:
    names = pl.DataFrame({"name": [one, other]}).select(normalised_name(pl.col("name")))["name"]
    assert names.to_list() == [one, other]


def diff(folder: Path, *sides: list[tuple[str, int]]) -> Diff:
    """Compare exports of kernels given as (name, duration), one after another."""
    paths = []
    for i, kernels in enumerate(sides):
        export, now = Export(), 1_000_000
        for name, time in kernels:
            export.kernel(now, now + time, name=name, correlation=export.launch(now - 500, now - 400))
            now += time + 1000
        paths.append(export.write(folder / f"{i}.sqlite"))
    with open_trace(paths[0], cached=False) as one, open_trace(paths[1], cached=False) as other:
        return compare([one, other])


def test_kernels_on_one_side_are_listed_with_their_time(tmp_path: Path) -> None:
    answer = diff(tmp_path, [("a", 100), ("b", 300), ("b", 200)], [("a", 100), ("c", 700)])
    assert [row.name for row in answer.kernels] == ["a"]
    assert [(row.name, row.count, row.total_ns) for row in answer.only_a] == [("b", 2, 500)]
    assert [(row.name, row.count, row.total_ns) for row in answer.only_b] == [("c", 1, 700)]


def test_a_loosened_match_is_noted_and_keeps_both_names(tmp_path: Path) -> None:
    answer = diff(tmp_path, [(HASHED, 100), ("a", 100)], [(OTHER_HASH, 100), ("a", 100)])
    rows = {row.name: row for row in answer.kernels}
    assert (rows[HASHED].matched_by, rows[HASHED].name_b) == ("normalised name", OTHER_HASH)
    assert rows[HASHED].note is not None
    assert (rows["a"].matched_by, rows["a"].name_b) == ("key", None)
    assert answer.only_a == answer.only_b == []


def test_a_kernel_split_in_two_shows_in_count_and_time_per_iteration(tmp_path: Path) -> None:
    """One copy of 3908 ns becomes two of 1472 ns: the median is 0.38 times, the time 0.75 times as long."""
    whole, halves = [("copy", 3908)] * 6, [("copy", 1472)] * 12
    (row,) = diff(tmp_path, whole, halves).kernels
    assert row.ratio == pytest.approx(1472 / 3908, abs=1e-6)
    assert row.per_iteration_a is not None and row.per_iteration_b is not None
    assert row.per_iteration_b == 2 * row.per_iteration_a
    assert row.per_iteration_ns_a is not None and row.per_iteration_ns_b is not None
    assert row.per_iteration_ns_b / row.per_iteration_ns_a == pytest.approx(2944 / 3908)
    assert row.note is not None and "launches per iteration" in row.note
