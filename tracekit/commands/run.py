"""``tracekit run``."""

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from tracekit.errors import OutsideProgramFailed, UnusableInput, WrongUsage

if TYPE_CHECKING:
    from tracekit.capture.arms import Arm
    from tracekit.capture.run_folder import Manifest
    from tracekit.capture.session import Ended
    from tracekit.frameworks import Framework


class Graphs(StrEnum):
    """Which arms to record."""

    on = "on"
    off = "off"
    both = "both"
    serial = "serial"


class Annotate(StrEnum):
    """Which NVTX ranges to make."""

    phases = "phases"
    modules = "modules"
    sync_modules = "sync-modules"
    off = "off"


class Wait(StrEnum):
    """Which processes to wait for."""

    primary = "primary"
    all = "all"


DEFAULT_BLOCKS = 5
QUICK_BLOCKS = 2


class RunCommand(TyperCommand):
    """Options end at the first word of the workload; ``--`` before it says that it is a command line."""

    allow_interspersed_args = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse, and remember in ``ctx.obj`` whether ``--`` stood before the workload."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        words = ctx.params["words"] or ()
        ctx.obj = given[: len(given) - len(words)][-1:] == ["--"]
        return rest


def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            help="A Python script with its arguments; after '--' any command line.",
            metavar="SCRIPT [ARGS...] | -m MODULE [ARGS...] | -- COMMAND [ARGS...]",
            show_default=False,
        ),
    ],
    graphs: Annotated[
        Graphs | None, typer.Option(help="The arm to record; 'both' are on and off in turn.", show_default=False)
    ] = None,
    own_arms: Annotated[
        list[str] | None,
        typer.Option("--arm", help="One more arm, by its variables. May be repeated.", metavar="NAME:ENV=VALUE,..."),
    ] = None,
    graphs_off_in: Annotated[
        list[str] | None,
        typer.Option(
            help="One more arm, with graphs off in the phases of this name only, where the framework can do that. "
            "May be repeated.",
            metavar="PHASE",
        ),
    ] = None,
    module: Annotated[bool, typer.Option("-m", help="The first word is a Python module.")] = False,
    blocks: Annotated[
        int | None,
        typer.Option(help="Times that each arm is recorded: 5 where there are several arms, else 1.", min=1),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two blocks: a tendency, never a verdict.")] = False,
    framework: Annotated[
        str | None, typer.Option(help="What the workload uses, where it cannot be seen.", metavar="NAME")
    ] = None,
    add_switches: Annotated[
        bool, typer.Option("--add-switches", help="Add the framework's switch to the command line of arm off.")
    ] = False,
    annotate: Annotated[
        Annotate, typer.Option(help="NVTX ranges made for a script or module; sync-modules changes the run.")
    ] = Annotate.phases,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The run folder, if not runs/<UTC time>-<name>.", show_default=False),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the workload.", show_default=False)] = None,
    nsys: Annotated[Path | None, typer.Option(help="The nsys to use.", show_default=False)] = None,
    nsys_arg: Annotated[
        list[str] | None,
        typer.Option(help="An option for nsys profile, in its words. May be repeated.", metavar="OPTION"),
    ] = None,
    osrt: Annotated[bool, typer.Option("--osrt", help="Trace the operating system's library calls too.")] = False,
    capture_phase: Annotated[
        str | None, typer.Option(help="Record nothing but the first phase of this name.", metavar="NAME")
    ] = None,
    capture_profiler_api: Annotated[
        bool, typer.Option("--capture-profiler-api", help="Record from cudaProfilerStart to cudaProfilerStop.")
    ] = False,
    delay: Annotated[float | None, typer.Option(help="Begin recording after so long.", metavar="SECONDS")] = None,
    duration: Annotated[
        float | None, typer.Option(help="Record for so long, then end the workload.", metavar="SECONDS")
    ] = None,
    wait: Annotated[
        Wait | None, typer.Option(help="Processes to wait for while recording: all, if not said.", show_default=False)
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(help="A script to run against a workload that serves; its end ends the workload."),
    ] = None,
    dump_graphs: Annotated[
        bool, typer.Option("--dump-graphs", help="MLX: keep graphs as DOT files, from a run of its own.")
    ] = False,
    keep_rep: Annotated[bool, typer.Option("--keep-rep", help="Keep nsys' reports beside their exports.")] = False,
) -> None:
    """Record a workload under nsys, its CUDA graphs on, off or both in turn, into a run folder for diff.

    Each block is recorded once and run once more without nsys, so that the profiler's cost is known. Exits with the
    workload's own code when it fails; what was recorded is kept.
    """
    from tracekit.capture.arms import doubts, plan_arms
    from tracekit.capture.nsys_options import Settings
    from tracekit.capture.scoped_switch import check_scoped_switch
    from tracekit.capture.session import Plan, record_run
    from tracekit.capture.workload import Workload, named_framework

    if quick and blocks is not None:
        raise WrongUsage("--quick is two blocks: leave out --blocks")
    workload = Workload("module" if module else "command" if ctx.obj else "script", tuple(words), annotate.value)
    workload.check()
    used = named_framework(framework) if framework else workload.framework
    arms = plan_arms(
        graphs.value if graphs else None,
        own_arms or (),
        used,
        words,
        os.environ,
        add_switches=add_switches,
        off_in=graphs_off_in or (),
    )
    if graphs_off_in:
        check_scoped_switch(workload, used)
    if dump_graphs:
        _check_dumps(used, arms, load)
    plan = Plan(
        workload=workload,
        framework=used,
        arms=arms,
        blocks=QUICK_BLOCKS if quick else blocks or (DEFAULT_BLOCKS if len(arms) > 1 else 1),
        nsys=_nsys(nsys),
        settings=Settings(
            osrt=osrt,
            capture_phase=capture_phase,
            capture_profiler_api=capture_profiler_api,
            delay_s=delay,
            duration_s=duration,
            wait=wait.value if wait else None,
            passed_on=tuple(nsys_arg or ()),
        ),
        name=name,
        output=output,
        load=_load(load) if load else None,
        port=workload.port(used) if load else None,
        keep_report=keep_rep,
        dump=used.dump if used and dump_graphs else None,
        doubts=(*doubts(arms, used, os.environ), *(workload.warnings(used) if used else ())),
    )
    ended = record_run(plan, _say)
    _conclude(ended)
    raise typer.Exit(ended.exit_code)


