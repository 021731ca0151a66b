"""Which options of ``nsys profile`` each version knows, and the arguments that suit a version.

nsys refuses to run when it meets an option that it does not know, or one that is given twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tracekit.capture.outside import ask
from tracekit.capture.phase import DOMAIN
from tracekit.errors import OutsideProgramFailed, WrongUsage

Version = tuple[int, int, int]

SECONDS = 30.0
"""How long nsys may take to tell its version."""


class Known(NamedTuple):
    """The versions that know an option: the first one seen to, and what is lost where it is left out.

    A version in which the option has not been seen is taken not to know it: without the option a recording says
    less, with an unknown one there is none.
    """

    since: Version
    without: str


_OLDEST = (2020, 4, 3)
"""The oldest version whose options were looked at."""

OPTIONS: dict[str, Known] = {
    "--trace": Known(_OLDEST, "nothing is traced"),
    "--cuda-graph-trace": Known((2022, 4, 2), "graphs are traced as this version sees fit"),
    "--sample": Known(_OLDEST, "CPU samples are taken"),
    "--cpuctxsw": Known(_OLDEST, "context switches are traced"),
    "--cuda-event-trace": Known((2025, 1, 1), "CUDA events are traced as this version sees fit"),
    "--discard-environment": Known((2026, 2, 0), "the trace holds the whole environment"),
    "--capture-range": Known(_OLDEST, "the whole run is recorded"),
    "--nvtx-capture": Known(_OLDEST, "the whole run is recorded"),
    "--capture-range-end": Known((2021, 2, 1), "the workload is ended when the captured range ends"),
    "--delay": Known(_OLDEST, "recording begins at once"),
    "--duration": Known(_OLDEST, "recording lasts until the workload ends"),
    "--kill": Known(_OLDEST, "the workload is ended when recording stops"),
    "--wait": Known(_OLDEST, "processes left behind by the workload are waited for"),
    "--stop-on-exit": Known(_OLDEST, "recording stops when the workload ends"),
    "--show-output": Known(_OLDEST, "the workload's output is kept in the report"),
    "--export": Known(_OLDEST, "nothing is exported"),
    "--session-new": Known(_OLDEST, "the session has a name of nsys' own"),
    "--output": Known(_OLDEST, "the report has a name of nsys' own"),
}

_SHORT = {
    "-t": "--trace", "-s": "--sample", "-c": "--capture-range", "-p": "--nvtx-capture", "-y": "--delay",
    "-d": "--duration", "-x": "--stop-on-exit", "-w": "--show-output", "-o": "--output",
}  # fmt: skip

OURS = ("--output", "--export", "--show-output", "--session-new")
"""Options on which finding the files, the output and the processes again depends."""


@dataclass(frozen=True)
class Settings:
    """What to record of a run. Times are seconds.

    ``capture_phase`` records the first range of that name in tracekit's NVTX domain and nothing else;
    ``capture_profiler_api`` from cudaProfilerStart to cudaProfilerStop. ``kill`` is what nsys does to the workload
    when ``duration_s`` is over: ``none``, ``sigterm``, ``sigkill`` or a number. ``passed_on`` are options for nsys
    in its own words, each replacing tracekit's of the same name.
    """

    osrt: bool = False
    capture_phase: str | None = None
    capture_profiler_api: bool = False
    delay_s: float | None = None
    duration_s: float | None = None
    kill: str | None = None
    wait: Literal["primary", "all"] | None = None
    stop_on_exit: bool = True
    passed_on: tuple[str, ...] = ()

    @property
    def capture(self) -> str | None:
        """In words, what has to happen before anything is recorded."""
        if self.capture_phase is not None:
            return f"the phase {self.capture_phase!r} in NVTX domain {DOMAIN}"
        return "cudaProfilerStart" if self.capture_profiler_api else None


class Arguments(NamedTuple):
    """Arguments of ``nsys profile`` up to the workload's command line, and a note on each option left out."""

    options: list[str]
    notes: list[str]


def nsys_version(nsys: Path) -> Version:
    """The version of an nsys, such as (2023, 4, 4). Raises OutsideProgramFailed when it tells none."""
    reply = ask([nsys, "--version"], SECONDS)
    found = re.search(r"version (\d+)\.(\d+)(?:\.(\d+))?", reply.out)
    if found is None:
        what = reply.ending if reply.code != 0 else "tells no version"
        raise OutsideProgramFailed(f"{nsys} {what}: try by hand: {nsys} --version; else install Nsight Systems anew")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def profile_arguments(version: Version, settings: Settings, *, output: Path, session: str) -> Arguments:
    """What follows ``nsys profile`` for this version. ``output`` is the report's path without its ending.

    Raises WrongUsage for settings that exclude one another.
    """
    passed_on = {_name(argument) for argument in settings.passed_on if argument.startswith("-")}
    _check(settings, passed_on)
    options, notes = [], []
    for name, value in _wanted(settings, output, session):
        if name in passed_on:
            continue
        if version >= OPTIONS[name].since:
            options.append(f"{name}={value}")
        else:
            dotted = ".".join(map(str, version))
            notes.append(f"nsys {dotted} lacks {name}={value}: {OPTIONS[name].without}")
    return Arguments([*options, *settings.passed_on], notes)


def profile_environment(settings: Settings) -> dict[str, str]:
    """Environment variables that nsys needs beside its arguments."""
    # nsys looks for the captured range among registered strings only, which few programs use.
    return {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"} if settings.capture_phase is not None else {}


def _name(argument: str) -> str:
    option = argument.partition("=")[0]
    return option if option.startswith("--") else _SHORT.get(option[:2], option)


def _check(settings: Settings, passed_on: set[str]) -> None:
    if settings.capture_phase is not None and settings.capture_profiler_api:
        raise WrongUsage("a run is captured by a phase or by cudaProfilerStart, not by both: choose one")
    if not settings.stop_on_exit and settings.duration_s is None:
        raise WrongUsage("recording beyond the workload's end needs an end of its own: give a duration too")
    if taken := passed_on.intersection(OURS):
        raise WrongUsage(f"{', '.join(sorted(taken))} cannot be passed on to nsys: tracekit sets it itself")


def _wanted(settings: Settings, output: Path, session: str) -> Iterator[tuple[str, str]]:
    yield "--trace", "cuda,nvtx,osrt" if settings.osrt else "cuda,nvtx"
    yield "--cuda-graph-trace", "node"
    yield "--sample", "none"
    # Sampling left out, context switches are still traced.
    yield "--cpuctxsw", "none"
    # Tracing CUDA events can make streams wait for one another that otherwise would not.
    yield "--cuda-event-trace", "false"
    yield "--discard-environment", "true"
    if settings.capture_phase is not None:
        yield "--capture-range", "nvtx"
        # Without its domain nsys looks for the range in the default one.
        yield "--nvtx-capture", settings.capture_phase.replace("@", r"\@") + "@" + DOMAIN
    elif settings.capture_profiler_api:
        yield "--capture-range", "cudaProfilerApi"
    if settings.capture:
        yield "--capture-range-end", "stop"
    if settings.delay_s is not None:
        yield "--delay", f"{settings.delay_s:g}"
    if settings.duration_s is not None:
        yield "--duration", f"{settings.duration_s:g}"
    if settings.kill is not None:
        yield "--kill", settings.kill
    if settings.wait is not None:
        yield "--wait", settings.wait
    if not settings.stop_on_exit:
        yield "--stop-on-exit", "false"
    yield "--show-output", "false"
    yield "--export", "none"
    yield "--session-new", session
    # nsys expands %p, %h and the like in the name.
    yield "--output", str(output).replace("%", "%%")
