"""What to annotate and how, by the command line of ``python -m tracekit.capture.annotate``."""

import atexit
import os
import sys
from typing import NamedTuple

from tracekit.capture.annotate.graphs_off import phase_without_graphs
from tracekit.capture.annotate.import_hooks import hook_imports
from tracekit.capture.annotate.markers import made, marker, profiled
from tracekit.capture.annotate.mlx import mlx_hooks
from tracekit.capture.annotate.notices import say
from tracekit.capture.annotate.program import Program, load_module, load_script
from tracekit.capture.annotate.thread_phases import ThreadPhases
from tracekit.capture.annotate.torch import torch_hooks
from tracekit.capture.phase import DOMAIN
from tracekit.errors import TracekitError, WrongUsage

MODES = ("phases", "modules", "sync-modules", "off")


class Request(NamedTuple):
    """What to run and how to annotate it."""

    mode: str
    module: bool
    target: str
    arguments: list[str]


def prepared() -> Program:
    """The program that this process' arguments name, annotated where anything takes note; exits where there is none."""
    try:
        request = read(sys.argv[1:])
        phases = ThreadPhases()
        wanted = request.mode != "off" and (profiled() or phase_without_graphs() is not None)
        annotated = wanted and annotate(request.mode, phases)
        program = (load_module if request.module else load_script)(request.target, request.arguments)
    except TracekitError as error:
        say(str(error))
        sys.exit(error.exit_code)
    if annotated:
        _conclude_at_exit(phases)
    return program


def read(arguments: list[str]) -> Request:
    """The request of a command line; all that follows the target is the target's. Raises WrongUsage."""
    mode = "phases"
    if arguments[:1] == ["--mode"]:
        mode, arguments = "".join(arguments[1:2]), arguments[2:]
    if mode not in MODES:
        raise WrongUsage(f"--mode {mode}: one of {', '.join(MODES)}")
    module = arguments[:1] == ["-m"]
    if module:
        arguments = arguments[1:]
    if not arguments:
        raise WrongUsage("name what to run: [--mode MODE] SCRIPT [ARGS...], or [--mode MODE] -m MODULE [ARGS...]")
    return Request(mode, module, arguments[0], arguments[1:])


def annotate(mode: str, phases: ThreadPhases) -> bool:
    """Mark what the script will import, for as long as this process lives; whether that can be done."""
    try:
        marker("tracekit.mlx", "mx.eval")
    except ImportError as error:
        say(f"{error} (running without ranges)")
        return False
    hook_imports(mlx_hooks(mode, phases) | torch_hooks(mode, phases))
    return True


def _conclude_at_exit(phases: ThreadPhases) -> None:
    process = os.getpid()

    def ended() -> None:
        if os.getpid() != process:
            return
        phases.close()
        # A program that failed has said what is wrong.
        if profiled() and DOMAIN not in made and not hasattr(sys, "last_value"):
            say("no phase was marked: no model of MLX or PyTorch was called: mark the script's own with tracekit.phase")

    atexit.register(ended)
