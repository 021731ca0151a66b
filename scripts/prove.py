"""Hold tracekit's answers against a GPU model with known truth. Exits with 1 when a target is missed.

Usage: python scripts/prove.py [--quick] [--seeds N] [--scenarios NAME...] [--jobs N] [--write]
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from proving.harness import Workers, loss, nothing, show
from proving.reporting import accuracy_page, print_report
from proving.scenario import SCENARIOS
from proving.targets import targets
from rich.console import Console
from rich.progress import track

T = TypeVar("T")

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"

FULL, QUICK = 200, 10
"""Seeds of a full run, and of one that fits into a check of every change."""

SCENARIO_SEEDS = 5
"""Seeds of each scenario in a full run; a quick one takes the first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and print what was found; 0 when every target is met."""
    asked = _parsed(arguments)
    seeds = range(0 if asked.scenarios else asked.seeds)
    of_scenarios = range(1 if asked.quick else SCENARIO_SEEDS)
    played = [(name, seed) for name in asked.scenarios or SCENARIOS for seed in of_scenarios]
    with Workers(asked.jobs) as workers:
        shown = _watched(workers.each(show, played), len(played), "scenarios")
        losses = _watched(workers.each(loss, seeds), len(seeds), "planted losses")
        nothings = _watched(workers.each(nothing, seeds), len(seeds), "no effect")
    found = targets(shown, losses, nothings)
    print_report(shown, losses, nothings, found)
    if asked.write:
        PAGE.write_text(accuracy_page(shown, losses, nothings, found), encoding="utf-8")
    return 0 if all(target.met for target in found) else 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, help=f"seeds with a planted loss, and without an effect ({FULL})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds")
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), metavar="NAME", help="these, and no seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    asked = parser.parse_args(arguments)
    asked.seeds = asked.seeds if asked.seeds is not None else QUICK if asked.quick else FULL
    if asked.write and asked.scenarios:
        parser.error("--write takes a run of everything: leave --scenarios out")
    return asked


def _watched(results: Iterable[T], total: int, what: str) -> list[T]:
    """The results, waited for beside a progress bar on a terminal."""
    console = Console(stderr=True)
    return list(track(results, what, total, console=console, transient=True, disable=not console.is_terminal))


if __name__ == "__main__":
    sys.exit(main())
