"""A stand-in for nsys: runs the workload as nsys does and "records" one of the sample exports.

Which one, the workload's environment says: graphs off, serial, or on. ``STAND_IN`` in tracekit's own environment
makes it misbehave: ``always-on`` records graphs whatever was asked for, ``no-report`` leaves no report, ``refuse``
does not run the workload, ``slow-export`` takes its time over exports.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "sample_traces"
HOW = os.environ.get("STAND_IN")


def recorded() -> str:
    """The name of the sample that this environment leads to."""
    if HOW != "always-on":
        if os.environ.get("MLX_USE_CUDA_GRAPHS") == "0":
            return "gbx-graphs-off"
        if os.environ.get("MLX_CUDA_GRAPH_SERIAL") == "1":
            return "gbx-graphs-serial"
    return "gbx-graphs-on"


def profile(arguments: list[str]) -> int:
    if HOW == "refuse":
        sys.stdout.write("unrecognised option '--so-it-is'\n")
        return 1
    at = arguments.index("/bin/sh")
    (output,) = [each.partition("=")[2] for each in arguments[:at] if each.startswith("--output=")]
    # The workload has a process group of its own, so that signals to it spare nsys.
    workload = subprocess.Popen(arguments[at:], env={**os.environ, "PROFILED": "1"}, process_group=0)
    code = workload.wait()
    if HOW != "no-report":
        Path(f"{output}.nsys-rep").write_text(recorded())
    return code if code >= 0 else 128 - code


def export(arguments: list[str]) -> int:
    if HOW == "slow-export":
        Path(os.environ["EXPORTING"]).touch()
        time.sleep(2)
    output, report = arguments[arguments.index("--output") + 1], Path(arguments[-1])
    shutil.copyfile(SAMPLES / f"{report.read_text()}.sqlite", output)
    return 0


def install(folder: Path) -> Path:
    """A program that runs this file."""
    folder.mkdir(exist_ok=True)
    program = folder / "nsys"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "$@"\n')
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--version"]:
            sys.stdout.write("NVIDIA Nsight Systems version 2026.2.1.210-262137639845v0\n")
        case ["profile", *rest]:
            sys.exit(profile(rest))
        case ["export", *rest]:
            sys.exit(export(rest))
