"""A process that records or times one workload and writes what came of it, for tests that signal it or read its output.

``python launching.py SPECIFICATION RESULT``: both are JSON files.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tracekit.capture.nsys import find_nsys

MARK = "TRACEKIT_TEST_RUN"


@dataclass
class Launched:
    """A running or ended recording in a process of its own, in a folder of its own."""

    folder: Path
    mark: str
    process: subprocess.Popen[bytes]

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def read_line(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def stop(self, *signs: int) -> None:
        for sign in signs:
            self.process.send_signal(sign)
            time.sleep(0.3)

    def interrupt_from_terminal(self) -> None:
        """As Ctrl-C does: the signal goes to every process of the terminal's foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> dict[str, Any]:
        """Wait for it; the fields of the result, or of the error that was raised."""
        self.out, self.err = self.process.communicate(timeout=60)
        result: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return result

    @property
    def codes(self) -> list[str]:
        return [finding["code"] for finding in json.loads((self.folder / "result.json").read_text())["findings"]]

    def children(self) -> list[str]:
        """Command lines of living processes that inherited this run's mark."""
        return [name for name in marked(self.mark).values() if "launching.py" not in name]


def launch(
    folder: Path, command: list[str], environment: Mapping[str, str] | None = None, **options: object
) -> Launched:
    """Start one; ``options`` are those of ``record`` as JSON, ``settings`` a mapping, ``plain``, and ``most_bytes``,
    which no file may exceed."""
    mark = uuid.uuid4().hex
    (folder / "tmp").mkdir(parents=True)
    specification = folder / "specification.json"
    specification.write_text(json.dumps({"folder": str(folder), "command": command, **options}))
    process = subprocess.Popen(
        [sys.executable, __file__, str(specification), str(folder / "result.json")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[1], process_group=0,
        env={**os.environ, MARK: mark, "TMPDIR": str(folder / "tmp"), **(environment or {})},
    )  # fmt: skip
    return Launched(folder, mark, process)


def marked(mark: str) -> dict[int, str]:
    """Processes, zombies left out, whose environment holds the mark."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait for something that is about to be true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


def nsys_of(launched: Launched) -> int:
    """The process id of the nsys that records."""
    (pid,) = [pid for pid, line in marked(launched.mark).items() if " profile --trace" in line]
    return pid


def kill_nsys(launched: Launched) -> None:
    os.kill(nsys_of(launched), signal.SIGKILL)


Start = Callable[..., Launched]


def some_nsys() -> Path:
    """For a fixture: the nsys on this machine; skips where there is none."""
    found = find_nsys()
    if found is None:
        pytest.skip("there is no nsys on this machine")
    return found


def starter(tmp_path: Path) -> Start:
    """For a fixture: starts a Python workload, or a command line, under nsys or, with ``plain``, without."""
    some_nsys()

    def started(workload: str | list[str], environment: Mapping[str, str] | None = None, **options: object) -> Launched:
        command = [sys.executable, "-c", workload] if isinstance(workload, str) else workload
        return launch(tmp_path / "here", command, environment, **options)

    return started


def run_files(launched: Launched) -> list[str]:
    return sorted(path.name for path in (launched.folder / "run").iterdir())


def assert_nothing_is_left(launched: Launched, *files: str) -> None:
    until(lambda: not launched.children(), 10)
    assert run_files(launched) == sorted(["err.log", "out.log", *files])
    assert not list(launched.temporary.glob("*report*"))


def main(specification: Path, result: Path) -> None:
    from tracekit.capture.launch import record, run_plain
    from tracekit.capture.load import Load
    from tracekit.capture.nsys_options import Settings
    from tracekit.errors import TracekitError

    options = json.loads(specification.read_text())
    folder = Path(options.pop("folder"))
    command, settings = options.pop("command"), Settings(**options.pop("settings", {}))
    plain = options.pop("plain", False)
    if most := options.pop("most_bytes", None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if load := options.pop("load", None):
        options["load"] = Load(**{**load, "log": folder / "run" / "load.log"})
    options["environment"] = dict(os.environ)
    options["stdout_log"], options["stderr_log"] = folder / "run" / "out.log", folder / "run" / "err.log"
    try:
        if plain:
            ended: Any = run_plain(command, **options)
        else:
            nsys = find_nsys()
            assert nsys
            ended = record(command, nsys=nsys, target=folder / "run" / "trace.sqlite", settings=settings, **options)
        answer = {**asdict(ended), "failed": ended.failed}
    except (TracekitError, KeyboardInterrupt) as error:
        answer = {"error": type(error).__name__, "message": str(error), "findings": []}
    result.write_text(json.dumps(answer, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
