"""Rows of frames as the parts of results."""

from typing import Any

from tracekit.analysis.kernels.durations import LABELS
from tracekit.analysis.results import Number


def number(value: float) -> Number:
    """Whole numbers as such, others to a thousandth of a ns."""
    return int(value) if float(value).is_integer() else round(value, 3)


def kernel_of(row: dict[str, Any]) -> dict[str, Any]:
    """The labels of a row as the fields of a Kernel."""
    shapes = {name: tuple(row[name]) if row.get(name) else None for name in ("grid", "block", "cluster")}
    return {**{name: row.get(name) for name in LABELS}, **shapes}
