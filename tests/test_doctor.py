"""What is said of a machine that lacks something, by stand-ins for the programs and by nsys itself."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Run
from nsys_export import Export

from tracekit.capture import doctor, nsys, self_test

UNPACKED = Path.home() / ".cache/tracekit-nsys/usr/bin/nsys"
SECRET = "s3cr3t"

VERSION = "--version) echo 'NVIDIA Nsight Systems version 2031.2.3.4-56v0' ;;"
PROFILE = 'profile) while [ "$1" != --output ]; do shift; done; echo recorded > "$2.nsys-rep" ;;'
EXPORT = 'export) while [ "$1" != --output ]; do shift; done; /bin/cp "$CANNED" "$2" ;;'
NOT_THERE = "*) exit 9 ;;"
HANGS = '/bin/sleep 600 & echo $! >> "$SLEEPERS"; wait ;;'

SMI = "echo '580.95.05, 12.1, NVIDIA GB10'"
NVCC = "echo 'Cuda compilation tools, release 13.0, V13.0.88'"

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """``program(name, script)`` puts a stand-in on a PATH that holds nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("TRACEKIT_NSYS", raising=False)
    monkeypatch.setattr(nsys, "INSTALL_FOLDERS", ())
    monkeypatch.setenv("CANNED", str(export(tmp_path, "tracekit")))
    monkeypatch.setenv("SLEEPERS", str(tmp_path / "sleepers"))

    def put(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return put


def export(folder: Path, domain: str) -> Path:
    """What an nsys leaves that recorded the range of the self-test in that domain."""
    made = Export()
    made.range(10, 20, "self test", domain=domain)
    return made.write(folder / f"{domain}.sqlite")


def an_nsys(*does: str) -> str:
    """A script that answers as nsys does, where ``does`` puts nothing else in the way."""
    return "\n".join(["case $1 in", *does, VERSION, PROFILE, EXPORT, NOT_THERE, "esac"])


def short_of_time(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.5) -> None:
    monkeypatch.setattr(self_test, "SECONDS", seconds)
    monkeypatch.setattr(doctor, "SECONDS", seconds)


def found(ran: Ran) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(ran.out)["checks"]}


def is_alive(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


def test_a_machine_that_can_record(program: Program, call: Run) -> None:
    path = program("nsys", an_nsys())
    program("nvidia-smi", SMI)
    program("nvcc", NVCC)
    ran = call("doctor", "--format", "json")
    checks = found(ran)
    assert (ran.code, ran.err) == (0, "")
    assert checks["nsys"]["found"] == f"{path}, version 2031.2.3.4"
    assert checks["driver"]["found"] == "580.95.05: NVIDIA GB10 (compute capability 12.1)"
    assert checks["nvcc"]["found"].endswith("release 13.0")
    for name in ("nsys", "nsys records", "nsys exports", "nvtx", "driver", "nvcc", "temporary files", "cache folder"):
        assert (checks[name]["state"], checks[name]["mend"]) == ("ok", None)


def test_whatever_is_not_ok_comes_with_its_mend(program: Program, call: Run) -> None:
    ran = call("doctor", "--format", "json")
    answer = json.loads(ran.out)
    assert {"tracekit", "traces", "warnings", "checks"} <= answer.keys()
    assert (answer["command"], answer["can_record"]) == ("doctor", False)
    assert all(bool(check["mend"]) == (check["state"] != "ok") for check in answer["checks"])
    table = call("doctor")
    assert table.code == 4
    assert all(check[key] in table.out for check in answer["checks"] for key in ("found", "mend") if check[key])


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ("--version) exit 1 ;;", "nsys"),
        ("profile) exit 0 ;;", "nsys records"),
        ("profile) exit 1 ;;", "nsys records"),
        ("profile) kill -9 $$ ;;", "nsys records"),
        ('profile) while [ "$1" != --output ]; do shift; done; : > "$2.nsys-rep" ;;', "nsys records"),
        ("export) exit 0 ;;", "nsys exports"),
        ('export) while [ "$1" != --output ]; do shift; done; : > "$2" ;;', "nsys exports"),
        ('export) while [ "$1" != --output ]; do shift; done; echo no database > "$2" ;;', "nsys exports"),
    ],
)
def test_an_nsys_that_does_not_do_its_part(wrong: str, name: str, program: Program, call: Run) -> None:
    program("nsys", an_nsys(wrong))
    ran = call("doctor", "--format", "json")
    (line,) = ran.err.splitlines()
    assert ran.code == 4
    assert line.startswith(f"tracekit: recording cannot work: {name}: ")
    assert found(ran)[name]["state"] == "broken"


