"""Contention and overlap by set as rows of an answer."""

from typing import Any

import numpy as np
import polars as pl

from tracekit.analysis.overlap.contention import ALONE, OVER_HALF, UP_TO_HALF
from tracekit.analysis.results import Contention, Kernel, OverlapSet
from tracekit.analysis.results.contention import Band
from tracekit.analysis.rows import kernel_of, number, rounded

BANDS: dict[int | None, Band | None] = {None: None, ALONE: "alone", UP_TO_HALF: "up to half", OVER_HALF: "over half"}


def named_kernels(labels: pl.DataFrame) -> dict[int, Kernel]:
    """Group -> kernel, from labels by ``group`` (``matched_labels``)."""
    first = labels.unique("group", keep="first", maintain_order=True)
    return {row["group"]: Kernel(**kernel_of(row)) for row in first.iter_rows(named=True)}


def contention_rows(
    rows: pl.DataFrame,
    members: pl.DataFrame,
    kernels: dict[int, Kernel],
    arm: str | None = None,
    phases: list[str] | None = None,
) -> list[Contention]:
    """Rows of ``contention.CONTENTION``; ``members`` names the kernels of each set, ``phases`` those numbered."""
    shown = members.filter(pl.col("set").is_in(rows["set"].drop_nulls().implode())).sort("set", "group")
    of_set = {key: part["group"].to_list() for (key,), part in shown.partition_by("set", as_dict=True).items()}
    return [
        Contention(
            arm=arm,
            phase=None if phases is None else phases[row["phase"]],
            victim=kernels[row["group"]],
            companions=[kernels[group] for group in _companions(row, of_set)],
            band=BANDS[row["band"]],
            instances=row["instances"],
            stretch=rounded(row["stretch"]),
            ci95=None if row["low"] is None else (round(row["low"], 6), round(row["high"], 6)),
            overlapped_fraction=round(row["beside"] / row["spent"], 6),
            split=row["companion"] is not None,
            note=row["note"],
        )
        for row in rows.iter_rows(named=True)
    ]


def _companions(row: dict[str, Any], of_set: dict[int, list[int]]) -> list[int]:
    return of_set.get(row["set"], []) if row["companion"] is None else [row["companion"]]


def set_rows(
    sets: pl.DataFrame,
    kernels: dict[int, Kernel],
    operators: dict[int, list[str]],
    arm: str | None = None,
    phase: str | None = None,
    instances: int = 1,
) -> list[OverlapSet]:
    """Rows of ``episode_sets.SETS``, for one of so many ``instances`` of a phase; ``operators`` by group."""
    walls, solos = _shares(sets["wall"], instances), _shares(sets["solo"].fill_null(0), instances)
    return [
        OverlapSet(
            arm=arm,
            phase=phase,
            members=[kernels[group] for group in row["members"]],
            pair=row["pair"],
            sets=row["sets"],
            episodes=number(row["episodes"] / instances),
            wall_ns=wall,
            solo_ns=solo if row["known"] else None,
            gain_ns=solo - wall if row["known"] else None,
            low_ns=None if row["low"] is None else number(row["low"] / instances),
            high_ns=None if row["high"] is None else number(row["high"] / instances),
            operators=sorted({name for group in row["members"] for name in operators.get(group, [])}),
        )
        for row, wall, solo in zip(sets.iter_rows(named=True), walls, solos, strict=True)
    ]


def _shares(sums: pl.Series, instances: int) -> list[int]:
    """What is due to one instance, in whole numbers that add up to the rounded whole."""
    until = np.rint(np.cumsum(sums.to_numpy()) / instances).astype(np.int64)
    shares: list[int] = np.diff(until, prepend=0).tolist()
    return shares
