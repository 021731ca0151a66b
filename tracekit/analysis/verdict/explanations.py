"""Every cause that could make two arms differ, tested against the figures of one phase."""

from typing import NamedTuple, get_args

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.overlap.sets_in_words import called, set_sums
from tracekit.analysis.phases.comparison import GAIN_COVERAGE, PhasePair
from tracekit.analysis.results.causes import Cause, Explanation, Outcome, Step
from tracekit.analysis.statistics.thresholds import FEWEST_FOR_DRIFT, MARGIN
from tracekit.analysis.verdict.phase_steps import in_sets
from tracekit.analysis.verdict.waterfall import Waterfall
from tracekit.units import duration, percent, signed

CARRIES = 0.5
"""Share of the difference from which the largest part carries it: no other part can be larger in its direction
without one against it."""

CONTRIBUTES = 0.1
"""Share of the difference from which a part is worth a reader's time."""

SHARING = 0.5
"""Overlapped share of a kernel from which its slower median is put down to sharing the GPU."""


class Stretched(NamedTuple):
    """A kernel whose median is slower in one arm, most of it beside other kernels. Durations in ns."""

    name: str
    letter: str
    alone: float
    beside: float


def explanations(pair: PhasePair, fall: Waterfall | None, winner: str, a: Arm, b: Arm) -> list[Explanation]:
    """All causes, ``ordered``.

    A part *contributes* when its 95 % interval leaves out zero and it is at least CONTRIBUTES of the difference; the
    largest of these *carries* it from CARRIES on. Where no arm is faster there is nothing to carry, and a part
    contributes when its interval lies outside of +-MARGIN of the phase time. It is *ruled out* when its interval
    lies within that, else one *cannot tell*.
    """
    if fall is None or pair.a.time is None or pair.b.time is None:
        return []
    change = pair.b.time - pair.a.time
    outcomes = _outcomes(fall, change, max(pair.a.time, pair.b.time), winner in ("a", "b"))
    stretched = stretched_kernel(pair)
    evidence = _Evidence(pair, fall, a, b)
    found = []
    for cause in get_args(Cause):
        step = fall.steps.get("overlap_gained" if cause == "plain_sharing" else cause)
        if cause == "plain_sharing":
            outcome, told = _sharing(outcomes["overlap_gained"], step, stretched)
        elif step is None:
            outcome, told = {"drift": _drift, "profiler": _profiler}[cause](pair, a, b)
        else:
            outcome, told = outcomes[cause], evidence.of(cause)
        found.append(_explanation(cause, outcome, step, change, told))
    return ordered(found)


def ordered(found: list[Explanation]) -> list[Explanation]:
    """Those that carry the difference first, then by size, those without a size last."""
    return sorted(found, key=lambda each: (each.outcome != "carries", -abs(each.ns or 0)))


def _explanation(cause: Cause, outcome: Outcome, step: Step | None, change: float, told: str) -> Explanation:
    ns = None if step is None else step.ns
    share = round(ns / change, 4) + 0.0 if ns is not None and change else None
    low, high = (None, None) if step is None else (step.low_ns, step.high_ns)
    return Explanation(cause, outcome, ns, low, high, share, told)


def _outcomes(fall: Waterfall, change: float, time: float, decided: bool) -> dict[Cause, Outcome]:
    found: dict[Cause, Outcome] = {}
    for cause, step in fall.steps.items():
        ns, low, high = step.ns, step.low_ns, step.high_ns
        if ns is None or low is None or high is None or (cause == "clocks" and not fall.clock_told):
            found[cause] = "cannot tell"
        elif _contributes(ns, low, high, change, time, decided):
            found[cause] = "contributes"
        else:
            found[cause] = "ruled out" if max(-low, high) <= MARGIN * time else "cannot tell"
    sizes = {cause: fall.steps[cause].ns or 0 for cause, outcome in found.items() if outcome == "contributes"}
    largest = max(sizes, key=lambda cause: abs(sizes[cause]), default=None)
    if decided and largest is not None and sizes[largest] / change >= CARRIES:
        found[largest] = "carries"
    return found


