"""The arms of a run: the ways of launching that are compared, and the order in which they are recorded."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracekit.capture.annotate.graphs_off import VARIABLE as GRAPHS_OFF_IN
from tracekit.errors import WrongUsage
from tracekit.frameworks import Framework, Switch

Graphs = Literal["on", "off", "both", "serial"]
Role = Literal["on", "off", "serial", "own"]

_OF_CUDA = re.compile(r"CUDA_(?:VISIBLE_DEVICES|DEVICE_ORDER|DEVICE_MAX_CONNECTIONS|LAUNCH_BLOCKING|MODULE_LOADING)")
"""Variables that the driver reads, whatever the framework."""

_OWN = (
    "put the graphs behind a variable of your own (in Python: if os.environ.get('GRAPHS') != '0') "
    "and record --arm on:GRAPHS=1 --arm off:GRAPHS=0"
)


@dataclass(frozen=True)
class Arm:
    """One way of launching. ``role`` is what was asked for, ``own`` where its variables are the user's.

    ``environment`` is set on top of the workload's, None taking a variable away; ``arguments`` end its command line.
    """

    name: str
    role: Role
    environment: dict[str, str | None] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def applied_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of this arm's workload."""
        changed = {**environment, **self.environment}
        return {name: value for name, value in changed.items() if value is not None}

    @property
    def phase_without_graphs(self) -> str | None:
        """The name of the phases that are run without graphs, in an arm that has graphs otherwise."""
        return self.environment.get(GRAPHS_OFF_IN)

    @property
    def told(self) -> str:
        """How it is launched, in one line."""
        variables = [
            f"{name} unset" if value is None else f"{name}={value}" for name, value in self.environment.items()
        ]
        return ", ".join([*variables, *self.arguments]) or "as it is"


def parse_arm(text: str) -> tuple[str, dict[str, str]]:
    """Name and variables of ``NAME:ENV=VALUE,...``; a comma within a value stays. Raises WrongUsage."""
    name, _, settings = text.partition(":")
    pairs = [pair.partition("=") for pair in re.split(r",(?=[A-Za-z_]\w*=)", settings)]
    well_formed = all(equals and re.fullmatch(r"[A-Za-z_]\w*", variable) for variable, equals, _ in pairs)
    if not well_formed or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
        raise WrongUsage(f"--arm {text}: write NAME:ENV=VALUE,..., such as ops0:MLX_MAX_OPS_PER_BUFFER=0")
    return name, {variable: value for variable, _, value in pairs}


def plan_arms(
    graphs: Graphs | None,
    own: Sequence[str],
    framework: Framework | None,
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    add_switches: bool,
    off_in: Sequence[str] = (),
) -> list[Arm]:
    """The arms to record: those of ``graphs``, one for each phase in ``off_in``, the user's own.

    ``words`` is the workload's command line, ``environment`` the one it would have. Own arms have graphs on unless
    their variables say otherwise, those of ``off_in`` outside of the phase. Raises WrongUsage for an arm that would
    not be what it is called.
    """
    if graphs is None and not own and not off_in:
        raise WrongUsage("nothing says which arms to record: give --graphs on|off|both|serial, or --arm")
    asked: tuple[Role, ...] = ("on", "off") if graphs == "both" else (graphs,) if graphs else ()
    switched_off = [word for word in framework.off_arguments if word in words] if framework else []
    if switched_off and {"on", "serial"}.intersection(asked):
        raise WrongUsage(f"{' '.join(switched_off)} switches graphs off in every arm: leave it out")
    with_graphs = _switched(framework, environment, on=True)
    arms = []
    for role in asked:
        if role == "on" or switched_off:
            arms.append(Arm(role, role, with_graphs))
        elif role == "serial":
            arms.append(Arm("serial", "serial", {**with_graphs, **_serial(framework)}))
        else:
            without = _switched(framework, environment, on=False)
            arms.append(Arm("off", "off", without, _off_arguments(framework, add_switches=add_switches)))
    arms += [Arm(_file_name(f"off-in-{phase}"), "own", {**with_graphs, GRAPHS_OFF_IN: phase}) for phase in off_in]
    arms += [Arm(name, "own", {**with_graphs, **given}) for name, given in map(parse_arm, own)]
    names = [arm.name for arm in arms]
    if twice := {name for name in names if names.count(name) > 1}:
        raise WrongUsage(f"two arms are called {', '.join(sorted(twice))}: give each a name of its own")
    return arms


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII)


