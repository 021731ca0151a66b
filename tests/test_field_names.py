"""Which kernels are one: names that compilers vary, templates, launch configurations."""

from pathlib import Path

import pytest
from conftest import Run
from field_notation import MS, diff_of, summary_of
from nsys_export import Export

from tracekit.analysis.wanted import Selection

MLX = "C{}BroadcastMultiplyAdd_{}_contiguous"


def kernels(*names: str, mangled: dict[str, str] | None = None, count: int = 1) -> Export:
    export = Export()
    for index in range(count):
        for place, name in enumerate(names):
            at = MS + (index * len(names) + place) * 1000
            export.kernel(at, at + 100 + place, name=name, mangled=(mangled or {}).get(name))
    return export


def test_two_mangled_names_under_one_demangled_name_are_two_kernels(tmp_path: Path) -> None:
    export = Export()
    for index, mangled in enumerate(("_Z1kIiEvv", "_Z1kIjEvv", "_Z1kIiEvv")):
        export.kernel(MS + index * 1000, MS + index * 1000 + 100, name="k<int>", mangled=mangled)
    found = {row.mangled_name: row.count for row in summary_of(export, tmp_path).kernels}
    assert found == {"_Z1kIiEvv": 2, "_Z1kIjEvv": 1}
    assert len(diff_of(export, export, tmp_path).kernels) == 2
    (row,) = summary_of(export, tmp_path, Selection(by="name")).kernels
    assert (row.name, row.mangled_name, row.count) == ("k<int>", None, 3)


def test_kernels_without_mangled_names_are_told_by_their_demangled_ones(tmp_path: Path) -> None:
    export = kernels("k<int>", "k<float>", mangled={"k<int>": "", "k<float>": ""}, count=2)
    assert {(row.name, row.count) for row in summary_of(export, tmp_path).kernels} == {("k<int>", 2), ("k<float>", 2)}


TEMPLATED = "void moe::combineKernel<DispatchLayout::X, 4>(moe::dispatch_params)"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("dispatch", ["dispatchKernel"]),
        ("(?i)dispatch", ["dispatchKernel"]),
        ("combine", [TEMPLATED]),
        ("^combineKernel$", [TEMPLATED]),
        ("moe", []),
        ("moe::", [TEMPLATED]),
        ("<DispatchLayout", [TEMPLATED]),
        (".", [TEMPLATED, "dispatchKernel"]),
    ],
)
def test_a_filter_meets_base_names_unless_it_is_meant_for_whole_ones(
    tmp_path: Path, pattern: str, found: list[str]
) -> None:
    export = kernels(TEMPLATED, "dispatchKernel")
    answer = summary_of(export, tmp_path, Selection(kernel=pattern))
    assert sorted(row.name or "" for row in answer.kernels) == sorted(found)


def test_the_filter_of_the_command_line_meets_base_names(tmp_path: Path, run: Run) -> None:
    path = kernels(TEMPLATED, "dispatchKernel").write(tmp_path / "t.sqlite")
    answer = run("summary", path, "--kernel", "dispatch", "--format", "json").answer
    assert [row["name"] for row in answer["kernels"]] == ["dispatchKernel"]


VARIED = [
    pytest.param(
        MLX.format("I", "6142509188972423790"), MLX.format("I", "9988776655443322110"), id="MLX constant hash"
    ),
    pytest.param("triton_poi_0d1d2", "triton_poi_0d1d2d", id="Triton specialisation"),
    pytest.param("add_kernel_0d1d2d3de", "add_kernel_0d1d2d3d", id="Triton divisibility"),
    pytest.param("fused$jit$a1", "fused$jit$b2", id="$jit$"),
    pytest.param("fused.jit.3", "fused.jit.12", id=".jit.N"),
]


@pytest.mark.parametrize(("one", "other"), VARIED)
def test_what_compilers_vary_is_left_out_of_a_name_with_one_candidate_a_side(
    tmp_path: Path, one: str, other: str
) -> None:
    answer = diff_of(kernels(one, "k", count=6), kernels(other, "k", count=6), tmp_path)
    assert (answer.only_a, answer.only_b) == ([], [])
    row = next(row for row in answer.kernels if row.name != "k")
    assert (row.name, row.name_b, row.matched_by) == (one, other, "normalised name")
    assert row.note is not None
    assert "compiler varies" in row.note
    plain = next(row for row in answer.kernels if row.name == "k")
    assert (plain.name_b, plain.matched_by) == (None, "key")


