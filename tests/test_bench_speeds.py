"""A model's speed over arms, put together from what their processes measured."""

import shutil
from pathlib import Path

import pytest

from tracekit.analysis.results import BenchModel
from tracekit.bench.generation import Times
from tracekit.bench.speeds import speed_arms, speed_rows
from tracekit.errors import WrongUsage
from tracekit.report import table
from tracekit.report.views.bench_model import document


def process(*runs: float, workload: str = "decode", tokens: int = 64) -> Times:
    """One process: a warm-up and counted runs, in ms."""
    return Times("planted", {"mlx": "0"}, {workload: [run * 1e6 for run in runs]}, {workload: tokens})


# 27B dense decode, published as 12.5 tokens a second without graphs and 13.0 with: 64 tokens a run.
DEFAULT = [process(9000, 4923, 4923, 4923), process(9500, 4930, 4930, 4930), process(9100, 4916, 4916, 4916)]
OFF = [process(8000, 5120, 5120, 5120), process(8100, 5127, 5127, 5127), process(8200, 5113, 5113, 5113)]


def test_each_process_warms_up_with_its_first_run() -> None:
    (row,) = speed_rows({"default": DEFAULT})
    assert (row.n, row.time_ns, row.warm_up_ns) == (9, 4923e6, 9100e6)
    assert row.tokens_per_s == pytest.approx(13.0, abs=0.01)
    assert (row.ratio, row.ratio_ci95) == (None, None)


def test_the_ratio_is_of_processes_in_turn() -> None:
    default, off = speed_rows({"default": DEFAULT, "off": OFF})
    assert default.ratio is None
    assert off.ratio == pytest.approx(5120 / 4923, rel=1e-3)
    assert off.ratio_ci95 is not None
    assert off.ratio_ci95[0] < 5120 / 4923 < off.ratio_ci95[1]


def test_two_processes_an_arm_decide_nothing() -> None:
    assert speed_rows({"default": DEFAULT[:2], "off": OFF[:2]})[1].ratio is None


def test_the_table_has_the_published_shape() -> None:
    passes = {
        "default": [process(70, 62.5, 62.5, workload="forward S=6", tokens=6)],
        "off": [process(70, 44.5, 44.5, workload="forward S=6", tokens=6)],
    }
    answer = BenchModel(
        tracekit="0", command="benchmodel", traces=[], warnings=[], phase="decode", model="27B", device="planted",
        versions={"mlx": "0"}, arms={"default": "as it is", "off": "MLX_USE_CUDA_GRAPHS=0"},
        rows=[*speed_rows({"default": DEFAULT, "off": OFF}), *speed_rows(passes)],
    )  # fmt: skip
    shown = [line.split("  ") for line in table.render(document(answer)).splitlines()]
    lines = [[cell.strip() for cell in line if cell.strip()] for line in shown]
    start = lines.index(["Speed by arm"])
    assert lines[start + 1 : start + 4] == [
        ["workload", "default", "off"],
        ["decode", "13.0 tok/s", "12.5 tok/s"],
        ["forward S=6", "62.5 ms", "44.5 ms"],
    ]


def test_without_an_nvidia_gpu_there_is_one_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(arm.name, arm.told) for arm in speed_arms([])] == [("default", "as it is")]


def test_with_an_nvidia_gpu_the_arms_are_those_of_the_published_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '<log><gpu><product_name>GB10</product_name></gpu></log>'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(shutil.which('sh') or '/bin/sh').parent}")
    assert {arm.name: arm.told for arm in speed_arms([])} == {
        "default": "as it is",
        "serial": "MLX_CUDA_GRAPH_SERIAL=1",
        "off": "MLX_USE_CUDA_GRAPHS=0",
    }


def test_own_arms_stand_beside_the_default() -> None:
    arms = speed_arms(["ops1:MLX_MAX_OPS_PER_BUFFER=1", "two:A=1,B=2"])
    assert [(arm.name, arm.environment) for arm in arms] == [
        ("default", {}),
        ("ops1", {"MLX_MAX_OPS_PER_BUFFER": "1"}),
        ("two", {"A": "1", "B": "2"}),
    ]
    with pytest.raises(WrongUsage, match="two arms are called a"):
        speed_arms(["a:A=1", "a:B=1"])
