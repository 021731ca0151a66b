"""Order statistics of many groups of durations at once."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.intervals import Ints


@dataclass(frozen=True)
class Grouped:
    """Durations (ns), sorted within their groups; one value a group in every other array, groups in order."""

    group: Ints
    count: Ints
    values: Ints
    first: Ints

    @classmethod
    def of(cls, group: pl.Series, duration: pl.Series) -> Self:
        """Sort durations, none negative, by their group's number."""
        groups, values = group.to_numpy(), duration.to_numpy()
        bits = int(values.max(initial=0)).bit_length()
        if int(groups.max(initial=0)).bit_length() + bits < 64:
            # One sort of numbers is many times faster than one of pairs.
            packed = np.sort(groups << bits | values)
            groups, values = packed >> bits, packed & (1 << bits) - 1
        else:
            order = np.lexsort((values, groups))
            groups, values = groups[order], values[order]
        first = np.flatnonzero(np.concatenate([[groups.size > 0], groups[1:] != groups[:-1]]))
        return cls(groups[first], np.diff(first, append=groups.size), values, first)

    def total(self) -> Ints:
        """Sums."""
        return np.add.reduceat(self.values, self.first) if self.first.size else self.first

    def least(self) -> Ints:
        """Minima."""
        least: Ints = self.values[self.first]
        return least

    def most(self) -> Ints:
        """Maxima."""
        most: Ints = self.values[self.first + self.count - 1]
        return most

    def spread_beyond(self, ratio: float) -> npt.NDArray[np.bool_]:
        """Whether p95 is over so many times p5."""
        wide: npt.NDArray[np.bool_] = self.quantile(0.95) > ratio * self.quantile(0.05)
        return wide

    def quantile(self, share: float) -> npt.NDArray[np.float64]:
        """Quantiles, by linear interpolation between the two values beside them."""
        place = share * (self.count - 1)
        whole = np.floor(place).astype(np.int64)
        low = self.values[self.first + whole]
        high = self.values[self.first + np.minimum(whole + 1, self.count - 1)]
        quantile: npt.NDArray[np.float64] = low + (high - low) * (place - whole)
        return quantile
