"""Running an unmodified script with ranges round its phases: python's own behaviour is the oracle."""

import os
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

from tracekit.capture.annotate.markers import marker
from tracekit.capture.nsys import export_report, find_nsys
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


FACTS = '''\
"""Facts that a program can see of how it is run."""
import os, sys
print(sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())
print(__name__, __file__, __package__, __doc__, type(__loader__).__name__, getattr(__spec__, "name", None))
print(sorted(globals()), type(__builtins__).__name__, os.getcwd())
'''


def test_script_sees_what_python_shows_it(tmp_path: Path) -> None:
    written(tmp_path / "real/facts.py", FACTS)
    (tmp_path / "link.py").symlink_to(tmp_path / "real/facts.py")
    as_python(tmp_path, "real/facts.py")
    as_python(tmp_path, str(tmp_path / "real/facts.py"), "--mode", "off", "-m", "x", "--", "")
    as_python(tmp_path, "link.py", "a b")
    as_python(tmp_path, "real/facts.py", PYTHONSAFEPATH="1")


def test_modules_folders_and_archives(tmp_path: Path) -> None:
    written(tmp_path / "pack/__init__.py", "")
    written(tmp_path / "pack/value.py", "VALUE = 3")
    written(tmp_path / "pack/__main__.py", FACTS + "from .value import VALUE\nprint(VALUE)\n")
    written(tmp_path / "pack/tool.py", FACTS + "from pack.value import VALUE\nprint(VALUE)\n")
    written(tmp_path / "folder/__main__.py", FACTS)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", FACTS)
    as_python(tmp_path, "-m", "pack", "-m", "--mode")
    as_python(tmp_path, "-m", "pack.tool", "1")
    as_python(tmp_path, "folder", "1")
    as_python(tmp_path, "archive.zip", "1")
    as_python(tmp_path, "archive.zip", PYTHONSAFEPATH="1")


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.exit(7)",
        "import sys; sys.exit('a reason')",
        "import os; print('out', flush=True); os._exit(9)",
        "def f():\n    1 / 0\ntry:\n    f()\nexcept ArithmeticError as error:\n    raise KeyError('y') from error",
        "raise KeyboardInterrupt",
        "x = (\n",
        "import sys\nsys.excepthook = lambda kind, error, trace: print('own', kind, trace.tb_lineno)\n1 / 0",
        "import atexit; atexit.register(print, 'late')",
        "import threading\nthreading.Timer(0.2, lambda: print(__import__('__main__').__dict__ is globals())).start()",
        "from missing import thing",
    ],
)
def test_program_ends_as_under_python(tmp_path: Path, text: str) -> None:
    written(tmp_path / "end.py", text)
    as_python(tmp_path, "end.py")


