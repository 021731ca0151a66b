"""Kernels of two arms, matched and compared."""

from typing import Any

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm, Blocks
from tracekit.analysis.kernels.durations import DURATION, LABELS, durations_by
from tracekit.analysis.kernels.solo import first_known
from tracekit.analysis.results import OUTSIDE, KernelComparison, KernelOnOneSide
from tracekit.analysis.rows import kernel_of, known_number, number, rounded
from tracekit.analysis.statistics.grouped import Grouped
from tracekit.analysis.statistics.ratios import (
    Floats,
    Interval,
    discoveries,
    paired_p,
    rank_sum_p,
    ratio_of_blocks,
    ratio_of_medians,
    status,
)
from tracekit.analysis.statistics.thresholds import FEWEST
from tracekit.numbering import numbered


def compare_kernels(
    a: Blocks, b: Blocks
) -> tuple[list[KernelComparison], list[KernelOnOneSide], list[KernelOnOneSide]]:
    """Kernels on both sides (longest total first), on ``a`` only, on ``b`` only. Warm-up is left out."""
    stats = [_statistics(side) for side in (a, b)]
    labels = [_labels(side) for side in (a, b)]
    both = stats[0].join(stats[1], on="group", suffix="_b").sort("group")
    compared = _tested(both, a, b)
    by_phase = [_by_phase(side) for side in (a, b)]
    homes = _homes(by_phase)
    iterations = [_per_iteration(side, parts, homes) for side, parts in zip((a, b), by_phase, strict=True)]
    table = (
        compared.join(homes, on="group")
        .join(iterations[0], on="group", how="left")
        .join(iterations[1], on="group", how="left", suffix="_b")
        .join(first_known(*(block.solo for block in (*b, *a))), on="group", how="left")
        .join(labels[0], on="group")
        .join(labels[1].select("group", other_name=_NAME), on="group")
        .sort([pl.max_horizontal("total_ns", "total_ns_b"), "group"], descending=[True, False])
    )
    rows = [_comparison(row, a, b) for row in table.iter_rows(named=True)]
    return rows, _one_side(a, stats, labels[0], homes, 0), _one_side(b, stats, labels[1], homes, 1)


_NAME = pl.coalesce("name", "mangled_name", "short_name")


def _labels(side: Blocks) -> pl.DataFrame:
    labels = pl.concat([block.labels.select("group", "normalised", *LABELS) for block in side])
    return labels.unique("group", keep="first", maintain_order=True)


def _counted(side: Blocks) -> pl.DataFrame:
    return pl.concat([block.counted.select("start", "end", "overlapped", "graph_node", "group") for block in side])


def _statistics(side: Blocks) -> pl.DataFrame:
    rows = _counted(side)
    return durations_by(rows, rows["group"])


def _samples(side: Blocks, other: Blocks) -> pl.DataFrame:
    """Median duration of each kernel in each independent moment (or block, where there are several)."""
    if len(side) == 1 and len(other) == 1:
        return _moments(side[0])
    medians = [_medians(block.counted).with_columns(block=i) for i, block in enumerate(side)]
    return pl.concat(medians).sort("group", "block").select("group", "value")


def _moments(arm: Arm) -> pl.DataFrame:
    """Median duration of each kernel in each independent moment: ``group``, ``value``."""
    rows = arm.counted
    together = numbered([rows["group"], arm.moments])
    medians = _medians(rows.with_columns(group=pl.Series(together.of_rows)))
    return medians.with_columns(group=rows["group"].gather(together.first()))


def _medians(rows: pl.DataFrame) -> pl.DataFrame:
    """Median duration of the kernels of each ``group``: ``group``, ``value``."""
    of = Grouped.of(rows["group"].cast(pl.Int64), rows["end"] - rows["start"])
    return pl.DataFrame({"group": pl.Series(of.group, dtype=pl.UInt32), "value": of.quantile(0.5)})


