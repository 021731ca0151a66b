"""nvcc and cuobjdump where they are, and programs built with them; without them tests skip and say why."""

import atexit
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tracekit.repro.building import FLAGS
from tracekit.repro.program import WORK, part

FAKE = Path(__file__).with_name("fake_cudart.c")

CUDART = "libcudart.so.13"
"""What the stand-in is called: the runtime of CUDA 13."""


def tool(name: str) -> str:
    """A program of CUDA's: on PATH, in its usual place, or from a package; skips where there is none."""
    packages = Path(sysconfig.get_path("purelib"), "nvidia")
    places = ["/usr/local/cuda/bin", *map(str, sorted(packages.glob("*/bin")))]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        pytest.skip(f"no {name}: install CUDA, or pip install 'tracekit[nvcc]'")
    return found


@cache
def _folder() -> Path:
    """Where what is built stays for as long as the tests run."""
    folder = Path(tempfile.mkdtemp(prefix="repro-built-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def nvcc(source: Path, *options: str) -> Path:
    """An object of a bundle's program, built as its build.sh does, with more options; the same input is built once."""
    compiler = tool("nvcc")
    words = [*FLAGS.split(), *options]
    texts = [file.read_bytes() for file in (source, source.with_name("graph.inc"))]
    target = _folder() / f"{hashlib.sha256(repr((words, texts)).encode()).hexdigest()}.o"
    if not target.exists():
        built = subprocess.run(
            [compiler, *words, "-c", "-o", target, source], capture_output=True, text=True, check=False
        )
        assert built.returncode == 0, built.stdout + built.stderr
    return target


def program(source: Path, arch: str = "sm_90") -> Path:
    """A bundle's program, linked against the stand-in for the CUDA runtime."""
    compiled = nvcc(source, f"-arch={arch}")
    target = compiled.with_suffix("")
    if not target.exists():
        command: list[str | Path] = [_compiler("c++"), "-o", target, compiled, f"-L{fake_runtime()}", f"-l:{CUDART}"]
        subprocess.run([*command, "-ldl"], check=True)
    return target


def _compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: install a C and C++ compiler")
    return found


@cache
def fake_runtime() -> Path:
    """The folder of the stand-in for the CUDA runtime."""
    toolkit = subprocess.run([tool("nvcc"), "--dryrun", "x.cu"], capture_output=True, text=True, check=False).stderr
    include = re.findall(r'INCLUDES="-I([^"]+)"', toolkit)[0]
    folder = _folder()
    (folder / WORK).write_text(part(WORK))
    (folder / "versions").write_text(f"{CUDART} {{ global: cuda*; __cuda*; local: *; }};\n")
    command: list[str | Path] = [
        _compiler("cc"), "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{include}", f"-I{folder}",
        f"-Wl,--version-script={folder / 'versions'}", f"-Wl,-soname,{CUDART}", "-o", folder / CUDART, FAKE,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder


def resources(built: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """(architecture, kernel as its mangled name) -> (registers, static shared bytes without the system's share)."""
    text = subprocess.run(
        [tool("cuobjdump"), "--dump-resource-usage", built], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    arch = ""
    for line in text.splitlines():
        if line.startswith("arch ="):
            arch = line.split()[-1]
        elif match := re.match(r" Function (.+):$", line):
            kernel = match[1]
        elif match := re.search(r"REG:(\d+).* SHARED:(\d+)", line):
            # From sm_90 on each block has a KiB that the system uses.
            system = 1024 if int(re.sub(r"\D", "", arch)) >= 90 else 0
            found[arch, kernel] = int(match[1]), int(match[2]) - system
    return found


def arguments(mangled: str) -> Sequence[int]:
    """The numbers that a kernel template was made with."""
    return [int(number) for number in re.findall(r"Li(\d+)E", mangled)]