@pytest.mark.parametrize(
    ("step", "name"), [("--version)", "nsys"), ("profile)", "nsys records"), ("export)", "nsys exports")]
)
def test_an_nsys_that_hangs_is_stopped_with_its_children(
    step: str, name: str, program: Program, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_of_time(monkeypatch)
    program("nsys", an_nsys(f"{step} {HANGS}"))
    ran = call("doctor", "--format", "json")
    assert ran.code == 4
    assert "does not answer within 0.5 s" in found(ran)[name]["found"]
    (sleeper,) = (tmp_path / "sleepers").read_text().split()
    assert not is_alive(int(sleeper))


def test_an_nsys_that_does_not_start(program: Program, call: Run) -> None:
    program("nsys", "").write_bytes(b"\x7fELF not for this machine")
    ran = call("doctor", "--format", "json")
    assert ran.code == 4
    assert "does not start" in found(ran)["nsys"]["found"]


def test_without_nsys_it_is_said_how_to_get_it(program: Program, call: Run) -> None:
    ran = call("doctor")
    (line,) = ran.err.splitlines()
    assert ran.code == 4
    assert "nsys" in line
    assert "TRACEKIT_NSYS" in line


def test_ranges_that_are_not_recorded_are_told_but_do_not_prevent_recording(
    program: Program, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nsys", an_nsys())
    monkeypatch.setenv("CANNED", str(export(tmp_path, "elsewhere")))
    ran = call("doctor", "--format", "json")
    nvtx = found(ran)["nvtx"]
    assert (ran.code, ran.err) == (0, "")
    assert nvtx["state"] == "broken"
    assert "pip install" in nvtx["mend"]
    assert "no phases" in json.loads(ran.out)["conclusion"]


def test_without_a_gpu_recording_works_and_the_traces_are_said_to_lack_its_work(program: Program, call: Run) -> None:
    program("nsys", an_nsys())
    ran = call("doctor")
    assert ran.code == 0
    assert "recording can work, but traces hold no CUDA activity" in ran.out


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "/bin/sleep 600"])
def test_an_nvidia_smi_without_a_driver(
    script: str, program: Program, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nsys", an_nsys())
    program("nvidia-smi", script)
    if "sleep" in script:
        monkeypatch.setattr(doctor, "SECONDS", 1.0)
    assert found(call("doctor", "--format", "json"))["driver"]["state"] == "broken"


def test_nothing_that_programs_say_of_the_environment_is_shown(
    program: Program, call: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRIVATE_TOKEN", SECRET)
    module = tmp_path / "modules" / "mlx"
    module.mkdir(parents=True)
    (module / "core.py").write_text("import os; print(os.environ); raise ImportError(str(os.environ))")
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    for name in ("nsys", "nvidia-smi", "nvcc"):
        program(name, "/usr/bin/env; /usr/bin/env >&2")
    for form in ("json", "table"):
        ran = call("doctor", "--format", form)
        assert SECRET not in ran.out + ran.err
    program("nsys", an_nsys("profile) /usr/bin/env; /usr/bin/env >&2; exit 1 ;;"))
    ran = call("doctor")
    assert SECRET not in ran.out + ran.err


MLX = """
__version__ = "0.99.1"
def default_device(): return "Device({}, 0)"
"""


@pytest.mark.parametrize(
    ("core", "state", "says"),
    [
        (MLX.format("gpu"), "ok", "0.99.1, runs on the GPU"),
        (MLX.format("cpu"), "missing", "0.99.1, with no backend but the CPU's"),
        ("raise ImportError('libcuda.so.1')", "broken", "its import fails"),
        ("import os; os.abort()", "broken", "its import fails"),
        ("import time; time.sleep(600)", "broken", "does not answer within"),
    ],
)
def test_mlx_in_a_child_of_its_own(
    core: str, state: str, says: str, program: Program, call: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "modules" / "mlx"
    folder.mkdir(parents=True)
    (folder / "core.py").write_text(core)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    if "sleep" in core:
        monkeypatch.setattr(doctor, "SECONDS", 2.0)
    program("nsys", an_nsys())
    check = found(call("doctor", "--format", "json"))["MLX"]
    assert check["state"] == state
    assert says in check["found"]


def test_libcuda_is_asked_for_its_version_and_devices(
    program: Program, call: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = shutil.which("cc", path=os.defpath)
    if compiler is None:
        pytest.skip("no C compiler to build a stand-in for libcuda with")
    source = tmp_path / "cuda.c"
    source.write_text(
        "int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { *v = 13020; return 0; }"
        "int cuDeviceGetCount(int *n) { *n = 2; return 0; }"
    )
    library = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(source)]
    subprocess.run(library, env={"PATH": os.defpath}, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    program("nsys", an_nsys())
    program("nvidia-smi", SMI)
    ran = call("doctor", "--format", "json")
    assert found(ran)["libcuda"]["found"] == "CUDA 13.2, devices: 2"
    assert json.loads(ran.out)["conclusion"] == "recording can work"


def test_folders_that_cannot_be_written(
    program: Program, call: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program("nsys", an_nsys())
    (tmp_path / "file").write_text("")
    impossible = str(tmp_path / "file" / "folder")
    monkeypatch.setenv("TRACEKIT_CACHE", impossible)
    ran = call("doctor", "--format", "json")
    assert (ran.code, found(ran)["cache folder"]["state"]) == (4, "broken")
    monkeypatch.setattr(tempfile, "tempdir", impossible)
    ran = call("doctor", "--format", "json")
    assert (ran.code, found(ran)["temporary files"]["state"]) == (4, "broken")


def test_nothing_is_left_behind(program: Program, call: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program("nsys", an_nsys())
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert call("doctor").code == 0
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.fixture
def real_nsys(monkeypatch: pytest.MonkeyPatch) -> Path:
    installed = nsys.find_nsys() or (UNPACKED if UNPACKED.exists() else None)
    if installed is None:
        pytest.skip("no nsys: name one in TRACEKIT_NSYS")
    monkeypatch.setenv("TRACEKIT_NSYS", str(installed))
    return installed


def test_the_real_nsys_records_and_exports(real_nsys: Path, call: Run) -> None:
    ran = call("doctor", "--format", "json")
    checks = found(ran)
    assert ran.code == 0
    assert checks["nsys"]["found"].startswith(f"{real_nsys}, version 20")
    assert checks["nsys records"]["state"] == checks["nsys exports"]["state"] == "ok"


def test_nvtx_is_ok_where_a_phase_of_a_real_recording_is_in_its_export(
    real_nsys: Path, call: Run, tmp_path: Path
) -> None:
    child = "from tracekit import phase\nwith phase('mine'): pass"
    for command in (
        ["profile", "--trace=nvtx", "--sample=none", "--output", tmp_path / "r", sys.executable, "-c", child],
        ["export", "--type", "sqlite", "--output", tmp_path / "r.sqlite", tmp_path / "r.nsys-rep"],
    ):
        subprocess.run([str(real_nsys), *map(str, command)], capture_output=True, check=False)
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as connection:
        query = (
            "SELECT count(*) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = textId WHERE 'mine' IN (text, value)"
        )
        try:
            ((ranges,),) = connection.execute(query)
        except sqlite3.OperationalError:
            ranges = 0
    state = found(call("doctor", "--format", "json"))["nvtx"]["state"]
    assert state == ("ok" if ranges else "broken")
