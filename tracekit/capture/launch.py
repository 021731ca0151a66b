"""Run a workload: recorded by nsys, or plain and timed.

nsys' exit code proves nothing and its files may be missing, old or elsewhere. So a run is recorded under a name that
never existed, exported here, looked into, and put in place at the end, whole.
"""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracekit.capture import supervise
from tracekit.capture.interruption import Interruption
from tracekit.capture.load import Load
from tracekit.capture.nsys import ATTEMPTS, export_report
from tracekit.capture.nsys_options import Settings, nsys_version, profile_environment
from tracekit.capture.nsys_session import Session, complaint
from tracekit.capture.outcome import Finding, Outcome
from tracekit.capture.supervise import Conditions
from tracekit.errors import OutsideProgramFailed, UnusableInput, WrongUsage

GRACE_S = 15.0
"""How long a workload may take to end after it was asked to."""

AGENT_LOST = "Connection to Agent lost"
"""What nsys says when it has lost its own background process."""


@dataclass(frozen=True)
class Timing:
    """A run of a workload. ``wall_s`` is the workload's own time, without nsys' start and its report.

    ``exit_code`` is the workload's own (128 and the signal's number where one ended it); None where nsys went before
    the workload did. ``stopped_by`` says who ended it early: a signal to tracekit, the end of the load, or nsys when
    the duration was over; an exit code is then no failure of the workload. ``interrupted`` says that tracekit was asked
    to stop, perhaps when the workload had ended already.
    """

    command: list[str]
    exit_code: int | None
    wall_s: float
    stopped_by: Literal["signal", "load", "duration"] | None
    interrupted: bool
    stdout_log: Path
    stderr_log: Path
    findings: list[Finding]

    @property
    def failed(self) -> bool:
        """Whether the workload itself failed."""
        return bool(self.exit_code) and self.stopped_by is None


@dataclass(frozen=True)
class Recording(Timing):
    """A run under nsys; ``trace`` is None where nothing was recorded, and a finding says why."""

    trace: Path | None
    report: Path | None
    nsys_version: str


def run_plain(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    stdout_log: Path,
    stderr_log: Path,
    load: Load | None = None,
    grace_s: float = GRACE_S,
) -> Timing:
    """Run and time a workload without nsys, launched, stopped and kept like a recorded one.

    ``environment`` is the whole environment. Raises WrongUsage where a program or a folder is missing or a log exists,
    KeyboardInterrupt where it was asked to stop before the workload began.
    """
    _check(command, load, environment, [stdout_log, stderr_log])
    conditions = Conditions(environment, stdout_log, stderr_log, load, grace_s)
    with _private_folder(stdout_log.parent) as folder:
        shimmed = supervise.shimmed(folder, command)
        ran = supervise.run(shimmed, conditions, folder=folder, said=subprocess.DEVNULL)
    if ran.wall_s is None:
        _forget(conditions)
        if ran.interrupted:
            raise KeyboardInterrupt
        raise OutsideProgramFailed("/bin/sh did not run the workload: try it by hand")
    return Timing(
        command=list(command),
        exit_code=ran.code if ran.code >= 0 else 128 - ran.code,
        wall_s=ran.wall_s,
        stopped_by=ran.stopped_by,
        interrupted=ran.interrupted,
        stdout_log=stdout_log,
        stderr_log=stderr_log,
        findings=_of_the_run(ran),
    )