def test_source_encoding_and_no_inherited_future(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(
        b"# coding: latin-1\nprint('\xe9')\ndef f(x: 1 + 1): ...\nprint(f.__annotations__)\n"
    )
    assert as_python(tmp_path, "latin.py").stdout == "é\n{'x': 2}\n"


def test_children_of_multiprocessing(tmp_path: Path) -> None:
    program = """\
        import multiprocessing, sys
        def square(x):
            return x * x, __name__, sys.argv
        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(square, [3]))
        """
    written(tmp_path / "pool.py", program)
    assert "9" in as_python(tmp_path, "pool.py", "x").stdout
    assert "9" in as_python(tmp_path, "-m", "pool", "x").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--mode"],
        ["--mode", "x", "s.py"],
        ["-m"],
        ["absent.py"],
        ["empty"],
        ["-m", "absent"],
        ["-m", "absent.more"],
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty").mkdir()
    end = ended([*ANNOTATE, *arguments], tmp_path)
    assert (end.returncode, end.stdout, len(end.stderr.splitlines())) == (2, "", 1)


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


@needs_nvtx
def test_failing_model_shows_no_frame_of_ours(tmp_path: Path) -> None:
    stub_torch(tmp_path, "Layer.forward = lambda self, x: 1 / 0\nNet()(Ids(1, 5))")
    for mode in ("phases", "modules", "sync-modules"):
        assert as_python(tmp_path, "script.py", mode=mode).returncode == 1


@needs_nvtx
def test_failing_hook_steps_aside_and_says_so_once(tmp_path: Path) -> None:
    stub_torch(
        tmp_path,
        """\
        class Hostile:
            @property
            def shape(self):
                raise RuntimeError("no shape")
        for _ in range(3):
            print(type(Net()(Hostile())).__name__)
        """,
    )
    said = as_python(tmp_path, "script.py").stderr
    assert said.count("some ranges are missing from this run (RuntimeError: no shape)") == 1


@needs_nvtx
def test_says_once_when_nothing_could_be_annotated(tmp_path: Path) -> None:
    written(tmp_path / "idle.py", "import os, sys\nif os.fork() == 0:\n    sys.exit()\nos.wait()")
    assert as_python(tmp_path, "idle.py").stderr.count("nothing was annotated") == 1
    off = ended([*ANNOTATE, "--mode", "off", "idle.py"], tmp_path, NVTX_INJECTION64_PATH="/nowhere")
    assert (off.returncode, off.stderr) == (0, "")


def test_without_the_package_the_script_runs_and_the_mend_is_said(tmp_path: Path) -> None:
    written(tmp_path / "nvtx.py", "raise ImportError('absent')")
    written(tmp_path / "script.py", "print(1)")
    end = ended([*ANNOTATE, "script.py"], tmp_path, NVTX_INJECTION64_PATH="/nowhere", PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (end.returncode, end.stdout) == (0, "1\n")
    assert "pip install 'tracekit[nvtx]'" in end.stderr


Recorded = Callable[..., tuple[pl.DataFrame, subprocess.CompletedProcess[str]]]


@pytest.fixture
def record(tmp_path: Path) -> Recorded:
    """``record(script, mode=, **env)``: the ranges that nsys records of a script in ``tmp_path``, with payloads."""
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("nsys is not installed (TRACEKIT_NSYS names it where it is not on PATH)")
    pytest.importorskip("nvtx")

    def recorded(
        script: Path, mode: str = "phases", **env: str
    ) -> tuple[pl.DataFrame, subprocess.CompletedProcess[str]]:
        report = tmp_path / f"{mode}.nsys-rep"
        command = [str(nsys), "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"]
        end = ended([*command, f"--output={report}", *ANNOTATE, "--mode", mode, str(script)], tmp_path, **env)
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


def test_own_phases_are_recorded_and_go_before_ours(tmp_path: Path, record: Recorded) -> None:
    script = stub_torch(
        tmp_path,
        """\
        from tracekit import phase
        @phase("decorated")
        def work():
            Net()(Ids(1, 5))
        work()
        with phase("outer"), phase("inner"):
            Net()(Ids(1, 5))
        Net()(Ids(1, 5))
        """,
    )
    ranges, end = record(script)
    assert of(ranges) == [("decorated", None), ("outer", None), ("inner", None), ("prefill", 5)]
    assert "tracekit:" not in end.stderr


def test_torch_models_called_by_the_script_are_phases(tmp_path: Path, record: Recorded) -> None:
    script = stub_torch(
        tmp_path,
        """\
        net = Net()
        net(Ids(2, 7)); net(Ids(2, 1)); net(x=Ids(1, 1)); Layer()(1)
        torch.compiler.tracing = True
        net(Ids(2, 7))
        """,
    )
    ranges, _ = record(script, "modules")
    assert of(ranges) == [("prefill", 14), ("decode", 2), ("Net", None)]
    modules = Counter(ranges.filter(domain="tracekit.modules")["name"].to_list())
    assert modules == {"Net": 3, "first": 3, "second": 3, "Layer": 1}


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


@needs_mlx
@pytest.mark.parametrize("version", ["installed", "0.2.11"])
def test_each_decode_range_launches_one_step(tmp_path: Path, record: Recorded, version: str) -> None:
    packages = tmp_path / "packages"
    if version != "installed":
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), f"nvtx=={version}"]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            pytest.skip(f"nvtx {version} cannot be installed")
    script = tiny(
        tmp_path,
        """\
        for _ in range(2):
            print([token for token, _ in generate_step(prompt, model, max_tokens=5, prefill_step_size=16)])
        """,
    )
    ranges, end = record(script, PYTHONPATH=f"{packages}:{ROOT}")
    # mlx_lm computes one token more than it gives out, and 40 tokens in chunks of 16, 16, 7 and the last one.
    assert of(ranges) == 2 * [("prefill", 40), *5 * [("decode", 1)]]
    assert [step["mx.async_eval"] for step in inside(ranges, "decode")] == 10 * [1]
    assert [(chunks["mx.eval"], chunks["mx.async_eval"]) for chunks in inside(ranges, "prefill")] == 2 * [(3, 1)]
    alone = ended([sys.executable, str(script)], tmp_path).stdout
    assert alone in end.stdout