def _contributes(ns: float, low: float, high: float, change: float, time: float, decided: bool) -> bool:
    if decided:
        return (low > 0 or high < 0) and abs(ns) >= CONTRIBUTES * abs(change)
    return low > MARGIN * time or high < -MARGIN * time


def stretched_kernel(pair: PhasePair) -> Stretched | None:
    """The longest kernel whose median is slower in the faster arm, where it mostly shared the GPU."""
    slow, fast = (side.works[0] for side in ((pair.b, pair.a) if (pair.ratio or 1) <= 1 else (pair.a, pair.b)))
    both = slow.medians.join(fast.medians, on="group", suffix="_fast")
    both = both.filter(
        (pl.col("median_fast") > 0)
        & (pl.col("median") > (1 + MARGIN) * pl.col("median_fast"))
        & (pl.col("beside") >= SHARING)
    ).sort(["total", "group"], descending=[True, False])
    if both.is_empty():
        return None
    row = both.row(0, named=True)
    return Stretched(slow.arm.kernel_names[row["group"]], slow.arm.letter, row["median_fast"], row["median"])


def _sharing(gained: Outcome, step: Step | None, stretched: Stretched | None) -> tuple[Outcome, str]:
    if stretched is None:
        return "ruled out", "no kernel that shared the GPU has a slower median in the faster arm"
    told = (
        f"the median of `{stretched.name}` in {stretched.letter} is {stretched.beside / stretched.alone:.2f}x "
        f"({duration(stretched.alone)} -> {duration(stretched.beside)})"
    )
    if step is None or step.ns is None:
        return "cannot tell", told
    return gained, f"{told}, and overlap {'saved' if step.ns else 'neither saved nor lost'} time"


def _drift(pair: PhasePair, a: Arm, b: Arm) -> tuple[Outcome, str]:
    shaky = [f"{arm.letter} has {side.unsteady}" for arm, side in ((a, pair.a), (b, pair.b)) if side.unsteady]
    if shaky:
        return "carries", ", ".join(shaky)
    fewest = min(pair.a.times.size, pair.b.times.size)
    if fewest < FEWEST_FOR_DRIFT:
        return "cannot tell", f"{fewest} times are too few to see a trend ({FEWEST_FOR_DRIFT} are needed)"
    return "ruled out", f"{pair.a.times.size} and {pair.b.times.size} times show neither a trend nor two states"


def _profiler(pair: PhasePair, a: Arm, b: Arm) -> tuple[Outcome, str]:
    return "cannot tell", f"{pair.name} was not timed without the profiler"


