"""Whether a series of times is steady enough to compare."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.thresholds import (
    DRIFT_CHANGE,
    DRIFT_SCORE,
    FEWEST,
    FEWEST_FOR_DRIFT,
    FEWEST_FOR_STATES,
    OUTLIER_CHANGE,
    OUTLIER_DISTANCE,
    STATE_DISTANCE,
    STATE_DISTANCE_OF_FEW,
    STATE_RATIO,
    STATE_SHARE,
)
from tracekit.units import duration

NORMAL_SPREAD = 1.4826
"""Standard deviation of normal noise over its median absolute deviation."""


class Drift(NamedTuple):
    """Medians of the ``first`` and the ``last`` tenth of a series, and how sure its trend is (DRIFT_SCORE)."""

    first: float
    last: float
    score: float

    @property
    def change(self) -> float:
        """From the first to the last tenth, as a share."""
        return self.last / self.first - 1

    @property
    def found(self) -> bool:
        """Whether it is more than noise, and enough to matter."""
        return abs(self.score) >= DRIFT_SCORE and abs(self.change) >= DRIFT_CHANGE

    def __str__(self) -> str:
        name = "drift" if self.found else "no drift"
        return f"{name}: the first tenth takes {duration(self.first)}, the last {duration(self.last)}"


class States(NamedTuple):
    """A series divided at its widest gap: sizes and medians of the parts, and Ashman's D against what noise reaches."""

    fast: int
    slow: int
    low: float
    high: float
    distance: float
    needed: float

    @property
    def found(self) -> bool:
        """Whether the parts are two states rather than one with noise."""
        return self.low > 0 and self.high >= STATE_RATIO * self.low and self.distance >= self.needed

    def __str__(self) -> str:
        if not self.found:
            return "one state"
        return f"bimodal: {self.fast} near {duration(self.low)}, {self.slow} near {duration(self.high)}"


def unsteady(times: Floats) -> str | None:
    """Why times (ns, in order) cannot be compared by one median: drift or two states; None when they can."""
    found = [each for each in (drift(times), two_states(times)) if each and each.found]
    return str(found[0]) if found else None


def drift(times: Floats) -> Drift | None:
    """The trend of times (ns) in order; None for too few, or where there is no timing."""
    count = times.size
    tenth = max(1, count // 10)
    if count < FEWEST_FOR_DRIFT or not (times > 0).all():
        return None
    ranks = _ranks(times)
    order = np.arange(count, dtype=np.float64)
    spread = float(np.std(ranks)) * float(np.std(order))
    correlation = float(np.mean((ranks - ranks.mean()) * (order - order.mean()))) / spread if spread else 0.0
    first, last = float(np.median(times[:tenth])), float(np.median(times[-tenth:]))
    return Drift(first, last, correlation * float(np.sqrt(count - 1)))


def _ranks(values: Floats) -> Floats:
    """Ranks, equal values sharing their mean rank."""
    ordered = np.sort(values)
    ranks: Floats = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right") + 1) / 2
    return ranks


def two_states(times: Floats) -> States | None:
    """A fast and a slow state, divided at the widest gap; None for too few values."""
    count = times.size
    if count < FEWEST_FOR_STATES:
        return None
    ordered = np.sort(times)
    least = max(2, int(np.ceil(STATE_SHARE * count)))
    split = least + int(np.argmax(np.diff(ordered)[least - 1 : count - least]))
    fast, slow = ordered[:split], ordered[split:]
    low, high = float(np.median(fast)), float(np.median(slow))
    spread = float(np.sqrt((np.var(fast) + np.var(slow)) / 2))
    distance = (high - low) / spread if spread else np.inf if high > low else 0.0
    return States(fast.size, slow.size, low, high, distance, STATE_DISTANCE + STATE_DISTANCE_OF_FEW / count**2)


def states_of_both(sides: Sequence[Floats]) -> States | None:
    """Two states of the machine that several arms met in turn, each with too few times to tell it by itself.

    Each arm's times count as shares of their median, shown as times of the first arm.
    """
    if any(times.size < 2 or not (times > 0).all() for times in sides):
        return None
    middle = float(np.median(sides[0]))
    return two_states(np.concatenate([times / np.median(times) for times in sides]) * middle)


def time_in_outliers(times: Floats) -> float | None:
    """Share of the summed time that lies in outliers; None for too few values."""
    if times.size < FEWEST or not times.sum():
        return None
    middle = float(np.median(times))
    apart = np.abs(times - middle)
    limit = max(OUTLIER_DISTANCE * NORMAL_SPREAD * float(np.median(apart)), OUTLIER_CHANGE * middle)
    return float(times[apart > limit].sum() / times.sum())
