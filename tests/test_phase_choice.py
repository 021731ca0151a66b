"""Which ranges are phases, and which of them are one."""

from pathlib import Path

import polars as pl
import pytest
from nsys_export import Export
from phase_building import OWN, against_itself, kernels_by_phase, opened, work

from tracekit.analysis.diff import compare
from tracekit.analysis.phases.assignment import normalised
from tracekit.analysis.results import ALL, OUTSIDE


def test_nested_ranges_of_the_own_domain_give_work_to_the_innermost(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 9000, "request", domain=OWN)
    export.range(2000, 3000, "prefill", domain=OWN)
    export.range(2200, 2400, "attention", domain=OWN)
    for launch in (1500, 2100, 2300, 2500, 3500):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {
        "request": [1600, 3600],
        "prefill": [2200, 2600],
        "attention": [2400],
    }


def test_without_the_own_domain_the_outermost_ranges_are_phases(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 5000, "step")
    export.range(1500, 2500, "layer", registered=True)
    for launch in (1100, 2000, 6000):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {"step": [1200, 2100], OUTSIDE: [6100]}


@pytest.mark.parametrize(
    "framework",
    ["QuantizedMatmul::eval_gpu", "CommandEncoder::commit", "gpu::synchronize", "aten::mm", "cudnnConvolutionForward"],
)
def test_ranges_of_frameworks_are_no_phases(tmp_path: Path, framework: str) -> None:
    export = Export()
    export.range(500, 9000, framework)
    export.range(1000, 5000, "step")
    export.range(1200, 1400, framework)
    for launch in (1100, 1300, 6000):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {"step": [1200, 1400], OUTSIDE: [6100]}


def test_ranges_of_library_domains_are_no_phases(tmp_path: Path) -> None:
    export = Export()
    export.range(500, 9000, "AllReduce", domain="NCCL")
    export.range(1000, 5000, "step")
    work(export, 1100, 1200)
    assert kernels_by_phase(opened(export, tmp_path)) == {"step": [1200]}


def test_the_own_domain_comes_before_other_ranges(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 9000, "everything")
    export.range(2000, 3000, "decode", domain=OWN)
    for launch in (1500, 2500):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {"decode": [2600], OUTSIDE: [1600]}


def test_ranges_started_and_ended_anywhere_count_where_they_are_asked_for(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 3000, "own", domain=OWN, kind=60)
    export.range(2000, 4000, "crossing", domain=OWN, kind=60)
    for launch in (1500, 2500, 3500):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {"own": [1600], "crossing": [2600, 3600]}


def test_ranges_started_and_ended_anywhere_are_no_phases_by_themselves(tmp_path: Path) -> None:
    export = Export()
    export.range(500, 9000, "request", kind=60)
    export.range(1000, 3000, "step")
    for launch in (700, 1500):
        work(export, launch, launch + 100)
    assert kernels_by_phase(opened(export, tmp_path)) == {"step": [1600], OUTSIDE: [800]}
    assert kernels_by_phase(opened(export, tmp_path), "^request$") == {"request": [800, 1600]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seq = 12", "seq = #"),
        ("step 7", "step #"),
        ("decode_17", "decode_#"),
        ("layer12", "layer#"),
        ("chunk [0, 512]", "chunk [#, #]"),
        ("lr = 0.001", "lr = #"),
        ("conv2d", "conv2d"),
        ("prefill fp16", "prefill fp16"),
        ("7", "#"),
        ("step 1/20", "step #/#"),
        ("tokens 512:1024", "tokens #:#"),
    ],
)
def test_numbers_in_names_are_normalised(name: str, expected: str) -> None:
    assert pl.DataFrame({"name": [name]}).select(normalised(pl.col("name"))).item() == expected


def test_names_that_differ_in_a_number_are_instances_of_one_phase(tmp_path: Path) -> None:
    export = Export()
    for step in range(6):
        export.range(10_000 * step + 1000, 10_000 * step + 5000, f"seq = {step + 10}")
        work(export, 10_000 * step + 2000, 10_000 * step + 3000)
    answer = against_itself(export, tmp_path)
    assert [(each.name, each.n_a, each.warm_up_a) for each in answer.phases] == [("seq = #", 5, 1)]


def test_a_pattern_chooses_the_ranges(tmp_path: Path) -> None:
    export = Export()
    export.range(1000, 9000, "request")
    export.range(2000, 3000, "layer 1")
    export.range(3000, 4000, "layer 2")
    export.range(500, 9500, "own", domain=OWN)
    for launch in (1500, 2500, 3500):
        work(export, launch, launch + 100)
    trace = opened(export, tmp_path)
    assert kernels_by_phase(trace, "^layer") == {"layer #": [2600, 3600], OUTSIDE: [1600]}
    assert kernels_by_phase(trace, "layer 2|request") == {"layer #": [3600], "request": [1600, 2600]}
    assert [each.name for each in compare([trace, trace], "^nothing").phases] == [ALL]