@pytest.mark.parametrize(("one", "other"), [case.values for case in VARIED])
@pytest.mark.parametrize("crowded", ["a", "b"])
def test_two_candidates_are_left_unmatched(tmp_path: Path, one: str, other: str, crowded: str) -> None:
    sides = {"a": [one], "b": [other]}
    sides[crowded].append(
        one.replace("6142509188972423790", "1111111111111111111")
        .replace("0d1d2", "0d1c2")
        .replace("jit$a1", "jit$c3")
        .replace("jit.3", "jit.7")
    )
    answer = diff_of(kernels(*sides["a"]), kernels(*sides["b"]), tmp_path)
    assert answer.kernels == []
    assert sorted(row.name or "" for row in answer.only_a) == sorted(sides["a"])
    assert sorted(row.name or "" for row in answer.only_b) == sorted(sides["b"])


def test_kernels_of_the_same_name_are_matched_before_others_are_normalised(tmp_path: Path) -> None:
    """A name that both sides have stands for itself, and is no candidate for another."""
    hashes = [MLX.format("I", digits * 19) for digits in "123"]
    answer = diff_of(kernels(hashes[0], hashes[1]), kernels(hashes[0], hashes[2]), tmp_path)
    assert {(row.name, row.name_b) for row in answer.kernels} == {(hashes[0], None), (hashes[1], hashes[2])}


@pytest.mark.parametrize(("one", "other"), [("conv_2d", "conv_3d"), ("scan_1d", "scan_2d"), ("copy_16c", "copy_32c")])
def test_a_size_in_a_name_is_no_specialisation(tmp_path: Path, one: str, other: str) -> None:
    answer = diff_of(kernels(one), kernels(other), tmp_path)
    assert ([row.name for row in answer.only_a], [row.name for row in answer.only_b]) == ([one], [other])


def test_names_that_differ_in_more_than_a_hash_are_not_matched(tmp_path: Path) -> None:
    a, b = MLX.format("I", "6142509188972423790"), MLX.format("J", "6142509188972423790")
    answer = diff_of(kernels(a), kernels(b), tmp_path)
    assert [row.name for row in answer.only_a] == [a]
    assert [row.name for row in answer.only_b] == [b]


def test_a_normalised_name_does_not_match_another_launch_configuration(tmp_path: Path) -> None:
    a, b = Export(), Export()
    a.kernel(MS, MS + 100, name=MLX.format("I", "6142509188972423790"), grid=(64, 1, 1))
    b.kernel(MS, MS + 100, name=MLX.format("I", "9988776655443322110"), grid=(128, 1, 1))
    answer = diff_of(a, b, tmp_path)
    assert (answer.kernels, len(answer.only_a), len(answer.only_b)) == ([], 1, 1)


@pytest.mark.parametrize(
    "shapes",
    [
        ({"grid": (64, 1, 1)}, {"grid": (4096, 1, 1)}),
        ({"grid": (64, 1, 1)}, {"grid": (1, 64, 1)}),
        ({"block": (128, 1, 1)}, {"block": (256, 1, 1)}),
        ({"cluster": (0, 0, 0)}, {"cluster": (2, 1, 1)}),
        ({"smem": 0}, {"smem": 49_152}),
    ],
)
def test_another_launch_configuration_is_another_kernel(tmp_path: Path, shapes: tuple[dict[str, object], ...]) -> None:
    export = Export()
    for index in range(10):
        for shape, duration in zip(shapes, (10, 900), strict=True):
            at = MS + index * 10_000 + duration
            export.kernel(at, at + duration, name="k", **shape)  # type: ignore[arg-type]
    assert [row.median_ns for row in summary_of(export, tmp_path).kernels] == [900, 10]
    assert {(row.median_ns_a, row.median_ns_b) for row in diff_of(export, export, tmp_path).kernels} == {
        (10, 10),
        (900, 900),
    }
    (row,) = summary_of(export, tmp_path, Selection(by="name")).kernels
    assert (row.count, row.median_ns, row.grid, row.mixed) == (20, 455, None, True)


def test_registers_and_stream_are_no_part_of_a_kernel(tmp_path: Path) -> None:
    export = Export()
    for index in range(4):
        at = MS + index * 1000
        export.kernel(at, at + 100, index, name="k", registers=32 + index, context=index)
    assert [row.count for row in summary_of(export, tmp_path).kernels] == [4]
