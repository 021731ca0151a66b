"""The workloads that ship, run for real where MLX is installed; and the recordings that the guide shows."""

import ctypes
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer.main

from tracekit.capture.nsys import export_report, find_nsys
from tracekit.cli import app
from tracekit.trace.source import open_trace

ROOT = Path(__file__).parents[1]
WORKLOADS = ROOT / "scripts" / "workloads"
TRACEKIT = [sys.executable, "-m", "tracekit"]
ARCHITECTURES = ["llama", "qwen3", "qwen3_5"]

needs_mlx = pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx_lm is not installed")


def ended(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": search, **env}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def figures(name: str, *arguments: str) -> dict[str, Any]:
    """The one line that a workload writes."""
    end = ended([sys.executable, str(WORKLOADS / f"{name}.py"), *arguments])
    assert end.returncode == 0, end.stderr
    (line,) = end.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def answer_of(program: str) -> object:
    """What a program prints that may use the workloads' own models."""
    end = ended([sys.executable, "-c", dedent(program)], PYTHONPATH=f"{WORKLOADS}:{ROOT}")
    assert end.returncode == 0, end.stderr
    return json.loads(end.stdout)


@needs_mlx
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_prefill_times_each_run(architecture: str) -> None:
    told = figures("mlx_prefill", "--tiny", architecture, "--tokens", "48", "--runs", "4")
    assert (told["workload"], told["model"], told["tokens"]) == ("mlx_prefill", f"tiny {architecture}", 48)
    assert len(told["seconds"]) == 4
    assert all(seconds > 0 for seconds in told["seconds"])
    assert told["median_s"] == pytest.approx(statistics.median(told["seconds"][1:]), abs=1e-6)


@needs_mlx
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_decode_gives_the_tokens_that_mlx_lm_gives(architecture: str) -> None:
    told = figures("mlx_decode", "--tiny", architecture, "--prompt", "20", "--tokens", "6")
    assert (len(told["seconds"]), told["prompt"], told["tokens"]) == (6, 20, 6)
    assert told["decoded"] == answer_of(
        f"""
        import argparse, json
        from mlx_lm.generate import generate_step
        from mlx_models import build, prompt
        model = build(argparse.Namespace(model=None, tiny={architecture!r}))
        print(json.dumps([token for token, _ in generate_step(prompt(21), model, max_tokens=6)]))
        """
    )


@needs_mlx
def test_tiny_models_are_what_they_are_called() -> None:
    counts = answer_of(
        """
        import argparse, json
        import mlx.nn as nn
        from mlx_models import TINY, build
        from mlx_lm.models.qwen3_5 import GatedDeltaNet
        counts = {}
        for name in TINY:
            modules = [module for _, module in build(argparse.Namespace(model=None, tiny=name)).named_modules()]
            quantized = {module.bits for module in modules if isinstance(module, nn.QuantizedLinear)}
            linear = sum(isinstance(module, nn.Linear) for module in modules)
            counts[name] = [sorted(quantized), linear, sum(isinstance(module, GatedDeltaNet) for module in modules)]
        print(json.dumps(counts))
        """
    )
    assert counts == {"llama": [[4], 0, 0], "qwen3": [[4], 0, 0], "qwen3_5": [[4], 0, 3]}


@needs_mlx
def test_a_model_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert answer_of(
        f"""
        import argparse, json
        from pathlib import Path
        from mlx_lm.utils import save_config, save_model
        from mlx_models import TINY, build
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast
        folder = Path({str(folder)!r})
        save_model(folder, build(argparse.Namespace(model=None, tiny="llama")))
        configuration = dict(TINY["llama"], model_type="llama", quantization=dict(group_size=64, bits=4))
        save_config(configuration, folder / "config.json")
        words = Tokenizer(models.WordLevel({{"a": 0, "b": 1}}, unk_token="a"))
        PreTrainedTokenizerFast(tokenizer_object=words, eos_token="b").save_pretrained(folder)
        print(json.dumps(True))
        """
    )
    told = figures("mlx_decode", "--model", str(folder), "--prompt", "20", "--tokens", "6")
    assert told["model"] == str(folder)
    assert told["decoded"] == figures("mlx_decode", "--tiny", "llama", "--prompt", "20", "--tokens", "6")["decoded"]


@needs_mlx
@pytest.mark.parametrize("name", ["mlx_prefill", "mlx_decode"])
@pytest.mark.parametrize("arguments", [[], ["--tiny", "gpt"], ["--tiny", "llama", "--tokens", "0"]])
def test_wrong_usage(name: str, arguments: list[str]) -> None:
    end = ended([sys.executable, str(WORKLOADS / f"{name}.py"), *arguments])
    assert (end.returncode, end.stdout) == (2, "")


recorded_phases = pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("mlx_prefill", ["--tokens", "48", "--runs", "3"], {"prefill": 3}),
        ("mlx_decode", ["--prompt", "20", "--tokens", "5"], {"prefill": 1, "decode": 5}),
    ],
)


