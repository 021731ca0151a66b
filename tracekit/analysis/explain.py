"""Why one arm took longer, in sentences a person can check against the figures."""

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.phase_diff import GAIN_COVERAGE, PARTS, PhasePair, Side
from tracekit.analysis.results import ALL
from tracekit.analysis.statistics import MARGIN
from tracekit.units import duration, percent, shortened

WORTH_SAYING = 0.1
"""Parts of a difference below this share of it are summed up as the rest."""

SETS_SHOWN = 4
"""Sets of kernels named for one phase and arm."""

SAME_SHARE = 0.05
"""Share of kernel time whose medians may differ where kernels are called unchanged."""

SHARING = 0.5
"""Overlapped share of a kernel from which its slower median is put down to sharing the GPU."""

SET_WORTH = 0.005
"""Gain or loss of a set, as a share of the phase's time, from which the set is named."""


def explain(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    """Sentences on where the difference between the arms comes from, largest part first."""
    return [
        *_difference(pair, a, b),
        *_sets(pair.name, pair.a, a),
        *_sets(pair.name, pair.b, b),
        *_unknown_overlap(pair, a, b),
        *_predictions(pair, a, b),
    ]


def _each(name: str) -> str:
    return "" if name == ALL else f" per {shortened(name)}"


def _difference(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    """Split b - a into the parts that add up to it (means over the counted instances)."""
    if pair.a.parts is None or pair.b.parts is None:
        return []
    changes = {part: pair.b.parts[part] - pair.a.parts[part] for part in PARTS}
    whole = sum(changes.values())
    size = max((abs(change) for change in changes.values()), default=0.0)
    if size == 0:
        return []
    wording = {
        "kernels": "kernels alone",
        "overlap": "overlap",
        "copies": "copies",
        "gaps": "gaps and launches",
    }
    if min(pair.a.coverage, pair.b.coverage) < GAIN_COVERAGE:
        wording["kernels"] = "kernels, overlap included"
        changes.pop("overlap")
    told = sorted(
        (part for part in changes if abs(changes[part]) >= WORTH_SAYING * size),
        key=lambda part: -abs(changes[part]),
    )
    rest = whole - sum(changes[part] for part in told)
    listed = [f"{wording[part]} {_signed(changes[part])}" for part in told]
    if abs(rest) >= 0.005 * abs(whole):
        listed.append(f"the rest {_signed(rest)}")
    sentence = f"on average {b.letter} minus {a.letter}{_each(pair.name)}: {_signed(whole)} = " + ", ".join(listed)
    if told and told[0] == "gaps" and _medians_equal(pair.name, a, b):
        sentence = f"kernels unchanged, gap time {_signed(changes['gaps'])}{_each(pair.name)}; {sentence}"
    return [sentence]


def _medians_equal(name: str, a: Arm, b: Arm) -> bool:
    """Whether kernels with nearly all of the phase's kernel time have the same median in both arms."""
    both = _medians(name, a).join(_medians(name, b), on="group", how="full", suffix="_b", coalesce=True)
    same = (pl.col("median_b") / pl.col("median") - 1).abs() <= MARGIN
    whole = int(both["total"].sum())
    return bool(whole) and int(both.filter(same.fill_null(False))["total"].sum()) >= (1 - SAME_SHARE) * whole


def _medians(name: str, arm: Arm) -> pl.DataFrame:
    """Median and total duration of each kernel in the phase's counted instances: ``group``, ``median``, ``total``."""
    spent = pl.col("end") - pl.col("start")
    rows = arm.counted.filter(pl.col("phase") == name)
    return rows.group_by("group").agg(
        median=spent.median(), total=spent.sum(), beside=pl.col("overlapped").sum() / spent.sum()
    )


def _signed(ns: float) -> str:
    return ("+" if ns >= 0 else "-") + duration(abs(ns))


def _sets(name: str, side: Side, arm: Arm) -> list[str]:
    """The sets of kernels whose overlap gained or lost most, each as one plain statement."""
    known = arm.episodes.filter((pl.col("phase") == name) & pl.col("known"))
    if known.is_empty() or not side.count:
        return []
    sums = (
        known.group_by("set")
        .agg(
            pl.col("episode").first(),
            pl.len().alias("count"),
            members=pl.col("members").mean(),
            most=pl.col("members").max(),
            wall=pl.col("wall").mean(),
            solo=pl.col("solo").mean(),
            gain=(pl.col("solo") - pl.col("wall")).sum(),
        )
        .sort([pl.col("gain").abs(), pl.col("set")], descending=[True, False])
    )
    least = SET_WORTH * float(side.times.sum())
    shown = sums.filter(pl.col("gain").abs() >= least).head(SETS_SHOWN)
    if shown.is_empty() and side.coverage < GAIN_COVERAGE:
        return []
    if shown.is_empty():
        wall = duration(float((sums["wall"] * sums["count"]).sum()) / side.count)
        return [f"in {arm.letter}, overlap ({wall}{_each(name)}) neither saved nor lost time"]
    names = _short_names(arm)
    kernels = arm.found.kernels.filter(pl.col("episode").is_in(shown["episode"].implode()))
    groups = {
        episode: sorted(rows["group"]) for (episode,), rows in kernels.partition_by("episode", as_dict=True).items()
    }
    return [
        f"in {arm.letter}, {_who(row, groups[row['episode']], names)} took {duration(row['wall'])} for work that takes "
        f"{duration(row['solo'])} one after another: overlap {_outcome(row)} ({row['count']} episodes)"
        for row in shown.iter_rows(named=True)
    ]


def _who(row: dict[str, object], groups: list[int], names: dict[int, str]) -> str:
    members, most = row["members"], row["most"]
    called = [f"`{names[group]}`" for group in groups]
    if len(groups) == 1:
        exact = members == most
        return f"{most if exact else f'up to {most}'} {called[0]} at once"
    unique = list(dict.fromkeys(called))
    if len(groups) == 2 and most == 2:
        return f"{called[0]} beside {called[1]}"
    return f"a set of {', '.join(unique[:4])}{' and others' if len(unique) > 4 else ''}"


def _outcome(row: dict[str, object]) -> str:
    wall, solo = row["wall"], row["solo"]
    assert isinstance(wall, float) and isinstance(solo, float)
    if abs(solo - wall) < 0.005 * solo:
        return "neither saved nor lost time"
    return f"saved {duration(solo - wall)} each" if solo > wall else f"lost {duration(wall - solo)} each"


def _short_names(arm: Arm) -> dict[int, str]:
    """Base names; with the grid where one name stands for several launch configurations."""
    labels = arm.labels.unique("group", keep="first", maintain_order=True)
    labels = labels.with_columns(shared=pl.len().over("short_name") > 1)
    return {
        row["group"]: shortened(row["short_name"] or "(unnamed)")
        + (f" {'x'.join(map(str, row['grid']))}" if row["shared"] and row["grid"] else "")
        for row in labels.iter_rows(named=True)
    }


def _unknown_overlap(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    return [
        f"{percent(1 - side.coverage, 0)} of the overlapped time in {arm.letter} has kernels that never ran alone: "
        "what their overlap gained is unknown"
        for arm, side in ((a, pair.a), (b, pair.b))
        if side.count and side.coverage < GAIN_COVERAGE
    ]


def _predictions(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    """What-if serial, where there is overlap that it would undo."""
    sentences = []
    for arm, side in ((a, pair.a), (b, pair.b)):
        if side.time is None or not side.medians["overlapped_ns"]:
            continue
        if side.serial is not None:
            low, high = (duration(bound, 4) for bound in (side.serial.low, side.serial.high))
            sentences.append(
                f"{arm.letter} with its kernels one after another is predicted at {duration(side.serial.value)} "
                f"[{low}, {high}]{_held_against(pair, side.serial.value)}"
            )
        elif side.coverage >= GAIN_COVERAGE:
            sentences.append(
                f"{arm.letter} with its kernels one after another cannot be predicted: it has no pause between "
                "dependent kernels to measure"
            )
    return sentences


def _held_against(pair: PhasePair, predicted: float) -> str:
    if pair.serial_arm is None:
        return ""
    letter, time = pair.serial_arm
    error = f"{predicted / time - 1:+.1%}"
    return f"; measured with {letter}, whose graph nodes run one after another: {duration(time)} ({error})"


def slower_kernels(pair: PhasePair, a: Arm, b: Arm) -> list[str]:
    """Say of the longest kernel that shared the GPU, slower where the phase is not, that this is no loss of time."""
    if pair.ratio is None:
        return []
    slow, fast = (b, a) if pair.ratio <= 1 else (a, b)
    both = _medians(pair.name, slow).join(_medians(pair.name, fast), on="group", suffix="_fast")
    both = both.filter(
        (pl.col("median_fast") > 0)
        & (pl.col("median") > (1 + MARGIN) * pl.col("median_fast"))
        & (pl.col("beside") >= SHARING)
    ).sort(["total", "group"], descending=[True, False])
    if both.is_empty():
        return []
    row = both.row(0, named=True)
    return [
        f"the median of `{_short_names(slow)[row['group']]}` in {slow.letter} is "
        f"{row['median'] / row['median_fast']:.2f}x ({duration(row['median_fast'])} -> {duration(row['median'])}), "
        "which is sharing the GPU, not lost time"
    ]
