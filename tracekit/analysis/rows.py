"""Rows of frames as the parts of results."""

from typing import Any

from tracekit.analysis.kernels.durations import LABELS
from tracekit.analysis.results import Number


def number(value: float) -> Number:
    """Whole numbers as such, others to a thousandth of a ns."""
    return int(value) if float(value).is_integer() else round(value, 3)


def known_number(value: float | None) -> Number | None:
    """The same; null stays null."""
    return None if value is None else number(value)


def rounded(value: float | None) -> float | None:
    """A ratio or share to six decimals; null stays null."""
    return None if value is None else round(value, 6)


def process_id(process: int | None) -> int | None:
    """The id that the system gave a process, of the number that tells it from others in a trace."""
    return None if process is None else process & 0xFFFFFF


def kernel_of(row: dict[str, Any]) -> dict[str, Any]:
    """The labels of a row as the fields of a Kernel."""
    shapes = {name: tuple(row[name]) if row.get(name) else None for name in ("grid", "block", "cluster")}
    return {**{name: row.get(name) for name in LABELS}, **shapes}