def phases_in(export: Path) -> Counter[str]:
    with open_trace(export, cached=False) as trace:
        return Counter(trace.ranges.filter(domain="tracekit")["name"].to_list())


@pytest.fixture
def nsys() -> str:
    found = find_nsys()
    if found is None:
        pytest.skip("nsys is not installed (TRACEKIT_NSYS names it where it is not on PATH)")
    pytest.importorskip("nvtx")
    return str(found)


@needs_mlx
@recorded_phases
def test_phases_under_nsys_alone(
    tmp_path: Path, nsys: str, name: str, arguments: list[str], expected: dict[str, int]
) -> None:
    report = tmp_path / "run.nsys-rep"
    profile = [nsys, "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", f"--output={report}"]
    ended([*profile, sys.executable, str(WORKLOADS / f"{name}.py"), "--tiny", "qwen3_5", *arguments])
    export = report.with_suffix(".sqlite")
    export_report(report, export)
    assert phases_in(export) == expected


@needs_mlx
@recorded_phases
def test_phases_in_a_run_folder(
    tmp_path: Path, nsys: str, name: str, arguments: list[str], expected: dict[str, int]
) -> None:
    run = tmp_path / "run"
    request = ["run", "--graphs", "both", "--blocks", "1", "--nsys", nsys, "--output", str(run)]
    workload = [str(WORKLOADS / f"{name}.py"), "--tiny", "qwen3_5", *arguments]
    end = ended([*TRACEKIT, *request, *workload], TRACEKIT_DB=str(tmp_path / "results.db"))
    assert end.returncode == 0, end.stderr
    assert [phases_in(run / f"{arm}-1.sqlite") for arm in ("on", "off")] == [expected, expected]
    told = [json.loads(line) for line in end.stdout.splitlines()]
    assert [line["workload"] for line in told] == 4 * [name]
    assert len({str(line.get("decoded")) for line in told}) == 1
    if not has_driver():
        assert "no CUDA activity was recorded: there is no NVIDIA driver here" in end.stderr


def test_cuda_workload_builds_and_says_why_it_cannot_run(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    program = tmp_path / "graph"
    built = ended([nvcc, "-o", str(program), str(WORKLOADS / "graph.cu")])
    assert built.returncode == 0, built.stderr
    end = ended([str(program)])
    if not has_driver():
        assert (end.returncode, end.stdout, len(end.stderr.splitlines())) == (1, "", 1)
    else:
        assert json.loads(end.stdout)["graphs"] is True


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def recordings_in_the_guide() -> list[str]:
    return re.findall(r"^\$ tracekit run (.*)", (ROOT / "docs" / "recording.md").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("line", recordings_in_the_guide())
def test_recordings_in_the_guide_can_be_asked_for(line: str) -> None:
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    with command.make_context("run", shlex.split(line)) as context:
        assert context.params["words"]


def test_the_guide_shows_recordings() -> None:
    assert recordings_in_the_guide()
