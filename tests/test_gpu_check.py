"""The check of a machine with a GPU: on one without, and on one whose GPU, driver, compiler and nsys are stand-ins."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from nsys_export import Export

ROOT = Path(__file__).parents[1]


def gpu_check(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The check, asked to leave its results in a folder."""
    search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "scripts" / "gpu_check"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": search, **env}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_gpu_check_says_what_is_missing(tmp_path: Path) -> None:
    if has_driver():
        pytest.skip("there is a driver here")
    end = gpu_check(tmp_path / "results")
    assert (end.returncode, end.stdout) == (4, "")
    assert "gpu_check: cannot run: libcuda is missing (libcuda.so.1 does not load)" in end.stderr
    assert not list(tmp_path.iterdir())


def test_gpu_check_touches_no_folder_that_exists(tmp_path: Path) -> None:
    assert gpu_check(tmp_path).returncode == 2
    assert not list(tmp_path.iterdir())


STAND_INS = {
    "nvidia-smi": 'echo "580.95.05, 12.1, Stand-in GPU"',
    "nvcc": """\
        [ "$1" = --version ] && exit
        while [ "$1" != -o ]; do shift; done
        cp "$(dirname "$0")/built" "$2"
        """,
    # What nvcc "builds": a workload, which tells which arm it is in, and, where asked for results, a repro.
    "built": r"""
        if [ "$1" != --json ]; then
            echo "{\"graphs\": $GRAPHS}"
            exit
        fi
        graph=$(sed -n 's/#define GRAPH_DIGEST "\(.*\)"/\1/p' graph.inc)
        node='{"node": 0, "took_us": [4, 4, 4], "start_us": 0, "took_there_us": 4}'
        mode='{"runs": 1, "event_us": [4, 4, 4], "span_us": [4, 4, 4], "nodes": ['$node']}'
        cat > "$2" <<END
        {"repro": 1, "graph": "$graph", "gpu": "Stand-in GPU", "compute_capability": "12.1", "calibration": "fitted",
         "threshold": 0.02, "weights_bytes": 1, "weights_bytes_held": 1, "nodes": [],
         "modes": {"alone": $mode, "graph": $mode}}
        END
        exit 10
        """,
    "nsys": """\
        case "$1" in
        --version) echo "NVIDIA Nsight Systems version 2026.2.1.210-0";;
        export)
            while [ "$1" != --output ]; do shift; done
            cp "$(cat "$3")" "$2";;
        profile)
            while [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do
                case "$1" in --output) shift; out=$1;; --output=*) out=${1#--output=};; esac
                shift
            done
            "$@"
            code=$?
            echo "$EXPORTS/${GRAPHS:-0}.sqlite" > "$out.nsys-rep"
            exit $code;;
        esac
        """,
}
LIBCUDA = """
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine whose GPU, driver, compiler and profiler are stand-ins."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    programs, exports = tmp_path / "bin", tmp_path / "exports"
    programs.mkdir()
    exports.mkdir()
    for name, text in STAND_INS.items():
        program = programs / name
        program.write_text("#!/bin/sh\n" + dedent(text))
        program.chmod(0o755)
    source = tmp_path / "libcuda.c"
    source.write_text(LIBCUDA)
    subprocess.run([compiler, "-shared", "-o", str(programs / "libcuda.so.1"), str(source)], check=True)
    for graphs in (0, 1):
        write_export(exports / f"{graphs}.sqlite", graphs=bool(graphs))
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(programs),
        "TRACEKIT_NSYS": str(programs / "nsys"),
        "TRACEKIT_CACHE": str(tmp_path / "cache"),
        "TRACEKIT_DB": str(tmp_path / "results.db"),
        "EXPORTS": str(exports),
    }


def write_export(path: Path, *, graphs: bool) -> None:
    """Ten phases of ten kernels, launched by graphs or one by one."""
    export = Export()
    export.gpu(0, "Stand-in GPU")
    for phase in range(10):
        begin = 10_000 + phase * 100_000
        export.range(begin, begin + 60_000, "layers", domain="tracekit")
        correlation = export.launch(begin + 100, begin + 200, "cudaGraphLaunch_v10000") if graphs else 0
        for kernel in range(10):
            start = begin + 1_000 + kernel * 5_000
            if not graphs:
                correlation = export.launch(start - 900, start - 800)
            node = 100 + kernel if graphs else None
            export.kernel(start, start + 4_000 + phase, name="gate", correlation=correlation, node=node)
    export.write(path)


def test_gpu_check_leaves_results_that_can_be_passed_on(tmp_path: Path, machine: dict[str, str]) -> None:
    results = tmp_path / "results"
    end = gpu_check(results, **machine)
    assert end.returncode == 0, end.stderr
    traces = {f"{arm}-{block}.sqlite" for arm in ("on", "off") for block in range(1, 6)}
    assert {file.name for file in (results / "cuda-graph").iterdir()} == {*traces, "run.json"}
    comparison = json.loads((results / "cuda-graph.json").read_text())
    assert [phase["name"] for phase in comparison["phases"] if phase["name"] == "layers"] == ["layers"]
    timings = json.loads((results / "cuda-graph-timings.json").read_text())
    assert (timings["on-1"], timings["off-5-plain"]) == ({"graphs": 1}, {"graphs": 0})
    assert (results / "cuda-graph.md").read_text() in end.stdout
    filed = {file.name for file in (results / "cuda-graph-repro").iterdir()}
    assert {"repro.cu", "graph.inc", "build.sh", "results.json", "verify.md", "verify.json"} <= filed
    assert not filed & {"repro", "calibration.txt"}
    assert json.loads((results / "cuda-graph-repro" / "verify.json").read_text())["measured_gpu"] == "Stand-in GPU"
    private = str(Path(sys.executable).parent), str(tmp_path)
    told = [file.read_text() for file in results.rglob("*.json")]
    assert not [path for text in told for path in private if path in text]


def test_gpu_check_tells_results_that_are_not_as_they_should_be(tmp_path: Path, machine: dict[str, str]) -> None:
    exports = Path(machine["EXPORTS"])
    shutil.copyfile(exports / "0.sqlite", exports / "1.sqlite")
    end = gpu_check(tmp_path / "results", **machine)
    assert end.returncode == 1
    assert "not as it should be: cuda-graph: no kernel of a graph was recorded" in end.stderr
