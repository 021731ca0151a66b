"""Whether a series of times is steady enough to compare."""

import numpy as np

from tracekit.analysis.statistics import FEWEST, MARGIN, Floats
from tracekit.units import duration

DRIFT_CHANGE = 2 * MARGIN
"""Change from the first to the last tenth of the values, as a share, from which a trend counts as drift."""

DRIFT_SCORE = 3.0
"""Spearman's rank correlation with time x sqrt(n - 1), which is about standard normal without a trend."""

FEWEST_FOR_DRIFT = 10
"""Values from which a trend is looked for."""

STATE_RATIO = 1.05
"""Ratio of two states' medians from which they are told apart."""

STATE_DISTANCE = 6.0
"""Ashman's D of two states (their distance over their mean spread); 2 separates two peaks, noise rarely makes 6."""

STATE_SHARE = 0.2
"""Share of the values that the smaller state needs."""


def unsteady(times: Floats) -> str | None:
    """Why times (ns, in order) cannot be compared by one median: drift or two states; None when they can."""
    return _drift(times) or _two_states(times)


def _drift(times: Floats) -> str | None:
    count = times.size
    if count < FEWEST_FOR_DRIFT:
        return None
    ranks = _ranks(times)
    order = np.arange(count, dtype=np.float64)
    spread = float(np.std(ranks)) * float(np.std(order))
    if not spread:
        return None
    correlation = float(np.mean((ranks - ranks.mean()) * (order - order.mean()))) / spread
    tenth = max(1, count // 10)
    first, last = float(np.median(times[:tenth])), float(np.median(times[-tenth:]))
    if abs(correlation) * np.sqrt(count - 1) < DRIFT_SCORE or abs(last / first - 1) < DRIFT_CHANGE:
        return None
    return f"drift: the first tenth takes {duration(first)}, the last {duration(last)}"


def _ranks(values: Floats) -> Floats:
    """Ranks, equal values sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[place]
    return ranks


def _two_states(times: Floats) -> str | None:
    """A fast and a slow state, divided at the widest gap."""
    count = times.size
    if count < FEWEST:
        return None
    ordered = np.sort(times)
    least = max(2, int(np.ceil(STATE_SHARE * count)))
    gaps = np.diff(ordered)[least - 1 : count - least]
    if not gaps.size:
        return None
    split = least + int(np.argmax(gaps))
    fast, slow = ordered[:split], ordered[split:]
    low, high = float(np.median(fast)), float(np.median(slow))
    spread = float(np.sqrt((np.var(fast) + np.var(slow)) / 2))
    if low <= 0 or high / low < STATE_RATIO or high - low < STATE_DISTANCE * spread:
        return None
    return f"bimodal: {fast.size} near {duration(low)}, {slow.size} near {duration(high)}"
