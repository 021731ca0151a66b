"""A whole run: every block of every arm recorded and timed, the run folder filled, its manifest kept true."""

import os
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tracekit.analysis.statistics.thresholds import FEWEST_BLOCKS
from tracekit.capture import machine
from tracekit.capture.arms import Arm, in_turn
from tracekit.capture.dumps import take_dumps
from tracekit.capture.labels import mislabelled
from tracekit.capture.launch import Timing, record, run_plain
from tracekit.capture.load import Load
from tracekit.capture.nsys_options import Settings, nsys_version, profile_arguments
from tracekit.capture.outcome import Finding
from tracekit.capture.run_folder import Block, Manifest, Nsys, RecordedArm, RunFolder, wall_times
from tracekit.capture.workload import Workload
from tracekit.errors import TracekitError
from tracekit.frameworks import Framework

INTERRUPTED = 130
"""Exit code of a run that was asked to stop."""


@dataclass(frozen=True)
class Plan:
    """What to run, in which arms, how often, and what to record of it.

    ``load`` is the command line of a load, ``port`` the one it waits for. ``doubts`` are what is to be known of the
    arms beforehand. ``dump`` is the variable that makes the framework write its graphs, None without dumps.
    """

    workload: Workload
    framework: Framework | None
    arms: list[Arm]
    blocks: int
    nsys: Path
    settings: Settings = field(default_factory=Settings)
    name: str | None = None
    output: Path | None = None
    load: list[str] | None = None
    port: int | None = None
    keep_report: bool = False
    dump: str | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A run that is over: its folder (None where nothing was worth keeping), what it holds, and the exit code."""

    folder: Path | None
    manifest: Manifest
    exit_code: int


def record_run(plan: Plan, say: Callable[[str], None]) -> Ended:
    """Record a plan into a run folder; ``say`` takes what to tell meanwhile, a line at a time.

    Ends early, keeping what there is, when a run of the workload fails or a signal asks to stop. Raises WrongUsage
    or UnusableInput before anything is made, OutsideProgramFailed where nsys does not do its part; the run folder
    then says so.
    """
    plan.workload.check()
    version = nsys_version(plan.nsys)
    options, left_out = profile_arguments(version, plan.settings, output=Path(), session="")
    nsys = Nsys(
        ".".join(map(str, version)),
        machine.without_secrets([each for each in options if not each.startswith(("--output=", "--session-new="))]),
    )
    command = machine.without_secrets(plan.workload.command)
    name = plan.name or plan.workload.name
    manifest = Manifest(
        name=name,
        started=datetime.now(UTC),
        command=command,
        annotate=plan.workload.annotate if plan.workload.annotated else "off",
        framework=plan.framework.name if plan.framework else None,
        packages=machine.versions(of_packages=plan.workload.in_this_environment),
        machine=machine.examine(),
        nsys=nsys,
        environment=machine.kept_environment(os.environ),
        arms=[
            RecordedArm(arm.name, arm.role, machine.without_secret_values(arm.environment), list(arm.arguments))
            for arm in plan.arms
        ],
        findings=[*_doubts(plan), *(Finding("option-left-out", note) for note in left_out)],
    )
    with _stopping_by_exception():
        folder = RunFolder.create(plan.output, name)
        for finding in manifest.findings:
            say(finding.message)
        say(f"recording into {folder.path} by: {shlex.join([str(plan.nsys), 'profile', *nsys.arguments, *command])}")
        return _Session(plan, folder, manifest, say).run()


def _doubts(plan: Plan) -> Iterator[Finding]:
    for doubt in plan.doubts:
        yield Finding("arms", doubt)
    if plan.workload.annotated and plan.workload.annotate == "sync-modules":
        yield Finding(
            "sync-modules", "every module is evaluated at its end: layer costs, not the times of the workload"
        )
    if len(plan.arms) > 1 and plan.blocks < FEWEST_BLOCKS:
        yield Finding("few-blocks", f"no verdict from fewer than {FEWEST_BLOCKS} blocks: a tendency at most")
    if plan.settings.duration_s is not None:
        yield Finding("no-plain-run", "recording for a duration ends the workload: it is not timed without nsys")
    if plan.load and plan.port is None:
        yield Finding("load", "no port is known to wait for: the load begins at once; name one by --port of the server")


@contextmanager
def _stopping_by_exception() -> Iterator[None]:
    """Between runs of the workload SIGTERM and SIGHUP stop the session as SIGINT does."""
    before = {sign: signal.signal(sign, signal.default_int_handler) for sign in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


class _Session:
    def __init__(self, plan: Plan, folder: RunFolder, manifest: Manifest, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._folder = folder
        self._manifest = manifest
        self._say = say
        self._runs = 0

    def run(self) -> Ended:
        manifest = self._manifest
        code = 0
        try:
            self._folder.write(manifest)
            code = self._all_blocks()
            if not code and self._plan.dump:
                self._take_dumps(self._plan.dump)
            manifest.machine.after = machine.gpu_states()
            manifest.state = "failed" if code else "complete"
        except KeyboardInterrupt:
            manifest.state, manifest.reason, code = "interrupted", "asked to stop", INTERRUPTED
        except TracekitError as error:
            manifest.state, manifest.reason = "failed", str(error)
            raise
        finally:
            kept = self._close()
        return Ended(self._folder.path if kept else None, manifest, code)

    def _all_blocks(self) -> int:
        """Run the blocks up to the first failure of the workload; its exit code, else 0."""
        steps = [self._record] if self._plan.settings.duration_s is not None else [self._record, self._time]
        for number, arm in in_turn(self._plan.arms, self._plan.blocks):
            block = Block(arm.name, number)
            self._manifest.blocks.append(block)
            # Whatever the first run of a pair leaves warm favours neither of the two.
            for step in steps if number % 2 else reversed(steps):
                failure = step(arm, block)
                if failure:
                    return failure
            self._folder.write(self._manifest)
        return 0

    def _record(self, arm: Arm, block: Block) -> int:
        self._announce(arm, block, "under nsys")
        ran = record(
            [*self._plan.workload.command, *arm.arguments],
            nsys=self._plan.nsys,
            target=self._folder.trace(arm.name, block.block),
            settings=self._plan.settings,
            environment=arm.applied_to(os.environ),
            stdout_log=self._folder.log(arm.name, block.block, "stdout"),
            stderr_log=self._folder.log(arm.name, block.block, "stderr"),
            annotated=self._plan.workload.annotated,
            keep_report=self._plan.keep_report,
            load=self._load(arm, block, "load"),
        )
        block.trace = ran.trace.name if ran.trace else None
        block.report = ran.report.name if ran.report else None
        block.profiled_exit_code, block.profiled_wall_s = ran.exit_code, _wall(ran)
        if ran.trace and (finding := mislabelled(ran.trace, arm)):
            block.findings.append(finding)
        return self._judge(ran, arm, block)

    def _time(self, arm: Arm, block: Block) -> int:
        self._announce(arm, block, "without nsys")
        ran = run_plain(
            [*self._plan.workload.command, *arm.arguments],
            environment=arm.applied_to(os.environ),
            stdout_log=self._folder.log(arm.name, block.block, "plain-stdout"),
            stderr_log=self._folder.log(arm.name, block.block, "plain-stderr"),
            load=self._load(arm, block, "plain-load"),
        )
        block.plain_exit_code, block.plain_wall_s = ran.exit_code, _wall(ran)
        return self._judge(ran, arm, block)

    def _announce(self, arm: Arm, block: Block, how: str) -> None:
        self._runs += 1
        runs = len(self._plan.arms) * self._plan.blocks * (1 if self._plan.settings.duration_s is not None else 2)
        self._say(f"run {self._runs} of {runs}: arm {arm.name} ({arm.told}), block {block.block}, {how}")

    def _load(self, arm: Arm, block: Block, log: str) -> Load | None:
        if self._plan.load is None:
            return None
        return Load(self._plan.load, self._folder.log(arm.name, block.block, log), self._plan.port)

    def _judge(self, ran: Timing, arm: Arm, block: Block) -> int:
        """File what came of a run: the exit code of a workload that failed, else 0. Stops the session when asked to."""
        block.findings += ran.findings
        if ran.stopped_by == "signal":
            block.findings.append(Finding("interrupted", "asked to stop: this is not the whole run"))
        if ran.interrupted:
            raise KeyboardInterrupt
        if not ran.failed:
            return 0
        reason = f"the workload ended with exit code {ran.exit_code} in arm {arm.name}, block {block.block}"
        self._manifest.reason = reason
        block.findings.append(Finding("workload-failed", reason))
        return ran.exit_code or 0

    def _take_dumps(self, variable: str) -> None:
        arm = next(arm for arm in self._plan.arms if arm.role != "off")
        self._say(f"arm {arm.name}, once more for graph dumps, not timed")
        dumps, findings, stopped = take_dumps(
            [*self._plan.workload.command, *arm.arguments], variable, arm.applied_to(os.environ), self._folder
        )
        self._manifest.dumps = dumps
        self._manifest.findings += findings
        if stopped:
            raise KeyboardInterrupt

    def _close(self) -> bool:
        """Leave a true manifest, or nothing where nothing was run; whether there is something."""
        manifest = self._manifest
        manifest.blocks = [block for block in manifest.blocks if block != Block(block.arm, block.block)]
        if not manifest.blocks and self._folder.discard():
            return False
        manifest.ended = datetime.now(UTC)
        manifest.findings += _costs(manifest)
        self._folder.write(manifest)
        return True


def _wall(ran: Timing) -> float | None:
    """The time of a run that was not cut short."""
    return None if ran.stopped_by == "signal" else ran.wall_s


def _costs(manifest: Manifest) -> Iterator[Finding]:
    """Arms that the profiler made much slower."""
    for times in wall_times(manifest):
        if not times.costly:
            continue
        yield Finding(
            "profiler-cost",
            f"arm {times.arm} took {times.profiled:.3g} s profiled and {times.plain:.3g} s plain "
            f"(+{times.profiled / times.plain - 1:.0%}): overlap is indicative only",
        )
