"""What the instances of a phase spent their time on: every kernel, every overlap episode, idle time by cause."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.kernels.durations import DURATION
from tracekit.analysis.phases.idle import CAUSES, idle_causes
from tracekit.analysis.statistics.ratios import Floats
from tracekit.analysis.statistics.typical import typical_weights

INSTANCES = ["instance", "time", "busy", "copying", *CAUSES, "unattributed", "no_call"]

KERNELS = ["row", "group", "alone", "duration", "overlapped", "work"]

EPISODES = ["row", "set", "cluster", "wall", "solo", "members"]


@dataclass(frozen=True)
class PhaseWork:
    """The counted instances of one phase in one trace. Times are ns.

    ``instances`` (INSTANCES) has the phase ``time`` = busy + copying + idle time by cause + ``unattributed``. The
    other frames name an instance by its ``row`` there.
    ``kernels`` (KERNELS), one row a launch: ``work`` is what it takes alone: its duration where it met no other
    (``alone``), else its solo duration, null where that is unknown. Where every one is known,
    busy = sum of work + sum of (W - S).
    ``episodes`` (EPISODES): those whose members all have a known solo duration, with their W and S. Those of one
    ``cluster`` have no known W - S each, only together, so their ``set`` is that of the cluster.
    """

    arm: Arm
    instances: pl.DataFrame
    kernels: pl.DataFrame
    episodes: pl.DataFrame

    @cached_property
    def times(self) -> Floats:
        """Phase times."""
        return self.instances["time"].to_numpy().astype(np.float64)

    @cached_property
    def weights(self) -> Floats:
        """What each instance weighs in means over typical instances."""
        return typical_weights(self.times)

    @property
    def hidden(self) -> bool:
        """Records were lost or graphs recorded whole: what ran is not known."""
        return bool(self.arm.trust.recording.withheld)

    @cached_property
    def typical_kernels(self) -> pl.DataFrame:
        """Each ``group`` in one typical instance: launches (``count``), those ``alone`` and their ``alone_ns``, and
        the ``work`` of all, null where any of it is unknown."""
        group, row = self.kernels["group"].to_numpy(), self.kernels["row"].to_numpy()
        weight = self.weights[row]
        alone = weight * self.kernels["alone"].to_numpy()
        work = self.kernels["work"].fill_null(np.nan).to_numpy()
        unknown = np.bincount(group, np.isnan(work))
        table = {
            "count": np.bincount(group, weight),
            "alone": np.bincount(group, alone),
            "alone_ns": np.bincount(group, alone * self.kernels["duration"].to_numpy()),
            "work": np.where(unknown, np.nan, np.bincount(group, weight * np.nan_to_num(work))),
        }
        found = np.flatnonzero(np.bincount(group))
        columns = {name: values[found] for name, values in table.items()}
        groups = pl.Series("group", found, dtype=pl.UInt32)
        return (
            pl.DataFrame([groups])
            .with_columns(**{name: pl.Series(v) for name, v in columns.items()})
            .with_columns(pl.col("work").fill_nan(None))
        )

    @cached_property
    def medians(self) -> pl.DataFrame:
        """Each ``group``: ``median`` and ``total`` duration over all instances, and what share of it met others."""
        duration = pl.col("duration")
        return self.kernels.group_by("group").agg(
            median=duration.median(), total=duration.sum(), beside=pl.col("overlapped").sum() / duration.sum()
        )


def phase_works(arm: Arm, timed: dict[str, pl.DataFrame]) -> dict[str, PhaseWork]:
    """The work of every phase; ``timed`` gives its counted instances' figures with their ``time``."""
    if not timed:
        return {}
    rows = pl.concat(
        [frame.with_row_index("row").with_columns(phase=pl.lit(i, pl.Int32)) for i, frame in enumerate(timed.values())]
    )
    instances = rows.select("phase", "instance", "time", "busy", "copying").join(
        idle_causes(arm.work, arm.call_time, rows), on="instance", how="left", maintain_order="left"
    )
    rows_of = rows.select("instance", "phase", "row")
    frames = (instances, _kernels(arm, rows_of), _episodes(arm, rows_of))
    parts = [frame.partition_by("phase", as_dict=True, maintain_order=True) for frame in frames]
    columns = (INSTANCES, KERNELS, EPISODES)
    return {
        name: PhaseWork(
            arm,
            *(part.get((i,), frame.clear()).select(of) for part, frame, of in zip(parts, frames, columns, strict=True)),
        )
        for i, name in enumerate(timed)
    }


def _kernels(arm: Arm, rows_of: pl.DataFrame) -> pl.DataFrame:
    alone = pl.col("overlapped") == 0
    return arm.counted.select(
        "instance",
        "group",
        "overlapped",
        alone=alone,
        duration=DURATION,
        work=pl.when(alone).then(DURATION.cast(pl.Float64)).otherwise("solo"),
    ).join(rows_of, on="instance", maintain_order="left")


def _episodes(arm: Arm, rows_of: pl.DataFrame) -> pl.DataFrame:
    episodes = arm.episodes.filter("known").with_columns(pl.col("set").sum().over("cluster"))
    return episodes.drop("phase").join(rows_of, on="instance", maintain_order="left")
