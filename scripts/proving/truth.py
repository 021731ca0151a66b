"""What really happened: the model's own accounts of time, which owe nothing to an analysis of traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from proving.gpu_model import Task

HOST_CAUSES = ("gaps", "launch_bound", "setup", "host_work")
"""Why the GPU waits: for a launched kernel's turn, for a launch call, for a call that prepares, for the program."""

CAUSES = (
    "overlap_lost",
    "overlap_gained",
    "kernels_alone",
    "clocks",
    "one_side_only",
    "counts_differ",
    *HOST_CAUSES,
    "copies",
)
"""What the difference of two arms is made of, as tracekit names it."""


class Cluster(NamedTuple):
    """Kernels connected by overlap: the wall time they took, and the sum of their true solo durations."""

    wall: float
    work: float

    @property
    def lost(self) -> float:
        """What running at once cost (below 0: saved) against one after another."""
        return self.wall - self.work


def clusters(tasks: Sequence[Task]) -> list[Cluster]:
    """The clusters of two or more tasks, in the order in which they begin."""
    found: list[Cluster] = []
    members: list[Task] = []
    finish = 0.0
    for task in sorted(tasks, key=lambda each: each.start):
        if members and task.start >= finish:
            found += _cluster(members, finish)
            members = []
        finish = max(finish, task.end) if members else task.end
        members.append(task)
    return found + _cluster(members, finish)


def _cluster(members: Sequence[Task], finish: float) -> list[Cluster]:
    if len(members) < 2:
        return []
    return [Cluster(finish - members[0].start, sum(task.work for task in members))]


class Activity(NamedTuple):
    """A kernel or copy on the GPU, and when the call that launched it began and ended."""

    start: int
    end: int
    call: int
    returned: int


class Ran(NamedTuple):
    """How often a kernel ran, and its true solo time in all (ns)."""

    launches: float
    solo: float


@dataclass(frozen=True)
class Account:
    """One phase instance (ns), or the mean of several: ``time`` is the sum of all the rest.

    ``kernels``: solo time by kernel name. ``lost`` and ``gained`` (below 0): what clusters took more and less than
    their solo time. ``copies`` beside no kernel. ``idle`` by HOST_CAUSES.
    """

    time: float
    kernels: dict[str, Ran]
    lost: float
    gained: float
    copies: float
    idle: dict[str, float]

    @property
    def overlap(self) -> float:
        """What running kernels at once cost in all; below 0: saved."""
        return self.lost + self.gained


def mean_account(accounts: Sequence[Account]) -> Account:
    """The mean over phase instances."""
    names = {name: None for account in accounts for name in account.kernels}
    of_kernel = {name: [account.kernels.get(name, Ran(0, 0)) for account in accounts] for name in names}
    return Account(
        time=fmean(account.time for account in accounts),
        kernels={
            name: Ran(fmean(ran.launches for ran in each), fmean(ran.solo for ran in each))
            for name, each in of_kernel.items()
        },
        lost=fmean(account.lost for account in accounts),
        gained=fmean(account.gained for account in accounts),
        copies=fmean(account.copies for account in accounts),
        idle={cause: fmean(account.idle[cause] for account in accounts) for cause in HOST_CAUSES},
    )


def causes(a: Account, b: Account, clocks: float) -> dict[str, float]:
    """B minus A, ns an instance, by CAUSES; ``clocks`` is how many times as long b's clock makes every kernel."""
    sizes = dict.fromkeys(CAUSES, 0.0)
    for name in a.kernels.keys() | b.kernels.keys():
        in_a, in_b = a.kernels.get(name), b.kernels.get(name)
        if in_a is None or in_b is None:
            sizes["one_side_only"] += (in_b.solo if in_b else 0) - (in_a.solo if in_a else 0)
            continue
        each_a, each_b = in_a.solo / in_a.launches, in_b.solo / in_b.launches
        both = (in_a.launches + in_b.launches) / 2
        sizes["counts_differ"] += (in_b.launches - in_a.launches) * (each_a + each_b) / 2
        sizes["clocks"] += both * each_a * (clocks - 1)
        sizes["kernels_alone"] += both * (each_b - each_a * clocks)
    sizes["overlap_lost"] = b.lost - a.lost
    sizes["overlap_gained"] = b.gained - a.gained
    sizes["copies"] = b.copies - a.copies
    for cause in HOST_CAUSES:
        sizes[cause] = b.idle[cause] - a.idle[cause]
    return sizes
