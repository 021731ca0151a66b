"""Which arms a run has, how each is launched, and which framework a command line uses."""

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from tracekit.capture.arms import Arm, doubts, in_turn, parse_arm, plan_arms
from tracekit.capture.workload import Workload, named_framework
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.frameworks import FRAMEWORKS


def planned(
    graphs: str | None,
    framework: str | None = "MLX",
    *,
    own: tuple[str, ...] = (),
    words: tuple[str, ...] = ("bench.py",),
    environment: Mapping[str, str] | None = None,
    add_switches: bool = False,
) -> list[Arm]:
    used = named_framework(framework) if framework else None
    return plan_arms(graphs, own, used, words, environment or {}, add_switches=add_switches)  # type: ignore[arg-type]


def environments(arms: list[Arm], environment: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    return {arm.name: arm.applied_to(environment or {}) for arm in arms}


@pytest.mark.parametrize(
    ("names", "blocks", "order"),
    [
        ("A", 3, "A A A"),
        ("AB", 5, "A B B A A B B A A B"),
        ("ABC", 3, "A B C C B A A B C"),
    ],
)
def test_arms_take_turns_forward_and_backward(names: str, blocks: int, order: str) -> None:
    arms = [Arm(name, "own") for name in names]
    turns = list(in_turn(arms, blocks))
    assert " ".join(arm.name for _, arm in turns) == order
    assert [number for number, _ in turns] == [block for block in range(1, blocks + 1) for _ in names]


@pytest.mark.parametrize(
    ("framework", "on", "off"),
    [
        ("MLX", {"MLX_USE_CUDA_GRAPHS": "1"}, {"MLX_USE_CUDA_GRAPHS": "0"}),
        ("llama.cpp", {}, {"GGML_CUDA_DISABLE_GRAPHS": "1"}),
        ("Ollama", {}, {"GGML_CUDA_DISABLE_GRAPHS": "1"}),
        ("exllamav2", {}, {"EXLLAMA_NO_GRAPHS": "1"}),
        ("mistral.rs", {}, {"MISTRALRS_CUDA_GRAPHS": "0"}),
        ("JAX/XLA", {}, {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="}),
    ],
)
def test_each_framework_is_switched_by_its_own_variable(framework: str, on: object, off: object) -> None:
    assert environments(planned("both", framework)) == {"on": on, "off": off}


def test_no_switch_of_the_caller_reaches_an_arm() -> None:
    """What the user has set for other purposes must not turn one arm into the other."""
    for framework in FRAMEWORKS:
        if switch := framework.switch:
            inherited = {switch.variable: switch.off}
            here = environments(planned("both", framework.name, environment=inherited), inherited)
            clean = environments(planned("both", framework.name))
            assert here == clean, framework.name


def test_a_switch_among_other_words_leaves_them_alone() -> None:
    inherited = {"XLA_FLAGS": "--xla_dump_to=x --xla_gpu_enable_command_buffer=FUSION,CUBLAS"}
    assert environments(planned("both", "jax", environment=inherited), inherited) == {
        "on": {"XLA_FLAGS": "--xla_dump_to=x"},
        "off": {"XLA_FLAGS": "--xla_dump_to=x --xla_gpu_enable_command_buffer="},
    }


def test_dumps_never_reach_a_measured_arm() -> None:
    inherited = {"MLX_SAVE_CUDA_GRAPHS_DOT_FILE": "here"}
    for environment in environments(
        planned("both", own=("ops0:MLX_MAX_OPS_PER_BUFFER=0",), environment=inherited), inherited
    ).values():
        assert "MLX_SAVE_CUDA_GRAPHS_DOT_FILE" not in environment


def test_own_arms_have_graphs_on_unless_they_say_otherwise() -> None:
    arms = planned("on", own=("ops0:MLX_MAX_OPS_PER_BUFFER=0", "none:MLX_USE_CUDA_GRAPHS=0,A=1"))
    assert environments(arms) == {
        "on": {"MLX_USE_CUDA_GRAPHS": "1"},
        "ops0": {"MLX_USE_CUDA_GRAPHS": "1", "MLX_MAX_OPS_PER_BUFFER": "0"},
        "none": {"MLX_USE_CUDA_GRAPHS": "0", "A": "1"},
    }
    assert [arm.role for arm in arms] == ["on", "own", "own"]


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("a:X=1", {"X": "1"}),
        ("a:X=1,Y=2", {"X": "1", "Y": "2"}),
        ("a:X=", {"X": ""}),
        ("a:X=b,c,Y=d=e:f", {"X": "b,c", "Y": "d=e:f"}),
        ("a:XLA_FLAGS=--command_buffer=FUSION,CUBLAS", {"XLA_FLAGS": "--command_buffer=FUSION,CUBLAS"}),
    ],
)
def test_an_arm_is_a_name_and_variables(text: str, variables: dict[str, str]) -> None:
    assert parse_arm(text) == ("a", variables)


@pytest.mark.parametrize("text", ["a", "a:", ":X=1", "a:X", "../a:X=1", "a b:X=1", ".a:X=1", "a:1X=2", "a:=2"])
def test_an_arm_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage, match="NAME:ENV=VALUE"):
        parse_arm(text)