def _check_dumps(framework: "Framework | None", arms: "list[Arm]", load: Path | None) -> None:
    if framework is None or framework.dump is None:
        name = framework.name if framework else "this workload"
        raise WrongUsage(f"--dump-graphs: {name} cannot write its graphs; MLX can")
    if all(arm.role == "off" for arm in arms):
        raise WrongUsage("--dump-graphs: no arm has graphs: add --graphs on")
    if load:
        # What ends the run for dumps is their budget, in the load's place.
        raise WrongUsage("--dump-graphs: a server with --load is not dumped: name a script that generates by itself")


def _say(line: str) -> None:
    """On stderr, because stdout is the workload's."""
    from tracekit.report.document import printable

    typer.echo(f"tracekit: {printable(line)}", err=True)


def _nsys(named: Path | None) -> Path:
    from tracekit.capture.nsys import find_nsys

    if named is not None:
        if not named.is_file() or not os.access(named, os.X_OK):
            raise WrongUsage(f"--nsys {named}: no such program: check the path")
        return named.absolute()
    found = find_nsys()
    if found is None:
        raise OutsideProgramFailed("no nsys was found: name it by --nsys or TRACEKIT_NSYS; 'tracekit doctor' says more")
    return found


def _load(script: Path) -> list[str]:
    if not script.is_file():
        raise UnusableInput(f"{script}: no such script: check the path of the load")
    if script.suffix == ".py":
        return [sys.executable, str(script)]
    if not os.access(script, os.X_OK):
        raise UnusableInput(f"{script}: cannot be executed: chmod +x {script}")
    return [str(script.absolute())]


def _conclude(ended: "Ended") -> None:
    from tracekit.report import table
    from tracekit.report.views.run import document
    from tracekit.store import file_run

    if ended.folder is None:
        _say("nothing was recorded, nothing is kept")
        return
    if trouble := file_run(_filed(ended.manifest, ended.folder)):
        _say(f"warning: {trouble}")
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    typer.echo("\n" + table.render(document(ended.manifest, ended.folder), width=width), err=True, nl=False)


def _filed(manifest: "Manifest", folder: Path) -> dict[str, object]:
    """What the results database keeps of a run."""
    machine = manifest.machine
    return {
        "time": manifest.started,
        "workload": manifest.name,
        "folder": str(folder.absolute()),
        "command": manifest.command,
        "arms": [arm.name for arm in manifest.arms],
        "gpu": ", ".join(gpu.name for gpu in machine.gpus) or None,
        "versions": {
            **manifest.packages,
            "nsys": manifest.nsys.version,
            "driver": machine.driver,
            "cuda": machine.cuda,
        },
        "wall_ns": {
            arm.name: [
                round(block.plain_wall_s * 1e9)
                for block in manifest.blocks
                if block.arm == arm.name and block.plain_wall_s is not None
            ]
            for arm in manifest.arms
        },
    }
