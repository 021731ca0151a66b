"""A run folder: what a run leaves, and ``run.json``, which says what lies in it and how it came about."""

import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from tracekit.analysis.statistics.thresholds import PROFILER_COSTLY
from tracekit.capture.arms import Role
from tracekit.capture.machine import Machine
from tracekit.capture.outcome import Finding
from tracekit.errors import UnusableInput, WrongUsage

VERSION = 1
"""Of the manifest's form; one that is newer cannot be read."""

MANIFEST = "run.json"

RUNS = Path("runs")
"""Where run folders go by default."""

State = Literal["recording", "complete", "interrupted", "failed"]


class RecordedArm(msgspec.Struct, frozen=True):
    """One way of launching; ``role`` is what was asked for, not what the traces turned out to hold.

    ``environment`` is set on top of the workload's, null where a variable is taken away.
    """

    name: str
    role: Role
    environment: dict[str, str | None]
    arguments: list[str]


class Block(msgspec.Struct):
    """One arm recorded once, and run once more unprofiled.

    ``block`` counts from 1; the runs of one number belong together. ``trace`` is null where nothing was recorded,
    times are seconds and null where a run was cut short or there was none.
    """

    arm: str
    block: int
    trace: str | None = None
    report: str | None = None
    profiled_wall_s: float | None = None
    profiled_exit_code: int | None = None
    plain_wall_s: float | None = None
    plain_exit_code: int | None = None
    findings: list[Finding] = []


class Nsys(msgspec.Struct, frozen=True):
    """The nsys that recorded, and the options it was given."""

    version: str
    arguments: list[str]


class Dumps(msgspec.Struct, frozen=True):
    """DOT files of graphs, in the order of their commits; ``stopped`` where there would have been more."""

    files: list[str]
    stopped: bool


class Manifest(msgspec.Struct, kw_only=True):
    """What a run is. ``blocks`` are in the order in which they were run; files are named from the run folder.

    ``state`` is ``recording`` only while it runs, or where it was killed.
    """

    version: int = VERSION
    name: str
    state: State = "recording"
    reason: str | None = None
    started: datetime
    ended: datetime | None = None
    command: list[str]
    annotate: str
    framework: str | None
    packages: dict[str, str]
    machine: Machine
    nsys: Nsys
    environment: dict[str, str]
    arms: list[RecordedArm]
    blocks: list[Block] = []
    dumps: Dumps | None = None
    findings: list[Finding] = []


class WallTimes(NamedTuple):
    """Median wall times (s) of one arm over the blocks that were run both ways to their end."""

    arm: str
    blocks: int
    plain: float
    profiled: float

    @property
    def costly(self) -> bool:
        """Whether the profiler changed the run so much that overlap is indicative only."""
        return self.profiled > PROFILER_COSTLY * self.plain


def wall_times(manifest: Manifest) -> list[WallTimes]:
    """What each arm took without and with the profiler; arms without such a block are left out."""
    found = []
    for arm in manifest.arms:
        timed = [
            (block.plain_wall_s, block.profiled_wall_s)
            for block in manifest.blocks
            if block.arm == arm.name and block.plain_wall_s and block.profiled_wall_s
        ]
        if timed:
            plain, profiled = (median(times) for times in zip(*timed, strict=True))
            found.append(WallTimes(arm.name, len(timed), plain, profiled))
    return found


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def create(cls, wanted: Path | None, name: str) -> "RunFolder":
        """A new folder, or an empty one that was named; by default ``runs/<UTC time>-<name>``. Raises WrongUsage."""
        try:
            path = wanted or _new(name)
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise WrongUsage(f"{path}: is not empty: name a new folder by --output")
            (path / "logs").mkdir()
        except OSError as error:
            place = wanted or RUNS
            raise WrongUsage(f"{place}: cannot be made ({error.strerror}): name another folder by --output") from error
        return cls(path)

    def trace(self, arm: str, block: int) -> Path:
        """Where the export of an arm and block goes."""
        return self.path / f"{arm}-{block}.sqlite"

    def log(self, arm: str, block: int | str, what: str) -> Path:
        """Where a log goes: ``what`` is stdout, stderr or load, those of the unprofiled run with ``plain-`` before."""
        return self.path / "logs" / f"{arm}-{block}-{what}.log"

    def write(self, manifest: Manifest) -> None:
        """Put the manifest in place, whole. Raises UnusableInput where the folder takes no more."""
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
        try:
            with tempfile.TemporaryDirectory(dir=self.path, prefix=".run-") as aside:
                fresh = Path(aside, MANIFEST)
                fresh.write_bytes(text)
                fresh.replace(self.path / MANIFEST)
        except OSError as error:
            file = self.path / MANIFEST
            raise UnusableInput(f"{file}: cannot be written ({error.strerror}): make room there") from error

    def discard(self) -> bool:
        """Remove the folder where there is nothing in it that anyone could miss; whether that was so."""
        files = [file for file in self.path.rglob("*") if file.is_file() and file.name != MANIFEST]
        if any(file.stat().st_size for file in files):
            return False
        with suppress(OSError):
            shutil.rmtree(self.path)
        return True


def _new(name: str) -> Path:
    """A folder that is made here and now, beside those of runs that began in the same second."""
    file_name = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "run"
    first = RUNS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{file_name}"
    path, number = first, 1
    while True:
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1
            path = first.with_name(f"{first.name}-{number}")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run folder. Raises UnusableInput where it is missing, damaged or of a newer tracekit."""
    file = folder / MANIFEST
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UnusableInput(f"{folder}: no run folder: {MANIFEST} cannot be read ({error.strerror})") from error
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version > VERSION:
            raise UnusableInput(f"{file}: written by a newer tracekit (version {version}): update tracekit")
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as error:
        raise UnusableInput(f"{file}: no manifest of a run ({error}): record the run again") from error


class _Versioned(msgspec.Struct):
    version: int