def _serial(framework: Framework | None) -> dict[str, str]:
    if framework is None or framework.serial is None:
        raise WrongUsage(
            f"{framework.name if framework else 'this workload'} has no switch for serial graphs: leave it"
        )
    return dict([framework.serial])


def _off_arguments(framework: Framework | None, *, add_switches: bool) -> tuple[str, ...]:
    """What arm off adds to the command line; nothing where the environment has the switch."""
    if framework is None:
        raise WrongUsage(f"no framework is known that could be told to leave graphs: name it by --framework, or {_OWN}")
    if framework.switch:
        return ()
    if not framework.off_arguments:
        raise WrongUsage(f"{framework.name} has no switch in its environment: {framework.graphs_off}; or {_OWN}")
    if not add_switches:
        raise WrongUsage(
            f"{framework.name} switches graphs on its command line, which is left as it is: {framework.graphs_off}; "
            f"add --add-switches to have {' '.join(framework.off_arguments)} added in arm off"
        )
    return framework.off_arguments


def _switched(framework: Framework | None, environment: Mapping[str, str], *, on: bool) -> dict[str, str | None]:
    """The variables that switch graphs, and those that must not be in a measured run."""
    variables: dict[str, str | None] = {}
    if GRAPHS_OFF_IN in environment:
        variables[GRAPHS_OFF_IN] = None
    if framework and framework.dump and framework.dump in environment:
        # Dumps are written while the workload waits.
        variables[framework.dump] = None
    if framework and (switch := framework.switch):
        setting = _word(switch, environment, on=on) if switch.word else switch.on if on else switch.off
        variables[switch.variable] = setting
    return variables


def _word(switch: Switch, environment: Mapping[str, str], *, on: bool) -> str | None:
    """The variable with the switch among its other words, which stay."""
    flag = switch.off.partition("=")[0]
    others = [word for word in environment.get(switch.variable, "").split() if word.partition("=")[0] != flag]
    return " ".join(others if on else [*others, switch.off]) or None


def doubts(arms: Sequence[Arm], framework: Framework | None, environment: Mapping[str, str]) -> Iterator[str]:
    """What to know of these arms before trusting their names."""
    if framework is None:
        if any(arm.role == "on" for arm in arms):
            yield "no framework is known: arm on is the workload as it is, with graphs or without"
        return
    if framework.switch is None and any(arm.role == "on" for arm in arms):
        yield f"{framework.name} has no switch in its environment: arm on is the workload as it is"
    switch = framework.switch
    if switch and switch.variable in environment and not switch.word:
        yield f"{switch.variable}={environment[switch.variable]} in the environment is overruled: each arm has its own"
    for arm in arms:
        for variable in arm.environment:
            if not _is_known(variable, framework):
                yield (
                    f"arm {arm.name}: {variable} has no effect on stock {framework.name}: "
                    "the arm means nothing unless this build or this workload reads it"
                )


def _is_known(variable: str, framework: Framework) -> bool:
    """Where a framework reads no variables, they are the workload's own."""
    if framework.variables is None or variable == GRAPHS_OFF_IN:
        return True
    return bool(re.fullmatch(framework.variables, variable) or _OF_CUDA.fullmatch(variable))


def in_turn(arms: Sequence[Arm], blocks: int) -> Iterator[tuple[int, Arm]]:
    """Each block's number, from 1, and arm: forward, backward, forward and so on, so that drift hits all arms alike."""
    for block in range(1, blocks + 1):
        for arm in arms if block % 2 else reversed(arms):
            yield block, arm
