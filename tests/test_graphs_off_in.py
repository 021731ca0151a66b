"""``--graphs-off-in``: graphs switched off in the phases of one name, by the framework's own context manager."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest
import stand_in_nsys
from annotating import ANNOTATE, ended, needs_mlx, tiny, written
from run_folders import Record, recorder

from tracekit.capture.annotate.graphs_off import VARIABLE
from tracekit.capture.arms import Arm
from tracekit.capture.labels import mislabelled

record = pytest.fixture(recorder)

SWITCHABLE = """
from contextlib import contextmanager
from types import SimpleNamespace
graphs = [1]
@contextmanager
def scoped_update(**given):
    graphs.append(given["MLX_USE_CUDA_GRAPHS"])
    yield
    graphs.pop()
config = SimpleNamespace(scoped_update=scoped_update)
"""
"""Stands in for a version of mlx.core that has the switch; the last of ``graphs`` says whether they are on."""

TWO_PHASES = """
import mlx.core as mx
from tracekit import phase

@phase("prefill")
def prefill(times):
    print("prefill", mx.graphs)
    if times:
        prefill(times - 1)

prefill(1)
with phase("decode"):
    print("decode", mx.graphs)
prefill(0)
print("outside", mx.graphs)
"""


def with_mlx(folder: Path, core: str) -> dict[str, str]:
    """The environment of runs that import this mlx.core."""
    written(folder / "stand-in/mlx/__init__.py", "")
    written(folder / "stand-in/mlx/core.py", core)
    return {"PYTHONPATH": str(folder / "stand-in")}


def test_graphs_are_off_in_the_phases_of_that_name_and_nowhere_else(record: Record, tmp_path: Path) -> None:
    ran = record(
        "--graphs", "on", "--graphs-off-in", "prefill", "--blocks", 1, "bench.py",
        script=TWO_PHASES, env=with_mlx(tmp_path, SWITCHABLE),
    )  # fmt: skip
    assert ran.end() == 0, ran.err
    assert [arm["name"] for arm in ran.manifest["arms"]] == ["on", "off-in-prefill"]
    outside, within = "outside [1]\n", "prefill [1, 0]\nprefill [1, 0, 0]\ndecode [1]\nprefill [1, 0]\n"
    always_on = "prefill [1]\nprefill [1]\ndecode [1]\nprefill [1]\n"
    for how in ("stdout", "plain-stdout"):
        assert ran.log(f"off-in-prefill-1-{how}") == within + outside
        assert ran.log(f"on-1-{how}") == always_on + outside


@pytest.mark.parametrize(
    ("core", "words", "said"),
    [
        ("", ["bench.py"], "mlx.core.config.scoped_update is not in the MLX of this Python"),
        ("config = None", ["bench.py"], "mlx.core.config.scoped_update is not in the MLX of this Python"),
        (SWITCHABLE, ["--framework", "torch", "bench.py"], "PyTorch has no switch for a part of a process"),
        (SWITCHABLE, ["--framework", "mlx", "--", "true"], "a command line has no phases"),
    ],
)
def test_where_it_cannot_be_done_nothing_is_run(
    record: Record, tmp_path: Path, core: str, words: list[str], said: str
) -> None:
    ran = record("--graphs-off-in", "prefill", *words, script=TWO_PHASES, env=with_mlx(tmp_path, core))
    assert ran.end() == 2
    assert said in ran.err
    assert (ran.out, ran.run_folder.exists()) == ("", False)


@needs_mlx
def test_phases_that_annotating_finds_are_switched_too(tmp_path: Path) -> None:
    """Also without a profiler: the arm is timed without one."""
    script = tiny(
        tmp_path,
        dedent(SWITCHABLE).replace("config =", "mx.config =")
        + dedent("""\
        evaluate = mx.async_eval
        def noted(*arrays):
            print(graphs[-1], end=" ")
            return evaluate(*arrays)
        mx.async_eval = noted
        tokens = [token for token, _ in generate_step(prompt, model, max_tokens=4)]
        print(graphs)
        """),
    )
    for phase, launches in (("decode", "1 0 0 0 0"), ("prefill", "0 1 1 1 1"), ("other", "1 1 1 1 1")):
        end = ended([*ANNOTATE, str(script)], tmp_path, **{VARIABLE: phase})
        assert (end.returncode, end.stdout) == (0, f"{launches} [1]\n"), end.stderr


def sample(folder: Path, name: str) -> Path:
    return Path(shutil.copy(stand_in_nsys.SAMPLES / f"{name}.sqlite", folder / "trace.sqlite"))


def off_in(phase: str) -> Arm:
    return Arm("some", "own", {VARIABLE: phase})


def test_graphs_in_a_phase_that_was_to_have_none_are_told(tmp_path: Path) -> None:
    trace = sample(tmp_path, "gbx-graphs-on")
    told = mislabelled(trace, off_in("prefill"))
    assert told
    assert "launched graphs in 'prefill' (100% of its GPU time)" in told.message


def test_a_phase_that_was_never_entered_is_told(tmp_path: Path) -> None:
    told = mislabelled(sample(tmp_path, "gbx-graphs-off"), off_in("draft"))
    assert told
    assert "had no phase 'draft'" in told.message


def test_graphs_in_other_phases_are_as_they_should_be(tmp_path: Path) -> None:
    trace = sample(tmp_path, "gbx-graphs-on")
    with closing(sqlite3.connect(trace)) as connection, connection:
        connection.execute("""
            UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = NULL WHERE correlationId IN (
                SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME call JOIN NVTX_EVENTS range
                ON call.start BETWEEN range.start AND range.end
                LEFT JOIN StringIds ON id = range.textId WHERE coalesce(text, value) = 'prefill')
        """)
    assert mislabelled(trace, off_in("prefill")) is None
    assert mislabelled(trace, off_in("decode"))