def test_arms_of_one_name_are_refused() -> None:
    with pytest.raises(WrongUsage, match="off"):
        planned("both", own=("off:A=1",))


def test_no_arm_at_all_is_refused() -> None:
    with pytest.raises(WrongUsage, match="--graphs"):
        planned(None)


def test_a_switch_on_the_command_line_is_added_only_when_asked() -> None:
    with pytest.raises(WrongUsage, match=r"--add-switches.*cudagraph_mode=NONE"):
        planned("both", "vllm", words=("vllm", "serve"))
    on, off = planned("both", "vllm", words=("vllm", "serve"), add_switches=True)
    assert (on.arguments, off.arguments) == ((), ("-cc.cudagraph_mode=NONE",))


def test_a_command_line_that_switches_graphs_off_is_arm_off_and_no_other() -> None:
    words = ("sglang", "serve", "--disable-cuda-graph")
    assert [arm.arguments for arm in planned("off", "sglang", words=words)] == [()]
    for graphs in ("on", "both"):
        with pytest.raises(WrongUsage, match="leave it out"):
            planned(graphs, "sglang", words=words, add_switches=True)


@pytest.mark.parametrize("framework", ["PyTorch", "TensorRT-LLM", None])
def test_without_a_switch_arm_off_is_refused_and_the_way_told(framework: str | None) -> None:
    with pytest.raises(WrongUsage, match=r"--arm on:GRAPHS=1 --arm off:GRAPHS=0"):
        planned("both", framework)
    assert environments(planned(None, framework, own=("on:GRAPHS=1", "off:GRAPHS=0"))) == {
        "on": {"GRAPHS": "1"},
        "off": {"GRAPHS": "0"},
    }


def told(arms: list[Arm], framework: str | None, environment: Mapping[str, str] | None = None) -> str:
    used = named_framework(framework) if framework else None
    return "\n".join(doubts(arms, used, environment or {}))


def test_variables_without_effect_are_told() -> None:
    assert "MLX_CUDA_GRAPH_SERIAL has no effect on stock MLX" in told(planned("serial"), "MLX")
    assert "MLX_MAX_OPS has no effect" in told(planned("on", own=("a:MLX_MAX_OPS=0",)), "MLX")
    assert not told(planned("both", own=("a:MLX_MAX_OPS_PER_BUFFER=0", "b:CUDA_LAUNCH_BLOCKING=1")), "MLX")
    assert not told(planned(None, "torch", own=("a:GRAPHS=0",)), "torch")


def test_serial_without_any_switch_is_refused() -> None:
    with pytest.raises(WrongUsage, match=r"llama\.cpp"):
        planned("serial", "llama.cpp")


def test_arm_on_without_a_switch_is_told() -> None:
    assert "as it is" in told(planned("on", None), None)
    assert "as it is" in told(planned("on", "vllm"), "vllm")


def test_a_switch_of_the_caller_is_told_to_be_overruled() -> None:
    assert "MLX_USE_CUDA_GRAPHS=0" in told(planned("both"), "MLX", {"MLX_USE_CUDA_GRAPHS": "0"})


