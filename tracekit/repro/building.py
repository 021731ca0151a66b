"""How the bundle is built and run: shell scripts and a CMake file."""

import re

FAT = (80, 86, 89, 90, 100, 120, 121)
"""Compute capabilities of a build for any GPU; the last is there as PTX too, for later ones."""

FLAGS = "-std=c++17 -O3 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror"


def architecture(compute_capability: str | None) -> str:
    """What nvcc calls a GPU of this compute capability (12.1 is sm_121); that of the machine where it is unknown."""
    known = re.fullmatch(r"(\d+)\.(\d+)", compute_capability or "")
    return f"sm_{known[1]}{known[2]}" if known else "native"


def build_script(arch: str) -> str:
    """``build.sh``."""
    fat = " ".join(f"-gencode arch=compute_{cc},code=sm_{cc}" for cc in FAT)
    return f"""\
#!/bin/sh
# ./build.sh          for the traced GPU ({arch})
# ./build.sh native   for the GPU of this machine; any other -arch of nvcc goes too
# ./build.sh fat      for {", ".join(f"sm_{cc}" for cc in FAT)} and, as PTX, later ones
# Needs CUDA 12.4 or later (GPUs older than sm_75: CUDA 12). NVCC=... names another nvcc.
set -eu
cd "$(dirname "$0")"
case "${{1:-{arch}}}" in
  fat) set -- {fat} -gencode arch=compute_{FAT[-1]},code=compute_{FAT[-1]} ;;
  *) set -- "-arch=${{1:-{arch}}}" ;;
esac
nvcc=${{NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}}
"$nvcc" {FLAGS} "$@" -o repro repro.cu -ldl
"""


RUN = """\
#!/bin/sh
# Builds where that was not done, fits the kernels to this GPU the first time, measures, and writes results.json.
# Options are passed on: ./run.sh --bisect, ./run.sh --sweep; ./repro --help lists them.
# Exit code: 0 the graph is not slower than its nodes one after another, 10 it is, others an error.
set -eu
cd "$(dirname "$0")"
[ -x repro ] || ./build.sh
[ -e calibration.txt ] || set -- --calibrate "$@"
exec ./repro --json results.json "$@"
"""


def cmake(arch: str) -> str:
    """``CMakeLists.txt``."""
    number = arch.removeprefix("sm_")
    return f"""\
cmake_minimum_required(VERSION 3.24)
project(repro LANGUAGES CUDA)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES {number})
endif()
add_executable(repro repro.cu)
target_compile_features(repro PRIVATE cuda_std_17)
target_link_libraries(repro PRIVATE ${{CMAKE_DL_LIBS}})
"""
