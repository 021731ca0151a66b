"""T(L) = overhead + L x t: what one operation of a loop takes, apart from starting and waiting. Pure arithmetic."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.analysis.statistics.thresholds import MARGIN

Floats = npt.NDArray[np.float64]


class Line(NamedTuple):
    """Time (ns) over length; ``low`` and ``high`` bound ``per_operation`` at 95 %."""

    overhead: float
    per_operation: float
    low: float
    high: float


def fit_line(lengths: Sequence[float], times: Sequence[float]) -> Line:
    """The Theil-Sen line: median of all slopes, its interval from Kendall's tau (Sen 1968), median intercept.

    Up to 29 % of the times may be outliers. Needs two different lengths.
    """
    from scipy.stats import theilslopes

    x, y = np.asarray(lengths, dtype=np.float64), np.asarray(times, dtype=np.float64)
    slope, _, low, high = theilslopes(y, x, alpha=0.95)
    return Line(float(np.median(y - slope * x)), float(slope), float(low), float(high))


def settled(line: Line, before: Line | None) -> bool:
    """Whether a longer loop no longer changes the answer: by at most MARGIN, its interval as narrow."""
    if before is None or before.per_operation <= 0 or line.per_operation <= 0:
        return False
    moved = abs(line.per_operation / before.per_operation - 1)
    return moved <= MARGIN and line.high - line.low <= 2 * MARGIN * line.per_operation


def needed_length(overhead: float, per_operation: float) -> int:
    """Calls from which T(L) / L is within MARGIN of t, so that a loop can be divided by its length as it is."""
    return max(1, math.ceil(overhead / (MARGIN * per_operation)))


def median_interval(values: Floats) -> tuple[float, float] | None:
    """Bounds of the median that hold it in at least 95 %, from order statistics (Conover, section 3.2).

    None for fewer than six values: the range of five holds it in 94 % only.
    """
    from scipy.stats import binom

    rank = int(binom.ppf(0.025, values.size, 0.5))
    if rank < 1:
        return None
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[-rank])