@pytest.mark.parametrize(
    ("source", "framework"),
    [
        ("import mlx.core as mx", "MLX"),
        ("def f():\n    from mlx_lm import load", "MLX"),
        ("import torch\nimport vllm", "vLLM"),
        ("import torch, numpy", "PyTorch"),
        ("from tensorrt_llm.llmapi import LLM", "TensorRT-LLM"),
        ("import sglang", "SGLang"),
        ("import jax.numpy as jnp", "JAX/XLA"),
        ("from llama_cpp import Llama", "llama.cpp"),
        ("from exllamav2 import model", "exllamav2"),
        ("from . import torch", None),
        ("# import torch\nx = 'import mlx'", None),
        ("import mlxtend_like_name.torch", None),
        ("import (", None),
        ("", None),
    ],
)
def test_the_framework_is_what_a_script_imports(source: str, framework: str | None, tmp_path: Path) -> None:
    script = tmp_path / "__main__.py"
    script.write_text(source)
    for words in ((str(script), "--x"), (str(tmp_path),)):
        found = Workload("script", words).framework
        assert (found and found.name) == framework


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        ("vllm serve m", "vLLM"),
        ("/usr/bin/llama-cli -m x", "llama.cpp"),
        ("llama-server", "llama.cpp"),
        ("ollama serve", "Ollama"),
        ("sglang serve", "SGLang"),
        ("trtllm-serve m", "TensorRT-LLM"),
        ("mistralrs-server", "mistral.rs"),
        ("mlx_lm.generate --model m", "MLX"),
        ("python3.12 -m vllm.entrypoints.openai.api_server", "vLLM"),
        ("python -u -m mlx_lm generate", "MLX"),
        ("python -u bench.py", "MLX"),
        ("python", None),
        ("bash -c llama-cli", None),
    ],
)
def test_the_framework_of_a_command_line_is_the_programs(
    line: str, framework: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench.py").write_text("import mlx.core")
    monkeypatch.chdir(tmp_path)
    found = Workload("command", tuple(line.split())).framework
    assert (found and found.name) == framework


def test_the_framework_of_a_module_is_its_packages_or_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__main__.py").write_text("import jax")
    monkeypatch.chdir(tmp_path)
    names = [Workload("module", (name,)).framework for name in ("mlx_lm.generate", "tool", "nothing")]
    assert [found and found.name for found in names] == ["MLX", "JAX/XLA", None]


@pytest.mark.parametrize("name", ["mlx", "MLX", "mlx_lm", "llama.cpp", "llama-cli", "TensorRT-LLM", "jax", "torch"])
def test_frameworks_go_by_several_names(name: str) -> None:
    assert named_framework(name) in FRAMEWORKS


def test_an_unknown_framework_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(WrongUsage, match=r"MLX, TensorRT-LLM"):
        named_framework("m")


def test_every_framework_is_found_by_the_name_it_has() -> None:
    for one, another in itertools.product(FRAMEWORKS, repeat=2):
        assert (named_framework(one.name) is another) == (one is another)


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("vllm serve m --enforce-eager", True),
        ("vllm serve m", False),
        ("ollama run llama3", True),
        ("ollama serve", False),
        ("/usr/local/bin/ollama serve", False),
    ],
)
def test_traps_are_told(line: str, warned: bool) -> None:
    workload = Workload("command", tuple(line.split()))
    assert workload.framework
    assert bool(workload.warnings(workload.framework)) == warned


@pytest.mark.parametrize(
    ("form", "line", "port"),
    [
        ("command", "vllm serve m", 8000),
        ("command", "vllm serve m --port 9000", 9000),
        ("command", "vllm serve m --port=9001", 9001),
        ("command", "vllm serve m --port", 8000),
        ("module", "mlx_lm.server", 8080),
        ("script", "serve.py", None),
        ("script", "serve.py --port 7", 7),
    ],
)
def test_the_port_is_the_one_given_or_the_engines_own(form: str, line: str, port: int | None) -> None:
    workload = Workload(form, tuple(line.split()))  # type: ignore[arg-type]
    assert workload.port(workload.framework) == port


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="no such script"):
        Workload("script", (str(tmp_path / "absent.py"),)).check()
    with pytest.raises(WrongUsage, match="no such program"):
        Workload("command", ("no-such-program",)).check()


def test_runs_are_called_after_what_is_run() -> None:
    named = [("script", "a/bench.py"), ("module", "mlx_lm.generate"), ("command", "/bin/x")]
    assert [Workload(form, (first,)).name for form, first in named] == [  # type: ignore[arg-type]
        "bench",
        "mlx_lm.generate",
        "x",
    ]
