"""Numbers with intervals: ratios, resampling, order statistics, and the limits that decide what is said."""
