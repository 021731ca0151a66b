"""What predictions of a phase's time are made of."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.graphs import by_key
from tracekit.graph.dag import Floats
from tracekit.units import shortened

SCENARIOS = {"value": "solo", "low": "solo_low", "high": "solo_high"}
"""A prediction and the ends of its interval, and the column of solo.SOLO that each takes durations from."""


class Unpredictable(Exception):
    """What keeps a prediction from being made, in words."""


class Change(NamedTuple):
    """What phase instances take more (``instance``, and ns for each of SCENARIOS), and what that rests on."""

    by_instance: pl.DataFrame
    basis: str


def solo_of_keys(arm: Arm) -> dict[str, Floats]:
    """For each of SCENARIOS the solo duration (ns) of each kernel key of the arm, nan where unknown."""
    return {scenario: by_key(arm.labels, arm.solo, column) for scenario, column in SCENARIOS.items()}


def pauses(arm: Arm) -> dict[str, float]:
    """For each of SCENARIOS the pause (ns) between dependent kernels of the arm. Raises Unpredictable."""
    if arm.gap is None:
        raise Unpredictable("no pause between kernels that follow one another was measured")
    return dict(zip(SCENARIOS, arm.gap, strict=True))


def need_solo(arm: Arm, keys: pl.Series) -> None:
    """Raise Unpredictable where a kernel of these keys never ran alone."""
    alone = solo_of_keys(arm)["value"]
    unknown = arm.labels.filter(pl.col("key").is_in(keys.unique().implode())).sort("key")
    names = [row["short_name"] or row["name"] for row in unknown.iter_rows(named=True) if np.isnan(alone[row["key"]])]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise Unpredictable(f"no arm shows how long `{shortened(names[0])}`{more} takes alone")