class _Evidence:
    """One sentence with figures for each step."""

    def __init__(self, pair: PhasePair, fall: Waterfall, a: Arm, b: Arm) -> None:
        self._pair, self._fall, self._arms = pair, fall, (a, b)

    def of(self, cause: Cause) -> str:
        """The sentence for one step."""
        if self._fall.hidden:
            return "what ran is not known: records were lost, or graphs were recorded as a whole"
        told = {
            "overlap_lost": self._overlap,
            "overlap_gained": self._overlap,
            "kernels_alone": self._kernels_alone,
            "clocks": self._clocks,
            "one_side_only": self._one_side_only,
            "counts_differ": self._counts_differ,
            "unexplained": self._unexplained,
        }
        return told[cause](cause) if cause in told else self._levels(cause)

    def _overlap(self, cause: Cause) -> str:
        if not self._fall.known:
            return unknown_overlap(self._pair, *self._arms)
        lost = cause == "overlap_lost"
        told = []
        for arm, side in zip(self._arms, (self._pair.a, self._pair.b), strict=True):
            sets = set_sums(side.works).filter(in_sets(self._fall.lost) == lost)
            if sets.height:
                count, wall, solo = (float(sets[column].sum()) for column in ("episodes", "wall", "solo"))
                told.append(
                    f"in {arm.letter} {count:.4g} episodes, W {duration(wall)} against S {duration(solo)}, "
                    f"most of it {called(sets.row(0, named=True), side.works)}"
                )
        return "; ".join(told) or f"no overlap {'lost' if lost else 'saved'} time in either arm"

    def _kernels_alone(self, cause: Cause) -> str:
        row = self._largest(pl.min_horizontal("count", "count_b") * (_each("_b") - _each("")))
        if row is None:
            return "no kernel is in both arms with a known duration"
        a, b = row["work"] / row["count"], row["work_b"] / row["count_b"]
        return f"most by `{self._name(row)}`: {duration(a)} -> {duration(b)} each, {row['count']:.4g} launches"

    def _clocks(self, cause: Cause) -> str:
        clock = self._fall.clock
        if clock is None:
            told = "share no factor but 1" if self._fall.clock_told else "are too few to tell a common factor"
            return f"the kernels that ran alone in both arms {told}"
        return (
            f"{clock.kernels.len()} kernels that ran alone in both arms ({percent(clock.share, 0)} of their time) "
            f"differ by one factor, {clock.factor:.3f}x"
        )

    def _one_side_only(self, cause: Cause) -> str:
        kernels = self._fall.kernels
        told = []
        for arm, work, other in zip(self._arms, ("work", "work_b"), ("count_b", "count"), strict=True):
            only = kernels.filter(pl.col(other).fill_null(0) == 0).sort([work, "group"], descending=[True, False])
            if only.height:
                name = arm.kernel_names[only["group"][0]]
                told.append(
                    f"{only.height} kernel{'s' if only.height > 1 else ''} only in {arm.letter} "
                    f"({duration(float(only[work].sum()))}), longest `{name}`"
                )
        return ", ".join(told) or "both arms run the same kernels"

    def _counts_differ(self, cause: Cause) -> str:
        row = self._largest((pl.col("count_b") - pl.col("count")) * _each(""))
        if row is None or abs(row["size"]) < 1:
            return "kernels of both arms are launched equally often"
        return f"most by `{self._name(row)}`: {row['count']:.4g} -> {row['count_b']:.4g} launches"

    def _unexplained(self, cause: Cause) -> str:
        told = []
        if not self._fall.known:
            told.append(unknown_overlap(self._pair, *self._arms))
        if abs(self._fall.unattributed) >= 1:
            told.append(f"{signed(self._fall.unattributed)} of idle time whose launch call is not known")
        return "; ".join(told) or "medians against means of what the instances ran"

    def _levels(self, cause: Cause) -> str:
        a, b = self._fall.levels[cause]
        what = {
            "gaps": "the GPU waited though the next work had been launched",
            "launch_bound": "the GPU waited for the host, which was inside launch calls",
            "setup": "the GPU waited for the host, which was inside calls that set up",
            "host_work": "the GPU waited for the host, which was in no CUDA call",
            "copies": "copies beside no kernel took",
        }[cause]
        return f"{what}: {duration(a)} in {self._arms[0].letter}, {duration(b)} in {self._arms[1].letter}"

    def _largest(self, size: pl.Expr) -> dict[str, float] | None:
        rows = self._fall.kernels.with_columns(size=size).filter(pl.col("size").is_finite())
        rows = rows.sort([pl.col("size").abs(), "group"], descending=[True, False])
        return rows.row(0, named=True) if rows.height else None

    def _name(self, row: dict[str, float]) -> str:
        return self._arms[0].kernel_names[int(row["group"])]


def _each(suffix: str) -> pl.Expr:
    return pl.col(f"work{suffix}") / pl.col(f"count{suffix}")


def unknown_overlap(pair: PhasePair, a: Arm, b: Arm) -> str:
    """How much of the overlapped time has kernels whose solo duration is not known; empty where little has."""
    return ", ".join(
        f"{percent(1 - side.coverage, 0)} of the overlapped time in {arm.letter} has kernels that never ran alone: "
        "what their overlap gained is unknown"
        for arm, side in ((a, pair.a), (b, pair.b))
        if side.count and side.coverage < GAIN_COVERAGE
    )
