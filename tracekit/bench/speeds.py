"""A model's speed over arms: each in processes of its own, in turn. What is measured there is put together here."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tracekit import __version__
from tracekit.analysis.results import BenchModel, Warn
from tracekit.analysis.results.bench import SpeedRow
from tracekit.analysis.statistics.ratios import ratio_of_blocks
from tracekit.analysis.statistics.steadiness import unsteady
from tracekit.bench.fit import median_interval
from tracekit.bench.generation import Request, Times
from tracekit.capture.arms import Arm, doubts, in_turn, parse_arm
from tracekit.capture.machine import examine
from tracekit.errors import OutsideProgramFailed, WrongUsage
from tracekit.frameworks import FRAMEWORKS, Framework

DEFAULT_ARM = "default"
"""The arm as the environment has it, to which the others are compared."""


def speed_arms(own: Sequence[str]) -> list[Arm]:
    """The default and the user's own; on a machine with an NVIDIA GPU, where none are given, serial and off."""
    arms = [Arm(DEFAULT_ARM, "own")]
    mlx = _mlx()
    if own:
        arms += [Arm(name, "own", dict(given)) for name, given in map(parse_arm, own)]
    elif examine().gpus and mlx.serial and mlx.switch:
        arms += [Arm("serial", "serial", dict([mlx.serial])), Arm("off", "off", {mlx.switch.variable: mlx.switch.off})]
    names = [arm.name for arm in arms]
    if twice := {name for name in names if names.count(name) > 1}:
        raise WrongUsage(f"two arms are called {', '.join(sorted(twice))}: give each a name of its own")
    return arms


def speeds(request: Request, arms: Sequence[Arm], blocks: int) -> BenchModel:
    """Run every arm once a block, in turn, and compare. Raises OutsideProgramFailed where a process fails."""
    found: dict[str, list[Times]] = {arm.name: [] for arm in arms}
    for _, arm in in_turn(arms, blocks):
        found[arm.name].append(_timed_apart(request, arm))
    first = found[arms[0].name][0]
    return BenchModel(
        tracekit=__version__,
        command="benchmodel",
        traces=[],
        warnings=[Warn("arm_without_effect", doubt, 1) for doubt in doubts(arms, _mlx(), os.environ)],
        phase=request.phase,
        model=request.model or f"tiny {request.tiny}",
        device=first.device,
        versions=first.versions,
        arms={arm.name: arm.told for arm in arms},
        rows=speed_rows(found),
    )


def _mlx() -> Framework:
    return next(framework for framework in FRAMEWORKS if framework.name == "MLX")


def _timed_apart(request: Request, arm: Arm) -> Times:
    """A switch is of the whole process, so each arm has processes of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "tracekit.bench.generation"],
        input=msgspec.json.encode(request),
        env=arm.applied_to(os.environ),
        capture_output=True,
        check=False,
    )
    if ended.returncode:
        reason = (ended.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise OutsideProgramFailed(f"arm {arm.name}: the model could not be timed ({reason})")
    return msgspec.json.decode(ended.stdout.splitlines()[-1], type=Times)


def speed_rows(found: Mapping[str, Sequence[Times]]) -> list[SpeedRow]:
    """One row for each workload and arm: ``found`` has the processes of each arm, in the order of blocks."""
    ground = next(iter(found))
    workloads = found[ground][0].tokens
    return [_row(workload, arm, found[arm], found[ground]) for workload in workloads for arm in found]


def _row(workload: str, arm: str, processes: Sequence[Times], ground: Sequence[Times]) -> SpeedRow:
    """Each process's first run is warm-up. The ratio is over blocks, by their medians."""
    runs = np.array([value for process in processes for value in process.ns[workload][1:]])
    time = float(np.median(runs))
    tokens = processes[0].tokens[workload]
    ratio = ratio_of_blocks(_medians(ground, workload), _medians(processes, workload)) if ground != processes else None
    return SpeedRow(
        workload=workload,
        arm=arm,
        tokens=tokens,
        n=runs.size,
        time_ns=time,
        ci95=median_interval(runs),
        tokens_per_s=tokens / time * 1e9,
        ratio=ratio.ratio if ratio else None,
        ratio_ci95=(ratio.low, ratio.high) if ratio else None,
        warm_up_ns=float(np.median([process.ns[workload][0] for process in processes])),
        unsteady=unsteady(runs),
    )


def _medians(processes: Sequence[Times], workload: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([np.median(process.ns[workload][1:]) for process in processes])
