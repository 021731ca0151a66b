"""A GPU that runs kernels in the order of a graph: a discrete-event simulation under a contention law.

Each kernel instance has so much work, in ns at its solo rate. Between two events (a kernel begins, ends, or comes
far enough for a successor to begin) every running kernel progresses at a constant rate that the law gives it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

_SAME = 1e-6
"""Work (ns) below which two amounts are one, after sums of many fractions."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: how long it takes alone, and what it asks of the GPU meanwhile.

    ``bandwidth`` and ``compute`` are shares of the device's; ``blocks`` run ``per_sm`` on each multiprocessor;
    ``working_set`` is MiB of cache.
    """

    name: str
    solo_ns: float
    bandwidth: float = 0.5
    compute: float = 0.3
    blocks: int = 96
    per_sm: int = 2
    working_set: float = 8.0


@dataclass
class Task:
    """One kernel instance.

    It begins when the host has launched it (``ready``) and, a ``pause`` after, each task of ``after`` (numbers
    within its graph) has done the share ``trigger`` of its work. ``start`` and ``end`` are found by ``run``.
    """

    kernel: Kernel
    work: float
    ready: float = 0.0
    after: tuple[int, ...] = ()
    pause: float = 0.0
    trigger: float = 1.0
    done: float = 0.0
    evicted: bool = False
    start: float = 0.0
    end: float = 0.0
    marks: list[float] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Work still to do."""
        return self.work - self.done


class Law(Protocol):
    """How kernels that run at once share the GPU."""

    def rates(self, running: Sequence[Task]) -> list[float]:
        """The rate of each running task, 1 being what it has with the GPU to itself."""

    def varied(self, factor: float) -> "Law":
        """The law on another day."""


def run(tasks: Sequence[Task], law: Law) -> None:
    """Find ``start`` and ``end`` of every task. Tasks come after their predecessors in the sequence."""
    blockers = [len(task.after) for task in tasks]
    successors: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for other in task.after:
            successors[other].append(number)
            tasks[other].marks.append(task.trigger * tasks[other].work)
    for task in tasks:
        task.marks = sorted({*task.marks, task.work})
    due = [(task.ready, number) for number, task in enumerate(tasks) if not task.after]
    heapq.heapify(due)
    running: list[int] = []
    now = 0.0
    while due or running:
        rates = law.rates([tasks[number] for number in running])
        now = _next_event(now, due, [tasks[number] for number in running], rates)
        for number in list(running):
            for released in _reached(tasks, number, now, successors[number]):
                blockers[released] -= 1
                if not blockers[released]:
                    task = tasks[released]
                    heapq.heappush(due, (max(task.ready, now + task.pause), released))
            if not tasks[number].marks:
                running.remove(number)
        while due and due[0][0] <= now:
            number = heapq.heappop(due)[1]
            tasks[number].start = now
            running.append(number)


def _next_event(now: float, due: list[tuple[float, int]], running: Sequence[Task], rates: Sequence[float]) -> float:
    """When the next task begins or reaches a mark; every running task has done its work until then."""
    reaching = [(task.marks[0] - task.done) / rate for task, rate in zip(running, rates, strict=True)]
    moments = [*(now + time for time in reaching), *(time for time, _ in due[:1])]
    then = max(now, min(moments))
    for task, rate in zip(running, rates, strict=True):
        task.done += rate * (then - now)
    return then


def _reached(tasks: Sequence[Task], number: int, now: float, successors: list[int]) -> list[int]:
    """The successors that the task's progress sets free now; its ``end`` is set when all its work is done."""
    task = tasks[number]
    passed = [mark for mark in task.marks if mark <= task.done + _SAME]
    task.marks = task.marks[len(passed) :]
    if not task.marks:
        task.end = now
    return [other for other in successors if tasks[other].trigger * task.work in passed]