def _tested(both: pl.DataFrame, a: Blocks, b: Blocks) -> pl.DataFrame:
    """Add ``ratio``, ``low``, ``high``, ``moments_a``, ``moments_b``, ``discovered``."""
    samples = [_samples(a, b), _samples(b, a)]
    values = [_by_group(sample) for sample in samples]
    shared = both["group"].to_list()
    over_blocks = len(a) > 1 or len(b) > 1
    method = ratio_of_blocks if over_blocks else ratio_of_medians
    medians = zip(shared, both["median_ns"], both["median_ns_b"], strict=True)
    intervals = [_centred(method(values[0][group], values[1][group]), one, other) for group, one, other in medians]
    if over_blocks:
        p_values = [paired_p(values[0][group], values[1][group]) for group in shared]
        p = pl.DataFrame({"group": shared, "p": p_values}, schema={"group": pl.UInt32, "p": pl.Float64})
    else:
        sides = [sample.with_columns(side=pl.lit(side)) for sample, side in zip(samples, "ab", strict=True)]
        p = rank_sum_p(pl.concat(sides))
    tested = both.with_columns(
        low=pl.Series([interval and interval.low for interval in intervals], dtype=pl.Float64),
        high=pl.Series([interval and interval.high for interval in intervals], dtype=pl.Float64),
        moments_a=pl.Series([values[0][group].size for group in shared], dtype=pl.Int64),
        moments_b=pl.Series([values[1][group].size for group in shared], dtype=pl.Int64),
        ratio=pl.when((pl.col("median_ns") > 0) & (pl.col("median_ns_b") > 0)).then(
            pl.col("median_ns_b") / pl.col("median_ns")
        ),
    ).join(p, on="group", how="left")
    decidable = tested.filter(pl.col("low").is_not_null()).select("group", "p")
    decidable = decidable.with_columns(discovered=discoveries(decidable["p"]))
    return tested.join(decidable.drop("p"), on="group", how="left").with_columns(pl.col("discovered").fill_null(False))


def _by_group(sample: pl.DataFrame) -> dict[int, Floats]:
    """The values of each group of a frame (``group``, ``value``) sorted by group."""
    sizes = sample.group_by("group", maintain_order=True).len()
    ends = np.cumsum(sizes["len"].to_numpy())
    parts = np.split(sample["value"].to_numpy(), ends)
    return dict(zip(sizes["group"], parts[: sizes.height], strict=True))


def _centred(interval: Interval | None, median_a: float, median_b: float) -> Interval | None:
    """The interval over moments or blocks, about the ratio of the medians over all instances."""
    if interval is None or median_a <= 0 or median_b <= 0:
        return None
    ratio = median_b / median_a
    shift = ratio / interval.ratio
    return Interval(ratio, interval.low * shift, interval.high * shift)


def _by_phase(side: Blocks) -> pl.DataFrame:
    """Launches (``count``) and time (``time``, ns) of each ``group`` in each ``phase``."""
    sums = [
        block.counted.select("group", "phase", duration=DURATION)
        .group_by("group", "phase")
        .agg(count=pl.len(), time=pl.col("duration").sum())
        .with_columns(pl.col("phase").cast(pl.String).fill_null(OUTSIDE))
        for block in side
    ]
    return pl.concat(sums).group_by("group", "phase").agg(pl.col("count", "time").sum())


