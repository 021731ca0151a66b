"""A scenario: arms that run on the model, and what makes them differ."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from proving.gpu_model import Law
from proving.recording import record
from proving.truth import Account, mean_account
from proving.workload import Arm

LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Expected:
    """What is true of b against a in one phase.

    ``dominant`` is the one cause that makes the difference, None where there is none to name; ``named`` are others
    that have to be told. ``undecided``: the recordings do not carry a verdict. ``best``: the best of several arms.
    ``serial``: the arm that runs the graphs of a with their kernels one after another.
    """

    dominant: str | None
    named: tuple[str, ...] = ()
    undecided: bool = False
    best: str | None = None
    serial: str | None = None


@dataclass(frozen=True)
class Scenario:
    """Arms under a law, each recorded as ``blocks`` blocks; ``replayed`` gives every block the same bytes."""

    law: Law
    arms: tuple[Arm, ...]
    expected: dict[str, Expected]
    blocks: int = 5
    replayed: bool = False


class Registered(NamedTuple):
    """A scenario's name, what it is about, and how it is made."""

    name: str
    about: str
    make: Callable[[], Scenario]


SCENARIOS: dict[str, Registered] = {}
"""Every scenario by name, in the order in which they were written."""


def scenario(make: Callable[[], Scenario]) -> Callable[[], Scenario]:
    """Register a scenario under its function's name, told by its docstring's first line."""
    name = make.__name__.replace("_", "-")
    SCENARIOS[name] = Registered(name, (make.__doc__ or "").splitlines()[0], make)
    return make


class Played(NamedTuple):
    """What came of a scenario, each list by arm.

    ``exports`` are of the blocks, ``accounts`` the means by phase over all counted instances. ``walls``: whole times
    (ns) of each block without and with the profiler; empty where it changes nothing.
    """

    exports: list[list[Path]]
    accounts: list[dict[str, Account]]
    walls: list[list[tuple[int, int]]]


def play(plan: Scenario, seed: object, folder: Path) -> Played:
    """Record every block of every arm into ``folder``. The same seed gives the same bytes."""
    played = Played([], [], [])
    for letter, arm in zip(LETTERS, plan.arms, strict=False):
        seeds = [(seed, letter, 0 if plan.replayed else block) for block in range(plan.blocks)]
        blocks = [record(arm, plan.law, block, *seeds[block]) for block in range(plan.blocks)]
        played.exports.append(
            [each.export.write(folder / f"{letter}-{block}.sqlite") for block, each in enumerate(blocks, start=1)]
        )
        played.accounts.append(
            {
                phase.name: mean_account([account for each in blocks for account in each.accounts[phase.name]])
                for phase in arm.phases
            }
        )
        if any(each.traced_ns for each in plan.arms):
            plain = replace(arm, traced_ns=0.0)
            walls = [record(plain, plan.law, block, *seeds[block]).wall for block in range(plan.blocks)]
            played.walls.append([(wall, each.wall) for wall, each in zip(walls, blocks, strict=True)])
    return played
