"""What recording needs: what of it is here, what is missing, and the command that mends it."""

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

import tracekit
from tracekit.capture.nsys import find_nsys
from tracekit.capture.outside import ask
from tracekit.capture.self_test import SelfTest, self_test
from tracekit.trace.identity import cache_folder

SECONDS = 20.0
"""How long a program may take to tell its version."""

State = Literal["ok", "missing", "broken"]


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. ``needed``: without it nothing can be recorded. ``mend`` is null where it is ok."""

    name: str
    state: State
    found: str
    mend: str | None = None
    needed: bool = False


class Doctor(msgspec.Struct, frozen=True):
    """Answer of ``tracekit doctor``."""

    tracekit: str
    command: str
    traces: list[str]
    warnings: list[str]
    can_record: bool
    conclusion: str
    checks: list[Check]


def examine_machine() -> Doctor:
    """Look at everything that recording uses; takes some seconds, and never longer than the programs' time limits.

    Nothing that a program says is repeated but versions, GPU names and counts: the environment is never shown.
    """
    checks = [*_folders()]
    # Nothing can be asked of a program without a place for its answer.
    if all(check.state == "ok" for check in checks):
        checks += [*_nsys(), _driver(), _libcuda(), _nvcc(), _mlx()]
    return Doctor(
        tracekit=tracekit.__version__,
        command="doctor",
        traces=[],
        warnings=[],
        can_record=all(check.state == "ok" for check in checks if check.needed),
        conclusion=_conclusion(checks),
        checks=checks,
    )


def _conclusion(checks: list[Check]) -> str:
    wrong = {check.name: check for check in checks if check.state != "ok"}
    for check in wrong.values():
        if check.needed:
            return f"recording cannot work: {check.name}: {check.found}: {check.mend}"
    lacks = []
    if "driver" in wrong or "libcuda" in wrong:
        lacks.append("no CUDA activity (no GPU with its driver)")
    if "nvtx" in wrong:
        lacks.append("no phases (no NVTX ranges)")
    return f"recording can work{', but traces hold ' if lacks else ''}{' and '.join(lacks)}"


def _nsys() -> Iterator[Check]:
    nsys = find_nsys()
    if nsys is None:
        mend = (
            "sudo apt install nsight-systems-cli (from NVIDIA's repository; Debian: nsight-systems), "
            "or name it: export TRACEKIT_NSYS=/path/to/nsys"
        )
        yield Check("nsys", "missing", "not in TRACEKIT_NSYS, PATH or the usual folders", mend, needed=True)
        return
    reply = ask([nsys, "--version"], SECONDS)
    if reply.code != 0:
        mend = f"try by hand: {nsys} --version; else install Nsight Systems anew"
        yield Check("nsys", "broken", f"{nsys} {reply.ending}", mend, needed=True)
        return
    version = re.search(r"\d+(?:\.\d+)+", reply.out)
    yield Check("nsys", "ok", f"{nsys}, {f'version {version[0]}' if version else 'of unknown version'}", needed=True)
    yield from _tried(nsys, self_test(nsys))


def _tried(nsys: Path, outcome: SelfTest) -> Iterator[Check]:
    by_hand = f"try by hand: {nsys} profile --trace=cuda,nvtx --output /tmp/x true"
    yield _check("nsys records", "a process was recorded", outcome.record, by_hand, needed=True)
    by_hand = f"try by hand: {nsys} export --type sqlite --output /tmp/x.sqlite /tmp/x.nsys-rep"
    yield _check("nsys exports", "its report was exported", outcome.export, by_hand, needed=True)
    try:
        package = f"package {metadata.version('nvtx')}"
        mend = "pip install 'nvtx==0.2.11' (later ones record nothing under nsys 2022.4 to 2024.2), or a newer nsys"
    except metadata.PackageNotFoundError:
        package, mend = "no nvtx package", "pip install 'tracekit[nvtx]'"
    wrong = outcome.ranges and f"{package}: {outcome.ranges}"
    yield _check("nvtx", f"{package}: a range was recorded and found", wrong, mend)


def _check(name: str, fine: str, wrong: str | None, mend: str, *, needed: bool = False) -> Check:
    return Check(name, "broken", wrong, mend, needed) if wrong else Check(name, "ok", fine, None, needed)


def _driver() -> Check:
    mend = (
        "install NVIDIA's driver (Ubuntu: sudo ubuntu-drivers install) and restart; "
        "in a container, start it with --gpus all"
    )
    program = shutil.which("nvidia-smi")
    if program is None:
        return Check("driver", "missing", "no nvidia-smi on PATH", mend)
    reply = ask([program, "--query-gpu=driver_version,compute_cap,name", "--format=csv,noheader"], SECONDS)
    gpus = re.findall(r"^(\d+(?:\.\d+)+), (\d+\.\d+), ([\w ()./+-]{1,60})$", reply.out, re.MULTILINE | re.ASCII)
    if not gpus:
        ending = "names no GPU" if reply.code == 0 else reply.ending
        return Check("driver", "broken", f"{program} {ending}", f"look at the output of {program}; else {mend}")
    names = ", ".join(f"{name} (compute capability {capability})" for _, capability, name in gpus)
    return Check("driver", "ok", f"{gpus[0][0]}: {names}")


_LIBCUDA = """
import ctypes
cuda, version, devices = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
print(cuda.cuInit(0), end=" ")
cuda.cuDriverGetVersion(ctypes.byref(version))
cuda.cuDeviceGetCount(ctypes.byref(devices))
print(version.value, devices.value)
"""


def _libcuda() -> Check:
    mend = "install NVIDIA's driver, which brings it; in a container, start it with --gpus all"
    # A child of its own, because a driver in trouble may hang or end the process.
    reply = ask([sys.executable, "-P", "-c", _LIBCUDA], SECONDS)
    told = re.fullmatch(r"(\d+) (\d+) (\d+)\s*", reply.out)
    if told is None:
        found = "libcuda.so.1 does not load" if reply.code else f"libcuda.so.1 {reply.ending}"
        return Check("libcuda", "missing", found, mend)
    code, version, devices = map(int, told.groups())
    if code or not devices:
        found = f"cuInit returns {code}" if code else "no CUDA device"
        return Check(
            "libcuda", "broken", found, "check that CUDA_VISIBLE_DEVICES hides no GPU; else restart, or " + mend
        )
    return Check("libcuda", "ok", f"CUDA {version // 1000}.{version % 1000 // 10}, devices: {devices}")


def _nvcc() -> Check:
    mend = "pip install nvidia-cuda-nvcc, or the CUDA toolkit with its bin folder on PATH (only 'repro' needs it)"
    usual = sorted(Path("/usr/local").glob("cuda*/bin/nvcc"), reverse=True)
    program = shutil.which("nvcc") or next(map(str, usual), None)
    if program is None:
        return Check("nvcc", "missing", "not on PATH, not in /usr/local/cuda*", mend)
    reply = ask([program, "--version"], SECONDS)
    release = re.search(r"release (\d+\.\d+)", reply.out)
    if release is None:
        return Check("nvcc", "broken", f"{program} {'tells no version' if reply.code == 0 else reply.ending}", mend)
    return Check("nvcc", "ok", f"{program}, release {release[1]}")


_MLX = """
from importlib.util import find_spec
if find_spec("mlx") is None:
    print("absent")
