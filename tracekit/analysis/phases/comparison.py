"""Phases of two arms: their times on one basis, what made them up, and the ratio with its interval."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.kernels.durations import DURATION
from tracekit.analysis.phases.work import PhaseWork, phase_works
from tracekit.analysis.results import ALL, OUTSIDE
from tracekit.analysis.statistics.ratios import Floats, Interval, ratio_of_blocks, ratio_of_medians
from tracekit.analysis.statistics.steadiness import unsteady
from tracekit.together import together

PERIOD, ISOLATED, SPAN = (
    "period: last GPU completion to last GPU completion",
    "range start to last GPU completion",
    "first GPU start to last GPU completion",
)
"""What a phase's time is measured between."""

GAIN_COVERAGE = 0.9
"""Share of overlapped time whose members need a known solo duration before a gain is stated."""


class What(NamedTuple):
    """A prediction and its interval, ns."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Side:
    """One phase in one arm: medians over the counted instances, ns; None where not measured.

    ``times`` are those of the instances, or with several ``blocks`` the blocks' medians. ``lost``: records are missing.
    ``works`` has what each block's instances spent their time on.
    """

    count: int
    warm_up: int
    times: Floats
    medians: dict[str, float | None]
    serial: What | None
    coverage: float
    kernel_rows: int
    kernel_ns: int
    lost: bool
    works: tuple[PhaseWork, ...]
    blocks: int = 1

    @cached_property
    def unsteady(self) -> str | None:
        """Why the times cannot be compared by their median; None when they can."""
        return unsteady(self.times)

    @property
    def time(self) -> float | None:
        """Median phase time."""
        return float(np.median(self.times)) if self.times.size else None


@dataclass(frozen=True)
class PhasePair:
    """One phase in two arms. ``serial_arm``: the letter and time (ns) of a measured arm of graphs without overlap;
    ``eager``: the phase in the arm that solo durations come from first. ``withheld``: why no verdict may be given."""

    name: str
    basis: str | None
    a: Side
    b: Side
    interval: Interval | None
    serial_arm: tuple[str, float] | None = None
    eager: Side | None = None
    withheld: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Time of b / time of a; over blocks the mean of the blocks' ratios."""
        if not self.a.time or self.b.time is None:
            return None
        if self.interval and self.a.blocks > 1:
            return self.interval.ratio
        return self.b.time / self.a.time


def phase_names(arms: list[Arm]) -> list[str]:
    """All phases, those with the most kernel time first; the work outside of any last."""
    rows = pl.concat([_work_time(arm) for arm in arms]).group_by("phase").agg(pl.col("time").sum())
    named = rows.filter(pl.col("phase") != OUTSIDE).sort(["time", "phase"], descending=[True, False])
    outside = [OUTSIDE] if rows.filter((pl.col("phase") == OUTSIDE) & (pl.col("time") > 0)).height else []
    return [*named["phase"].to_list(), *outside]


def _work_time(arm: Arm) -> pl.DataFrame:
    marks = arm.figures.select("instance", "phase")
    frames = [frame.select("instance", time=DURATION) for frame in arm.work]
    return (
        pl.concat(frames)
        .join(marks, on="instance", how="left")
        .group_by(pl.col("phase").fill_null(OUTSIDE))
        .agg(pl.col("time").sum())
    )


def measure_phases(arms: list[list[Arm]], names: list[str]) -> dict[str, tuple[str | None, list[Side]]]:
    """Each phase's time basis, one for all arms, and its side in each of them; an arm is a list of blocks."""
    every = [block for blocks in arms for block in blocks]
    bases = {name: None if name == OUTSIDE else basis_of(every, name) for name in names}
    found = iter(together(*(partial(_sides_of, block, bases) for block in every)))
    sides = [[next(found) for _ in blocks] for blocks in arms]
    return {name: (bases[name], [_merged([block[name] for block in blocks]) for blocks in sides]) for name in names}


def _sides_of(arm: Arm, bases: dict[str, str | None]) -> dict[str, Side]:
    """Every phase of one arm."""
    timed = {name: timed_of(arm, name, basis) for name, basis in bases.items()}
    works = phase_works(arm, timed)
    return {name: side_of(arm, name, rows, works[name]) for name, rows in timed.items()}


def _merged(sides: list[Side]) -> Side:
    """One side from its blocks: times are the blocks' medians, figures the medians over blocks."""
    if len(sides) == 1:
        return sides[0]
    timed = [side for side in sides if side.time is not None]
    serial = [side.serial for side in timed if side.serial is not None]
    return Side(
        count=sum(side.count for side in sides),
        warm_up=sum(side.warm_up for side in sides),
        times=np.array([side.time for side in timed], np.float64),
        medians={field: _middle([side.medians[field] for side in timed]) for field in sides[0].medians},
        serial=What(*(float(np.median(values)) for values in zip(*serial, strict=True)))
        if serial and len(serial) == len(timed)
        else None,
        coverage=min((side.coverage for side in timed), default=0.0),
        kernel_rows=sum(side.kernel_rows for side in sides),
        kernel_ns=sum(side.kernel_ns for side in sides),
        lost=any(side.lost for side in sides),
        works=tuple(work for side in sides for work in side.works),
        blocks=len(sides),
    )


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known and len(known) == len(values) else None


