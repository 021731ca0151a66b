"""Conditions on a comparison that make a command fail, for use in CI."""

import re

from tracekit.analysis.results import OUTSIDE, Phase
from tracekit.errors import WrongUsage

_GATE = re.compile(r"(slower|faster)\s*>\s*(\d+(?:\.\d+)?)\s*%|undecided")


def check_gate(condition: str) -> str:
    """A condition is ``slower>5%``, ``faster>5%`` or ``undecided``. Raises WrongUsage."""
    if not _GATE.fullmatch(condition.strip()):
        raise WrongUsage(f"--fail-on {condition!r} is not understood: write 'slower>5%', 'faster>5%' or 'undecided'")
    return condition.strip()


def tripped(phases: list[Phase], conditions: list[str]) -> str | None:
    """The first condition that came true, and where. Only decided phases count as slower or faster."""
    for condition in conditions:
        found = _GATE.fullmatch(condition)
        assert found is not None
        for row in phases:
            if row.name == OUTSIDE:
                continue
            where = f"{condition}: phase {row.name}, arm {row.arm}"
            if found[1] is None:
                if row.verdict.winner == "undecided":
                    return where
            elif row.ratio is not None and row.verdict.winner in ("a", "b"):
                limit = float(found[2]) / 100
                change = row.ratio - 1 if found[1] == "slower" else 1 / row.ratio - 1
                if change > limit:
                    return f"{where} ({row.ratio:.3f}x)"
    return None