else:
    import mlx.core as mx
    print(mx.__version__, "gpu" if "gpu" in str(mx.default_device()) else "cpu")
"""


def _mlx() -> Check:
    mend = "pip install 'mlx[cuda13]' (only for MLX workloads)"
    reply = ask([sys.executable, "-P", "-c", _MLX], SECONDS)
    if reply.out.strip() == "absent":
        return Check("MLX", "missing", "not installed for this Python", mend)
    told = re.fullmatch(r"(\d[\w.+]*) (gpu|cpu)\s*", reply.out, re.ASCII)
    if told is None:
        return Check(
            "MLX", "broken", f"its import {reply.ending}", f"see why: python -c 'import mlx.core'; else {mend}"
        )
    if told[2] == "cpu":
        return Check("MLX", "missing", f"{told[1]}, with no backend but the CPU's", mend)
    return Check("MLX", "ok", f"{told[1]}, runs on the GPU")


def _folders() -> Iterator[Check]:
    yield _folder("temporary files", lambda: Path(tempfile.gettempdir()), "export TMPDIR=/a/folder/you/may/write")
    yield _folder("cache folder", cache_folder, "export TRACEKIT_CACHE=/a/folder/you/may/write")


def _folder(name: str, find: Callable[[], Path], mend: str) -> Check:
    try:
        folder = find()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return Check(name, "broken", f"cannot be written ({error.strerror})", mend, needed=True)
    return Check(name, "ok", str(folder), needed=True)