def pair_of(
    name: str,
    basis: str | None,
    a: Side,
    b: Side,
    serial_arm: tuple[str, float] | None = None,
    eager: Side | None = None,
    withheld: tuple[str, ...] = (),
) -> PhasePair:
    """Two sides of a phase with the interval of their ratio: over blocks where there are several, else instances."""
    over_blocks = a.blocks > 1 or b.blocks > 1
    interval = ratio_of_blocks(a.times, b.times) if over_blocks else ratio_of_medians(a.times, b.times)
    return PhasePair(name, basis, a, b, interval, serial_arm, eager, withheld)


def basis_of(arms: list[Arm], name: str) -> str | None:
    """Period where the instances follow one another in every arm that has the phase, else from range start."""
    if name == ALL:
        return SPAN
    rows = [counted_of(arm, name) for arm in arms]
    present = [frame for frame in rows if frame.height]
    if not present:
        return None
    following = all(frame["period"].is_not_null().sum() * 2 >= frame.height for frame in present)
    return PERIOD if following else ISOLATED


def counted_of(arm: Arm, name: str) -> pl.DataFrame:
    """Figures of the phase's instances outside of warm-up."""
    return arm.figures.filter((pl.col("phase") == name) & ~pl.col("warm_up"))


def timed_of(arm: Arm, name: str, basis: str | None) -> pl.DataFrame:
    """Figures of the phase's counted instances that have a ``time`` on this basis."""
    time = {
        PERIOD: pl.col("period"),
        ISOLATED: pl.col("last") - pl.col("start"),
        SPAN: pl.col("last") - pl.col("first"),
        None: pl.lit(None, pl.Int64),
    }[basis]
    return counted_of(arm, name).with_columns(time=time).filter(pl.col("time").is_not_null())


def side_of(arm: Arm, name: str, timed: pl.DataFrame, work: PhaseWork) -> Side:
    """Measure one phase of one arm, whose counted instances have their ``time``."""
    kernel_rows, kernel_ns = arm.kernel_totals.get(name, (0, 0))
    rows = timed.with_columns(gpu_span=pl.col("last") - pl.col("first"), wall=pl.col("end") - pl.col("start"))
    coverage = float(rows["coverage"].median() or 0.0) if rows.height else 0.0  # type: ignore[arg-type]
    return Side(
        count=rows.height,
        warm_up=arm.figures.filter((pl.col("phase") == name) & pl.col("warm_up")).height,
        times=rows["time"].to_numpy().astype(np.float64),
        medians=_medians(arm, name, rows, coverage),
        serial=_serial(arm, rows, coverage),
        coverage=coverage,
        kernel_rows=kernel_rows,
        kernel_ns=kernel_ns,
        lost=arm.trust.sums_withheld,
        works=(work,),
    )


def _medians(arm: Arm, name: str, rows: pl.DataFrame, coverage: float) -> dict[str, float | None]:
    spoilt = arm.trust.sums_withheld or arm.trust.ranking_withheld
    columns = {
        "gpu_span_ns": "gpu_span",
        "wall_ns": None if name == ALL else "wall",
        "busy_ns": None if spoilt else "busy",
        "overlapped_ns": None if spoilt else "overlapped",
        "idle_ns": None if "idle" in arm.trust.recording.withheld else "idle",
        "launches": None if arm.trust.sums_withheld else "launches",
        "setup_ns": "setup",
        "overlap_gain_ns": "gain" if coverage >= GAIN_COVERAGE and not spoilt else None,
    }
    return {field: None if column is None else _median(rows, column) for field, column in columns.items()}


def _median(rows: pl.DataFrame, column: str | pl.Expr) -> float | None:
    value = rows.select(pl.col(column) if isinstance(column, str) else column).to_series().median()
    return None if value is None else float(value)  # type: ignore[arg-type]


def _serial(arm: Arm, rows: pl.DataFrame, coverage: float) -> What | None:
    """What the phase would take with its kernels one after another: a prediction.

    time + sum(S - W) + (members - 1 of each episode) x the measured gap between dependent kernels.
    """
    if rows.is_empty() or arm.trust.recording.withheld or coverage < GAIN_COVERAGE:
        return None
    if not (rows["episodes"] > 0).any():
        time = float(np.median(rows["time"].to_numpy()))
        return What(time, time, time)
    if arm.gap is None:
        return None
    middle, low, high = arm.gap
    extra = pl.col("extra_members")
    values = [
        _median(rows, pl.col("time") + pl.col(gain) + extra * gap)
        for gain, gap in (("gain", middle), ("gain_low", low), ("gain_high", high))
    ]
    if None in values:
        return None
    return What(*(value for value in values if value is not None))
