"""Scripts run annotated, and the ranges that nsys records of them."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

from tracekit.capture.nsys import ATTEMPTS, export_report, find_nsys
from tracekit.trace.source import open_trace

ROOT = Path(__file__).parents[1]
ANNOTATE = [sys.executable, "-m", "tracekit.capture.annotate"]

needs_nvtx = pytest.mark.skipif(find_spec("nvtx") is None, reason="the nvtx package is not installed")
needs_mlx = pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx_lm is not installed")


def ended(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, **env},
        text=True,
        capture_output=True,
        check=False,
    )


def as_python(folder: Path, *arguments: str, mode: str = "phases", **env: str) -> subprocess.CompletedProcess[str]:
    """The end of an annotated program, which is the same by python alone, and annotated for a profiler or not."""
    alone = ended([sys.executable, *arguments], folder, **env)
    plain = ended([*ANNOTATE, *arguments], folder, **env)
    hooked = ended([*ANNOTATE, "--mode", mode, *arguments], folder, **env, NVTX_INJECTION64_PATH="/nowhere")
    said = [line for line in hooked.stderr.splitlines(keepends=True) if not line.startswith("tracekit: ")]
    assert (plain.stdout, plain.stderr, plain.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    assert (hooked.stdout, "".join(said), hooked.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    return hooked


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


STUB_TORCH = {
    "torch/__init__.py": "from torch import nn\nfrom torch import compiler\n",
    "torch/compiler.py": "tracing = False\ndef is_compiling():\n    return tracing\n",
    "torch/nn/__init__.py": "from torch.nn.modules.module import Module\n",
    "torch/nn/modules/__init__.py": "",
    "torch/nn/modules/module.py": """\
        class Module:
            def __call__(self, *args, **kwargs):
                return self.forward(*args, **kwargs)
            def named_modules(self, path=""):
                yield path, self
                for name, child in vars(self).items():
                    if isinstance(child, Module):
                        yield from child.named_modules(f"{path}.{name}".lstrip("."))
            def children(self):
                return (child for child in vars(self).values() if isinstance(child, Module))
        """,
}
STUB_MODEL = """\
    import torch
    class Ids:
        dtype = "torch.int64"
        def __init__(self, *shape):
            self.shape = shape
    class Layer(torch.nn.Module):
        def forward(self, x):
            return x
    class Net(torch.nn.Module):
        def __init__(self):
            self.first, self.second = Layer(), Layer()
        def forward(self, x):
            return self.second(self.first(x))
    """


def stub_torch(folder: Path, script: str) -> Path:
    for name, text in STUB_TORCH.items():
        written(folder / name, text)
    return written(folder / "script.py", dedent(STUB_MODEL) + dedent(script))


TINY_MODEL = """\
    import importlib.util
    importlib.util.find_spec("mlx.core")  # To look for a module is not to import it.
    import mlx.core as mx, mlx.nn as nn
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.models import cache, llama
    def build(layers=2):
        mx.random.seed(layers)
        model = llama.Model(llama.ModelArgs.from_dict(dict(
            model_type="llama", hidden_size=64, num_hidden_layers=layers, intermediate_size=128, vocab_size=128,
            num_attention_heads=2, num_key_value_heads=2, rms_norm_eps=1e-5)))
        nn.quantize(model, group_size=32, bits=4)
        mx.eval(model.parameters())
        return model
    model = build()
    prompt = mx.arange(40)
    """


def tiny(folder: Path, script: str) -> Path:
    return written(folder / "tiny.py", dedent(TINY_MODEL) + dedent(script))


Recorded = Callable[..., tuple[pl.DataFrame, subprocess.CompletedProcess[str]]]


def recorder(tmp_path: Path) -> Recorded:
    """For a fixture: ``record(script, mode=, **env)`` gives the ranges of a script in ``tmp_path``, with payloads."""
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("nsys is not installed (TRACEKIT_NSYS names it where it is not on PATH)")
    pytest.importorskip("nvtx")

    def recorded(
        script: Path, mode: str = "phases", **env: str
    ) -> tuple[pl.DataFrame, subprocess.CompletedProcess[str]]:
        report = tmp_path / f"{mode}.nsys-rep"
        command = [str(nsys), "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"]
        for _ in range(ATTEMPTS):
            end = ended([*command, f"--output={report}", *ANNOTATE, "--mode", mode, str(script)], tmp_path, **env)
            if report.exists():
                break
        export = report.with_suffix(".sqlite")
        export_report(report, export)
        with open_trace(export, cached=False) as trace:
            ranges = trace.ranges
        with sqlite3.connect(export) as database:
            rows = database.execute("SELECT start, int64Value FROM NVTX_EVENTS WHERE eventType = 59").fetchall()
        payloads = pl.DataFrame(rows, schema={"start": pl.Int64, "tokens": pl.Int64}, orient="row")
        return ranges.join(payloads, on="start", how="left").sort("start"), end

    return recorded


def of(ranges: pl.DataFrame, domain: str = "tracekit") -> list[tuple[str, int | None]]:
    return ranges.filter(pl.col("domain") == domain).select("name", "tokens").rows()


def inside(ranges: pl.DataFrame, name: str) -> list[Counter[str]]:
    """What was evaluated in each phase of a name, by the phase."""
    evaluated = ranges.filter(pl.col("domain") == "tracekit.mlx")
    return [
        Counter(evaluated.filter((pl.col("start") >= start) & (pl.col("end") <= end))["name"].to_list())
        for start, end in ranges.filter(domain="tracekit", name=name).select("start", "end").rows()
    ]