def record(
    command: Sequence[str],
    *,
    nsys: Path,
    target: Path,
    settings: Settings,
    environment: Mapping[str, str],
    stdout_log: Path,
    stderr_log: Path,
    annotated: bool = False,
    keep_report: bool = False,
    load: Load | None = None,
    grace_s: float = GRACE_S,
) -> Recording:
    """Record a workload into ``target``, a new SQLite export; a kept report lies beside it.

    ``environment`` is the whole environment of the workload; ``annotated`` says that NVTX ranges are expected. The
    workload's output passes through to this process's own and into the logs. SIGINT, SIGTERM and SIGHUP end the
    workload and keep what was recorded; ``grace_s`` later it is killed. Raises OutsideProgramFailed where nsys does
    not do its part, WrongUsage where a program is missing or a file exists already, KeyboardInterrupt where it was
    asked to stop before the workload began, or a second time.
    """
    report_target = target.with_suffix(".nsys-rep")
    _check(command, load, environment, [target, report_target, stdout_log, stderr_log])
    version = nsys_version(nsys)
    conditions = Conditions({**environment, **profile_environment(settings)}, stdout_log, stderr_log, load, grace_s)
    # Asked to stop when the workload is over, it still exports and puts in place what was recorded.
    with Interruption(raises=2) as late, _private_folder(target.parent) as folder:
        for attempt in range(ATTEMPTS):
            place = folder / str(attempt)
            place.mkdir()
            session = Session.of(nsys, version, settings, place, supervise.shimmed(place, command))
            ran, words = _profiled(session, conditions, place)
            if ran.wall_s is not None or ran.interrupted or AGENT_LOST not in words:
                break
        late.count += ran.interrupted
        why = f"({complaint(words)}): try by hand: {session.by_hand(command)}"
        if ran.interrupted and (ran.wall_s is None or ran.code < 0):
            raise KeyboardInterrupt
        if ran.wall_s is None:
            raise OutsideProgramFailed(f"nsys did not run the workload {why}")
        if ran.code < 0:
            raise OutsideProgramFailed(
                f"nsys was ended by {signal.Signals(-ran.code).name} before its report was whole, and the workload "
                "with it: run it again and leave nsys the time it needs"
            )
        findings = _of_the_run(ran)
        outcome = Outcome(settings, version, annotated, ran.code)
        trace = kept = None
        if _is_filled(session.report):
            export = _exported(session.report, report_target, nsys)
            findings += outcome.of_export(export)
            trace = _in_place(export, target)
            kept = _in_place(session.report, report_target) if keep_report else None
        elif reason := outcome.without_report():
            findings.append(reason)
        else:
            raise OutsideProgramFailed(f"nsys ran the workload (exit code {ran.code}) and left no report {why}")
    return Recording(
        command=session.command,
        exit_code=None if ran.outlived else ran.code,
        wall_s=ran.wall_s,
        stopped_by=ran.stopped_by or ("duration" if _is_over(settings, ran) else None),
        interrupted=late.count > 0,
        stdout_log=stdout_log,
        stderr_log=stderr_log,
        findings=findings,
        trace=trace,
        report=kept,
        nsys_version=".".join(map(str, version)),
    )


def _profiled(session: Session, conditions: Conditions, folder: Path) -> tuple[supervise.Run, str]:
    """Run a session, and what nsys said; without a workload or a report nothing of it is left."""
    with (folder / "said").open("w+b") as said:
        try:
            ran = supervise.run(session.command, conditions, folder=folder, said=said)
        except OSError as error:
            raise OutsideProgramFailed(
                f"{session.command[0]} does not start ({error.strerror}): install it anew"
            ) from error
        said.seek(0)
        words = said.read().decode(errors="replace")
    if ran.wall_s is None:
        _forget(conditions)
    if not _is_filled(session.report):
        session.sweep()
    return ran, words


def _forget(conditions: Conditions) -> None:
    """Remove the logs of a workload that never began."""
    conditions.stdout_log.unlink()
    conditions.stderr_log.unlink()


def _check(command: Sequence[str], load: Load | None, environment: Mapping[str, str], files: list[Path]) -> None:
    """Refuse before anything runs what could not end well."""
    if load:
        files = [*files, load.log]
    for program in [command, load.command] if load else [command]:
        if not program:
            raise WrongUsage("there is nothing to run: give a command line")
        if shutil.which(program[0], path=environment.get("PATH")) is None:
            raise WrongUsage(f"{program[0]}: no such program: check its name, or give its path")
    for file in files:
        if file.exists() or file.is_symlink():
            raise WrongUsage(f"{file} exists already: choose another name")


@contextmanager
def _private_folder(beside: Path) -> Iterator[Path]:
    try:
        beside.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=beside, prefix=".recording-", ignore_cleanup_errors=True)
    except OSError as error:
        raise UnusableInput(f"{beside}: cannot be written to ({error.strerror}): choose another folder") from error
    with folder as name:
        yield Path(name).absolute()


def _exported(report: Path, report_target: Path, nsys: Path) -> Path:
    """The report's export beside it; where that fails, the report is put in place, so that nothing is lost."""
    export = report.with_suffix(".sqlite")
    try:
        try:
            export_report(report, export, nsys)
        except OutsideProgramFailed as error:
            if "locked" not in str(error):
                raise
            # Network file systems may not lock files as SQLite wants it.
            with tempfile.TemporaryDirectory() as local:
                export_report(report, Path(local) / export.name, nsys)
                shutil.move(Path(local) / export.name, export)
    except OutsideProgramFailed as error:
        raise OutsideProgramFailed(f"{error}; the report is kept: {_in_place(report, report_target)}") from error
    return export


def _in_place(file: Path, target: Path) -> Path:
    if target.exists():
        raise UnusableInput(f"{target} came to exist during the run: move it away and run again")
    return file.rename(target)


def _is_over(settings: Settings, ran: supervise.Run) -> bool:
    """Whether nsys ended the workload, as it does when the duration is over."""
    return settings.duration_s is not None and not ran.outlived and ran.code > 128


def _of_the_run(ran: supervise.Run) -> list[Finding]:
    """What went wrong beside the workload."""
    cut = [Finding("output-cut", f"{log} ends early: it could not be written to any more") for log in ran.cut]
    return [Finding("load", ran.load_trouble), *cut] if ran.load_trouble else cut


def _is_filled(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0
