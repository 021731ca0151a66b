"""Telling apart what each of several kernels does to one that runs beside them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracekit.analysis.statistics.bootstrap import bounds
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.thresholds import MARGIN

MOST_INFLATION = 1.0
"""Variance of a separate effect, in variances of one set's stretch, up to which it is told apart: it has to come
out at least as certain as a stretch that is measured directly."""

_EXACT = 1 - 1e-6
"""Share from which a projection is whole, rounding aside."""

Flags = npt.NDArray[np.bool_]


class Separation(NamedTuple):
    """One value a set, or one value a kernel.

    ``apart``: the set's effect is the product of those of its kernels. ``mismatched``: it is not. ``known``: the
    kernel's separate ``effect`` (log stretch) is told apart, ``low`` and ``high`` being its 95 % interval.
    """

    apart: Flags
    mismatched: Flags
    known: Flags
    effect: Floats
    low: Floats
    high: Floats


def separate(members: Flags, stretch: Floats, deviation: Floats) -> Separation:
    """Least squares of log stretch over sets on which kernels were in them, as far as that can be known.

    ``members`` has one row a set of the same victim and one column a kernel; ``stretch`` is logarithmic,
    ``deviation`` has one row a set and one column a resample. A kernel's effect is known where it is determined by the
    sets (its row of the resolution matrix is that of the identity) and not inflated (MOST_INFLATION). A set is told
    apart into its kernels where all their effects are known and the other sets predict its stretch (leverage below
    one), so that it can be checked that effects multiply. Where they do not, beyond MARGIN and beyond chance, no
    kernel of the set has an effect of its own. (Menke, Geophysical Data Analysis, chapter 4, for resolution; Belsley,
    Kuh and Welsch 1980 for leverage.)
    """
    design = members.astype(np.float64)
    solve = np.linalg.pinv(design)
    project = design @ solve
    residual = stretch - project @ stretch
    low, high = bounds(deviation - project @ deviation)
    mismatched = (np.abs(residual) > np.log1p(MARGIN)) & ((residual + low > 0) | (residual + high < 0))
    predicted = np.diagonal(project) < _EXACT
    determined = np.diagonal(solve @ design) > _EXACT
    sound = determined & ((solve**2).sum(axis=1) <= MOST_INFLATION) & ~members[mismatched].any(axis=0)
    apart = (members.sum(axis=1) > 1) & predicted & ~(members & ~sound).any(axis=1)
    effect = solve @ stretch
    below, above = bounds(solve @ deviation)
    return Separation(apart, mismatched, sound & members[apart].any(axis=0), effect, effect + below, effect + above)