@needs_mlx
def test_loops_of_the_scripts_own(tmp_path: Path, record: Recorded) -> None:
    script = tiny(
        tmp_path,
        """\
        kept = cache.make_prompt_cache(model)
        token = mx.argmax(model(prompt[None], cache=kept)[:, -1], axis=-1)
        mx.eval(token)
        mx.eval(mx.zeros(3) + 1)
        for _ in range(3):
            token = mx.argmax(model(token[None], cache=kept)[:, -1], axis=-1)
            mx.async_eval(token)
        for _ in range(2):
            token = mx.array([mx.argmax(model(token[None], cache=kept)[0, -1]).item()])
        """,
    )
    ranges, _ = record(script)
    assert of(ranges) == [("prefill", 40), *5 * [("decode", 1)]]
    assert inside(ranges, "prefill") == [{"mx.eval": 1}]
    assert inside(ranges, "decode") == [*3 * [{"mx.async_eval": 1}], *2 * [{"mx.array.item": 1}]]


@needs_mlx
def test_speculative_rounds_are_decode_steps(tmp_path: Path, record: Recorded) -> None:
    script = tiny(
        tmp_path,
        "print([step[0] for step in speculative_generate_step(prompt, model, build(1), max_tokens=6)])",
    )
    ranges, _ = record(script)
    names = [name for name, _ in of(ranges)]
    assert names == ["prefill", *(len(names) - 1) * ["decode"]]
    assert 1 <= len(names) - 1 <= 5


@needs_mlx
@pytest.mark.parametrize("mode", ["modules", "sync-modules"])
def test_modules_by_their_path(tmp_path: Path, record: Recorded, mode: str) -> None:
    script = tiny(
        tmp_path,
        """\
        print([token for token, _ in generate_step(prompt, model, max_tokens=3)])
        print(*(path for path, _ in model.named_modules()))
        """,
    )
    ranges, end = record(script, mode)
    tokens, paths = ended([sys.executable, str(script)], tmp_path).stdout.splitlines()
    assert tokens in end.stdout
    # Lists of layers are not called; rope is called for queries and keys, the others once in each of 5 calls.
    called = Counter(ranges.filter(domain="tracekit.modules")["name"].to_list())
    assert called.keys() <= {*paths.split(), "Model"}
    assert {called[name] for name in called if not name.endswith("rope")} == {5}
    assert of(ranges) == [("prefill", 40), *3 * [("decode", 1)]]
    note = {"modules": "time how MLX builds its graph", "sync-modules": "the run as a whole is another"}[mode]
    assert end.stderr.count(note) == 1


@needs_mlx
def test_evaluating_where_it_is_impossible_harms_nothing(tmp_path: Path, record: Recorded) -> None:
    script = tiny(
        tmp_path,
        """\
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        loss, _ = nn.value_and_grad(net, lambda x: net(x).sum())(mx.ones((2, 4)))
        print("done", loss.shape)
        """,
    )
    _, end = record(script, "sync-modules")
    assert "done ()" in end.stdout
    assert end.stderr.count("some ranges are missing") <= 1


def test_a_marker_is_made_once() -> None:
    pytest.importorskip("nvtx")
    assert marker("tracekit.test", "a", 1) is marker("tracekit.test", "a", 1)
