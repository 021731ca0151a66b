"""What the guide to benchmarking shows is what the program does."""

import re
from pathlib import Path
from typing import get_args

import pytest
import typer.main
from bench_building import row, told
from conftest import Run

from tracekit.analysis.results.bench import Mark
from tracekit.cli import app
from tracekit.report.views.bench import MARKS

GUIDE = (Path(__file__).parents[1] / "docs" / "benchmarking.md").read_text()


def test_the_guide_and_the_table_explain_every_mark() -> None:
    explained = {mark for line in re.findall(r"^\| ([a-z, -]+) \|", GUIDE, re.M) for mark in line.split(", ")}
    assert set(get_args(Mark)) == set(MARKS)
    assert set(get_args(Mark)) <= explained


def test_the_flip_of_the_guide_is_what_is_said_of_its_times() -> None:
    rows = [
        row(1.0), row(1.0, method="batched"),
        row(1 / 0.52, candidate="mine"), row(1 / 1.13, method="batched", candidate="mine"),
    ]  # fmt: skip
    (shown,) = re.findall(r"^M=1, hot, bare: the ranking flips.*$", GUIDE, re.M)
    assert shown in told(rows).splitlines()


def test_the_operation_of_the_guide_runs(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlx.core", reason="MLX is not installed")
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
    (tmp_path / "kernels.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    quick = ["--k", 64, "--rounds", 1, "--chain-length", 8, "--batch", 8, "--bandwidth", 1, "--cache-size", 0.01]
    shown = call("bench", "--op", "kernels:fused_mlp", "--vs", "matmul", "--m", "1,2", "--dtype", "f32", *quick)
    assert shown.code == 0, shown.err
    assert "bench of kernels:fused_mlp against matmul" in shown.out


@pytest.mark.parametrize("line", re.findall(r"^\$ tracekit bench (.*)", GUIDE, re.M))
def test_commands_in_the_guide_can_be_asked_for(line: str) -> None:
    command = typer.main.get_command(app).commands["bench"]  # type: ignore[attr-defined]
    with command.make_context("bench", line.split()) as context:
        assert context.params["what"] or context.params["op"] or context.params["compare"]
