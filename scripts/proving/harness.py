"""Play scenarios and seeds, in several processes, and judge the answers."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple, TypeVar

import proving
from proving.judging import Judged, answer_to, claims, judge, overlap_loss
from proving.random_plans import LAW_NAMES, LawName, equal_plan, losing_plan
from proving.recording import record
from proving.scenario import SCENARIOS, Scenario, play
from proving.truth import mean_account
from tracekit.analysis.results import Diff

T = TypeVar("T")
R = TypeVar("R")

for _module in iter_modules(proving.__path__):
    if _module.name.startswith("scenarios_"):
        import_module(f"proving.{_module.name}")  # Registers its scenarios.


FURTHER = 24
"""Recordings that tell what a plan usually loses."""


class Shown(NamedTuple):
    """A scenario, a seed, and how its phases were judged."""

    name: str
    seed: int
    judged: list[Judged]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong in any phase."""
        return not any(each.wrong for each in self.judged)


class Loss(NamedTuple):
    """One seed's planted loss (ns an instance), and the estimate with its interval; None where none was given.

    ``planted`` is what the recorded instances lost; ``usual`` is the mean over FURTHER recordings that tracekit does
    not see.
    """

    seed: int
    law: LawName
    planted: float
    usual: float
    estimate: float | None
    low: float | None
    high: float | None

    @property
    def covered(self) -> bool:
        """Whether the planted loss lies within the interval."""
        return self._within(self.planted)

    @property
    def usual_covered(self) -> bool:
        """Whether the mean loss of further recordings lies within the interval."""
        return self._within(self.usual)

    @property
    def width(self) -> float | None:
        """Width of the interval as a share of the loss."""
        return None if self.low is None or self.high is None else (self.high - self.low) / self.planted

    def _within(self, loss: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= loss <= self.high


class Nothing(NamedTuple):
    """What was claimed of one seed's arms, which do not differ."""

    seed: int
    law: LawName
    claimed: list[str]


def law_of(seed: int) -> LawName:
    """Each law gets every other seed."""
    return LAW_NAMES[seed % len(LAW_NAMES)]


def show(wanted: tuple[str, int]) -> Shown:
    """Play and judge one scenario, by name and seed."""
    name, seed = wanted
    plan = SCENARIOS[name].make()
    with tempfile.TemporaryDirectory() as folder:
        played = play(plan, f"{name}-{seed}", Path(folder))
        judged = judge(plan, played, answer_to(played.exports, played.walls))
    return Shown(name, seed, judged)


def loss(seed: int) -> Loss:
    """Play a plan that loses time by overlap and read the estimate."""
    plan = losing_plan(law_of(seed), seed)
    answer, planted = _played(plan, f"loss-{seed}")
    return Loss(seed, law_of(seed), planted, _usual(plan, seed), *overlap_loss(answer, "prefill"))


def _usual(plan: Scenario, seed: int) -> float:
    """Mean loss of the graph arm's instances over FURTHER recordings."""
    further = [record(plan.arms[0], plan.law, 0, "further", seed, number).accounts for number in range(FURTHER)]
    return mean_account([each for accounts in further for each in accounts["prefill"]]).overlap


def nothing(seed: int) -> Nothing:
    """Play a plan whose arms do not differ and read what is claimed."""
    answer, _ = _played(equal_plan(law_of(seed), seed), f"nothing-{seed}")
    return Nothing(seed, law_of(seed), claims(answer))


def _played(plan: Scenario, seed: str) -> tuple[Diff, float]:
    """The answer, and what overlap costs in a more than in b (ns an instance)."""
    with tempfile.TemporaryDirectory() as folder:
        played = play(plan, seed, Path(folder))
        a, b = (accounts["prefill"] for accounts in played.accounts)
        return answer_to(played.exports), a.overlap - b.overlap


class Workers:
    """Processes that work through items; with one job, this process."""

    def __init__(self, jobs: int) -> None:
        # polars and fork do not go together, and as many polars threads as processes are enough.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        self._pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Results in the order of the items."""
        return self._pool.map(work, items) if self._pool else map(work, items)
