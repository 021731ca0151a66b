"""An unmodified script run annotated behaves as under python, which is the oracle."""

import signal
import sys
import zipfile
from pathlib import Path

import pytest
from annotating import ANNOTATE, ROOT, as_python, ended, needs_nvtx, stub_torch, written

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
    assert as_python(tmp_path, "idle.py").stderr.count("no phase was marked") == 1
    off = ended([*ANNOTATE, "--mode", "off", "idle.py"], tmp_path, NVTX_INJECTION64_PATH="/nowhere")
    assert (off.returncode, off.stderr) == (0, "")


@needs_nvtx
def test_says_nothing_of_phases_where_the_program_itself_failed(tmp_path: Path) -> None:
    written(tmp_path / "end.py", "1 / 0")
    assert "tracekit" not in as_python(tmp_path, "end.py").stderr


def test_an_interrupt_before_the_program_begins_shows_no_traceback(tmp_path: Path) -> None:
    for module in ("nvtx", "typer"):
        written(tmp_path / f"{module}.py", "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    written(tmp_path / "script.py", "print('ran')")
    search = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "NVTX_INJECTION64_PATH": "/nowhere"}
    for command in ([*ANNOTATE, "script.py"], [sys.executable, "-m", "tracekit", "--version"]):
        end = ended(command, tmp_path, **search)
        assert (end.returncode, end.stdout, end.stderr) == (-signal.SIGINT, "", "")


def test_without_the_package_the_script_runs_and_the_mend_is_said(tmp_path: Path) -> None:
    written(tmp_path / "nvtx.py", "raise ImportError('absent')")
    written(tmp_path / "script.py", "print(1)")
    end = ended([*ANNOTATE, "script.py"], tmp_path, NVTX_INJECTION64_PATH="/nowhere", PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (end.returncode, end.stdout) == (0, "1\n")
    assert "pip install 'tracekit[nvtx]'" in end.stderr