def _homes(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The phase each kernel spends most time in, over both arms: ``group``, ``home``."""
    return (
        pl.concat(parts)
        .group_by("group", home="phase")
        .agg(pl.col("time").sum())
        .sort(["group", "time", "home"], descending=[False, True, False])
        .unique("group", keep="first", maintain_order=True)
        .select("group", "home")
    )


def _per_iteration(side: Blocks, by_phase: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """``group``, launches (``each``) and time (``each_ns``) in one counted instance of its home phase."""
    figures = pl.concat([block.figures.select("phase", "warm_up") for block in side])
    instances = figures.filter(~pl.col("warm_up")).group_by("phase").agg(iterations=pl.len())
    return (
        by_phase.join(homes, left_on=["group", "phase"], right_on=["group", "home"])
        .join(instances, on="phase")
        .select(
            "group",
            each=pl.col("count") / pl.col("iterations"),
            each_ns=pl.col("time") / pl.col("iterations"),
        )
    )


def _comparison(row: dict[str, Any], a: Blocks, b: Blocks) -> KernelComparison:
    interval = None if row["low"] is None else Interval(row["ratio"], row["low"], row["high"])
    measured: dict[str, Any] = {
        f"{field}_{side}": number(row[field + suffix])
        for side, suffix in (("a", ""), ("b", "_b"))
        for field in ("mean_ns", "median_ns", "p25_ns", "p75_ns")
    }
    sums = [not any(block.trust.sums_withheld for block in side) for side in (a, b)]
    ranked = not any(block.trust.ranking_withheld for block in (*a, *b))
    return KernelComparison(
        **kernel_of(row),
        arm=b[0].letter,
        name_b=row["other_name"] if row["normalised"] else None,
        matched_by="normalised name" if row["normalised"] else "key",
        phase=row["home"],
        count_a=row["count"],
        count_b=row["count_b"],
        per_iteration_a=rounded(row["each"]),
        per_iteration_b=rounded(row["each_b"]),
        per_iteration_ns_a=None if row["each_ns"] is None or not sums[0] else number(row["each_ns"]),
        per_iteration_ns_b=None if row["each_ns_b"] is None or not sums[1] else number(row["each_ns_b"]),
        total_ns_a=row["total_ns"] if sums[0] else None,
        total_ns_b=row["total_ns_b"] if sums[1] else None,
        **measured,
        ratio=rounded(row["ratio"]),
        ci95=None if interval is None else (round(interval.low, 6), round(interval.high, 6)),
        status=status(interval, row["discovered"]) if ranked else "undecided",
        note=_note(row, ranked),
        overlapped_fraction_a=rounded(row["overlapped_fraction"]) if sums[0] else None,
        overlapped_fraction_b=rounded(row["overlapped_fraction_b"]) if sums[1] else None,
        solo_ns=known_number(row["solo"]),
        solo_from=row["solo_from"],
        stretch_a=None if not row["solo"] else rounded(row["median_ns"] / row["solo"]),
        stretch_b=None if not row["solo"] else rounded(row["median_ns_b"] / row["solo"]),
    )


def _note(row: dict[str, Any], ranked: bool) -> str | None:
    """What keeps a reader from taking the ratio at its face."""
    notes = []
    fewest = min(row["count"], row["count_b"])
    if not ranked:
        notes.append("most GPU time is hidden inside graphs")
    if row["ratio"] is None:
        notes.append("no timing")
    elif fewest < FEWEST:
        notes.append(f"n = {fewest} is too few")
    elif row["low"] is None:
        moments = min(row["moments_a"], row["moments_b"])
        notes.append(f"all within {moments} moment{'s' if moments > 1 else ''} of the run")
    if row["each"] is not None and row["each_b"] is not None and not np.isclose(row["each"], row["each_b"], rtol=0.01):
        notes.append(
            f"launches per iteration {row['each']:g} -> {row['each_b']:g}, "
            f"time per iteration {row['each_ns_b'] / row['each_ns']:.3f}x"
            if row["each_ns"]
            else f"launches per iteration {row['each']:g} -> {row['each_b']:g}"
        )
    if row["normalised"]:
        notes.append("matched without what the compiler varies in the name")
    if row["mixed"] or row["mixed_b"]:
        notes.append("mixed durations")
    return "; ".join(notes) or None


def _one_side(
    side: Blocks, stats: list[pl.DataFrame], labels: pl.DataFrame, homes: pl.DataFrame, number_of_side: int
) -> list[KernelOnOneSide]:
    only = (
        stats[number_of_side]
        .join(stats[1 - number_of_side].select("group"), on="group", how="anti")
        .join(labels, on="group")
        .join(homes, on="group")
        .sort(["total_ns", "group"], descending=[True, False])
    )
    return [
        KernelOnOneSide(
            **kernel_of(row),
            arm=side[0].letter,
            phase=row["home"],
            count=row["count"],
            total_ns=None if any(block.trust.sums_withheld for block in side) else row["total_ns"],
            median_ns=number(row["median_ns"]),
        )
        for row in only.iter_rows(named=True)
    ]
