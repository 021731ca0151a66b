"""Limits that decide what is said of measurements; docs/trust.md gives the source of each.

Those chosen so that noise alone seldom passes them were measured on independent noise of four shapes (normal,
uniform, exponential, heavy-tailed), 6000 series a size.
"""

MARGIN = 0.02
"""Ratios within +-2 % of 1 are the same for every practical purpose."""

FEWEST = 5
"""Fewest instances a side for an interval: with five, the 95 % bootstrap interval of a median is about the
range of the values, which holds the true median in 94 % of cases; with fewer it holds it too seldom."""

FEWEST_BLOCKS = 3
"""Fewest pairs of blocks for an interval; two never carry a verdict."""

FALSE_DISCOVERIES = 0.05
"""Expected share of false findings among the kernels called slower or faster (Benjamini and Hochberg 1995)."""

DRIFT_CHANGE = 2 * MARGIN
"""Change from the first to the last tenth of the values, as a share, from which a trend counts as drift."""

DRIFT_SCORE = 3.0
"""Spearman's rank correlation with time x sqrt(n - 1), about standard normal without a trend: noise passes in 0.3 %."""

FEWEST_FOR_DRIFT = 10
"""Values from which a trend is looked for: the first and the last tenth are then one value each at least."""

STATE_RATIO = 1.05
"""Ratio of two states' medians from which they are told apart."""

STATE_DISTANCE, STATE_DISTANCE_OF_FEW = 5.5, 600.0
"""Ashman's D of two states (their distance over their mean spread) must reach the first + the second / n^2.
2 separates two known peaks (Ashman, Bird and Zepf 1994), but noise divided at its widest gap passes any fixed limit
if there are few values; this one it passes in 1 % of series of any shape."""

STATE_SHARE = 0.2
"""Share of the values that the smaller state needs: fewer are outliers."""

FEWEST_FOR_STATES = 5
"""Values, or blocks, from which two states are looked for."""

OUTLIER_DISTANCE = 5.0
"""Median absolute deviations from the median, scaled to standard deviations of normal noise, beyond which a value is
an outlier: normal noise has one in two million (Leys et al. 2013 use 2.5 to 3.5; hiccups are far beyond)."""

OUTLIER_CHANGE = 0.05
"""Share of the median that an outlier differs by at least, so that very steady series have none for a trifle."""

OUTLIER_SHARE = 0.05
"""Share of the time in outliers from which they are warned of; medians bear far more."""

LEAST_EFFECT = 1.0
"""Mean log ratio of paired blocks over its standard deviation (Cohen's d): arms closer than that to each other are
closer than their own spread, however many blocks make the interval narrow."""

OPAQUE_LIMIT = 0.05
"""Share of GPU time inside graphs recorded whole above which kernels are not ranked."""

COVERAGE_LIMIT = 0.99
"""Share of a graph's kernels that must have been recorded for sums to be given."""

PROFILER_NOTED, PROFILER_COSTLY = 1.1, 1.3
"""Profiled over unprofiled wall time above which overlap is indicative only, and above which the trace is another
run than the one asked about. Between arms of the public reports the effects looked for are 1.05 to 2."""
