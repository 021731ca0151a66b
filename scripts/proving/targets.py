"""What is asked of the answers, and whether a run meets it."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from proving.harness import Loss, Nothing, Shown

STATED = 0.95
"""Coverage that the intervals state, and share of comparisons without an effect in which nothing may be claimed."""

UNLUCKY = 0.01
"""Chance at which a right method misses the asked number of seeds by bad luck."""

WIDEST = 0.15
"""Median width of the interval at five blocks a side, as a share of the loss."""


class Target(NamedTuple):
    """One thing asked: what, what was found, what was asked for, whether it is met."""

    what: str
    found: str
    asked: str
    met: bool


def asked_of(seeds: int) -> int:
    """Fewest of so many seeds that have to come right, each of which does with the chance STATED; 182 of 200."""
    from scipy.stats import binom

    return int(binom.ppf(UNLUCKY, seeds, STATED))


def targets(shown: Sequence[Shown], losses: Sequence[Loss], nothings: Sequence[Nothing]) -> list[Target]:
    """Everything that was asked of what was run."""
    found = []
    if shown:
        right = sum(each.right for each in shown)
        found.append(_counted("the right explanation named, scenarios by seeds", right, len(shown), len(shown)))
    if losses:
        covered = sum(each.covered for each in losses)
        found.append(
            _counted("planted loss inside the stated 95 % interval", covered, len(losses), asked_of(len(losses)))
        )
        found.append(_width(losses))
    if nothings:
        silent = sum(not each.claimed for each in nothings)
        found.append(_counted("nothing claimed where nothing differs", silent, len(nothings), asked_of(len(nothings))))
    return found


def median_width(losses: Sequence[Loss]) -> float:
    """Median width of the interval as a share of the loss; one that was not given is endlessly wide."""
    return median(float("inf") if each.width is None else each.width for each in losses)


def _width(losses: Sequence[Loss]) -> Target:
    width = median_width(losses)
    return Target(
        "median width of that interval, five blocks a side", f"{width:.1%}", f"under {WIDEST:.0%}", width < WIDEST
    )


def _counted(what: str, right: int, of: int, least: int) -> Target:
    return Target(what, f"{right} of {of}", f"{least} of {of}", right >= least)
