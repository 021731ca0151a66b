"""The ranges that nsys records of an unmodified script: its phases, what is evaluated in them, its modules."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from annotating import ROOT, Recorded, ended, inside, needs_mlx, of, recorder, stub_torch, tiny

from tracekit.capture.annotate.markers import marker

record = pytest.fixture(recorder)


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
