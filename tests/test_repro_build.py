"""Bundles compiled by a real nvcc, and the registers and shared memory that came of it against the trace."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import cuda_tools
import msgspec
import pytest
from conftest import SHARED
from repro_building import plant

from tracekit.commands.repro import repro as command
from tracekit.repro.bundle import PLAN, Expected
from tracekit.repro.footprint import variant_of

SAMPLES = Path(__file__).parents[1] / "sample_traces"
REAL = SHARED / "traces"

CHIPS = ("sm_90", "sm_120", "sm_121")
PTX = "compute_90"


class Built(NamedTuple):
    """A bundle, what it is built for, and the object."""

    bundle: Path
    targets: tuple[str, ...]
    built: Path


SOURCES: dict[str, tuple[str, ...]] = {
    "gbx-graphs-on": ("sm_121",),
    "gbx-graphs-serial": (PTX,),
    "moe-graphs-on": ("sm_120",),
    "moe-graphs-serial": ("sm_121",),
    "stock-graphs-on": ("sm_90",),
    "stock-graphs-serial": ("sm_120",),
    "three-at-once-graphs-on": (PTX,),
    "lost-records": ("sm_90",),
    "planted": (*CHIPS, PTX),
    "graph-nodes-v100-a": (*CHIPS, PTX),
    "graph-nodes-v100-b": ("sm_121",),
}
"""Every trace with graph nodes, each built for some of the targets, so that every target is built for: those with
many different footprints for all."""


def build(source: Path, targets: tuple[str, ...]) -> Path:
    options = [f"-gencode=arch={target.replace('sm', 'compute')},code={target}" for target in targets]
    return cuda_tools.nvcc(source, *options)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    cuda_tools.tool("nvcc")
    folder = tmp_path_factory.mktemp("bundles")
    planted = plant(folder)
    bundles = {}
    for name in SOURCES:
        trace = planted.trace if name == "planted" else (REAL if "v100" in name else SAMPLES) / f"{name}.sqlite"
        if not trace.exists():
            continue
        dots = [str(planted.dump)] if name == "planted" else None
        # Decode steps have kernels of other kinds than prefills.
        phase = "decode" if name.startswith("stock") else None
        command(str(trace), folder=folder / name, dot=dots, phase=phase, no_cache=True)
        bundles[name] = folder / name
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = pool.map(lambda name: build(bundles[name] / "repro.cu", SOURCES[name]), bundles)
        return {name: Built(bundles[name], SOURCES[name], built) for name, built in zip(bundles, objects, strict=True)}


def source_of(name: str) -> object:
    absent = "v100" in name and not REAL.is_dir()
    return pytest.param(name, marks=pytest.mark.skipif(absent, reason="the real traces are not beside the repository"))


def test_every_trace_with_graph_nodes_and_every_target_is_among_those_built() -> None:
    assert {target for targets in SOURCES.values() for target in targets} == {*CHIPS, PTX}
    on_or_serial = {file.stem for file in SAMPLES.glob("*graphs-*.sqlite") if not file.stem.endswith("-off")}
    assert on_or_serial <= set(SOURCES)
    assert {file.stem for file in REAL.glob("graph-nodes-*.sqlite")} <= set(SOURCES)


@pytest.mark.parametrize("name", [source_of(name) for name in SOURCES])
def test_the_program_is_built_without_a_warning_and_its_footprints_are_the_traced_ones(
    name: str, built: dict[str, Built]
) -> None:
    one = built[name]
    compiled = cuda_tools.resources(one.built)
    launch = msgspec.json.decode((one.bundle / PLAN).read_bytes(), type=Expected).launch
    chips = [target for target in one.targets if target in CHIPS]
    assert {arch for arch, _ in compiled} == set(chips)
    for arch in chips:
        of_variant = {
            (re.search(r"matmul|matvec|copy|reduce|elementwise", kernel)[0], *cuda_tools.arguments(kernel)): figures  # type: ignore[index]
            for (of, kernel), figures in compiled.items()
            if of == arch and "checksum" not in kernel
        }
        for node in launch.nodes:
            kernel = node.kernel
            if kernel is None or kernel.registers is None:
                continue
            registers, shared = of_variant[tuple(variant_of(kernel))]
            # Neither more nor fewer than are set aside for the traced kernel; up to 32 limit nothing.
            assert set_aside(registers) == set_aside(kernel.registers), (arch, node.name)
            assert shared == -(-(kernel.static_smem or 0) // 16) * 16, (arch, node.name)


def set_aside(registers: int) -> int:
    """Registers of a thread on all GPUs since 2012: by 8."""
    return max(32, (registers + 7) // 8 * 8)


def test_the_scripts_build_and_run_it(built: dict[str, Built], monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = built["planted"].bundle
    monkeypatch.setenv("NVCC", cuda_tools.tool("nvcc"))
    subprocess.run([bundle / "build.sh", "sm_90"], check=True)
    ran = subprocess.run([bundle / "run.sh", "--runs", "5"], capture_output=True, text=True, check=False)
    if shutil.which("nvidia-smi") is None:
        assert (ran.returncode, len(ran.stderr.splitlines())) == (3, 1)
        assert "no usable GPU or driver" in ran.stderr
    else:
        assert ran.returncode in (0, 10), ran.stderr
