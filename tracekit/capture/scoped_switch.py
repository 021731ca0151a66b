"""Whether the framework that a workload will import can switch graphs for a part of a process."""

import sys

from tracekit.capture.outside import ask
from tracekit.capture.workload import Workload
from tracekit.errors import WrongUsage
from tracekit.frameworks import Framework

SECONDS = 60.0
"""How long it may take to import a framework."""

_INSTEAD = "record the phases as runs of their own, each in both arms"

_TRIED = """
import importlib, operator, sys
_, module, maker, *off = sys.argv
make = operator.attrgetter(maker)(importlib.import_module(module))
with make(**{name: int(value) for name, _, value in (each.partition("=") for each in off)}):
    print("works")
"""


def check_scoped_switch(workload: Workload, framework: Framework | None) -> None:
    """Try the framework's scoped switch in this interpreter, which runs the workload. Raises WrongUsage."""
    if workload.form == "command":
        raise WrongUsage("--graphs-off-in: a command line has no phases that tracekit could reach: name a script")
    switch = framework and framework.scoped_switch
    if framework is None or switch is None:
        name = framework.name if framework else "this workload"
        raise WrongUsage(f"--graphs-off-in: {name} has no switch for a part of a process: {_INSTEAD}")
    off = [f"{name}={value}" for name, value in switch.off]
    reply = ask([sys.executable, "-P", "-c", _TRIED, switch.module, switch.maker, *off], SECONDS)
    if reply.out.strip() != "works":
        raise WrongUsage(
            f"--graphs-off-in: {switch.module}.{switch.maker} is not in the {framework.name} of this Python, or does "
            f"not work: {_INSTEAD}, or take a version that has it"
        )
