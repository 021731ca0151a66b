"""What a phase would take if some kernels never ran beside others, and all else ran as it did."""

import numpy as np
import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.kernels.durations import DURATION, base_name_matches
from tracekit.analysis.phases.instances import DEVICES, with_place
from tracekit.analysis.what_if.basis import SCENARIOS, Change, Unpredictable, need_solo, pauses, solo_of_keys
from tracekit.intervals import arrays, sweep


def isolated(arm: Arm, rows: pl.DataFrame, pattern: str) -> Change:
    """The change of phase instances (``rows``) if kernels whose base name matches ran beside no other.

    A stretch in which one of them runs beside others takes instead what its members' work takes one after another:
    sum(S - W) over these stretches + (members - 1 of each) x the pause between dependent kernels, by the rules of
    episodes (S shares out what a member does beside others by time). With every kernel matching it is the serial
    prediction. Raises Unpredictable.
    """
    kernels = with_place(arm.work.kernels.filter(pl.col("instance").is_in(rows["instance"].implode())))
    keys = base_name_matches(arm.trace.kernel_keys, pattern)["key"]
    chosen = kernels["key"].is_in(keys.implode()).to_numpy()
    if not chosen.any():
        raise Unpredictable(f"no kernel of it matches {pattern!r}")
    moments = sweep(*arrays(kernels), group=kernels["place"].to_numpy())
    running = np.bincount(moments.first[chosen], minlength=moments.time.size)
    running -= np.bincount(moments.last[chosen], minlength=moments.time.size)
    apart = (moments.depth >= 2) & (np.cumsum(running) > 0)
    edges = np.diff(apart, prepend=False, append=False).nonzero()[0]
    begin, finish = edges[::2], edges[1::2]
    lengths = np.where(apart, moments.length, 0)
    elapsed = np.cumsum(lengths) - lengths
    of_moment = np.empty(moments.time.size, np.int64)
    of_moment[moments.first] = kernels["place"].to_numpy()
    kernels = kernels.select(
        "instance",
        "key",
        duration=DURATION,
        beside=moments.within(2),
        inside=elapsed[moments.last] - elapsed[moments.first],
        stretches=np.searchsorted(begin, moments.last) - np.searchsorted(finish, moments.first, side="right"),
    ).filter(pl.col("inside") > 0)
    need_solo(arm, kernels["key"])
    solo, gap = solo_of_keys(arm), pauses(arm)
    alone = pl.col("duration") - pl.col("beside")
    work = kernels.with_columns(
        ((pl.Series(solo[scenario])[kernels["key"]] - alone) * pl.col("inside") / pl.col("beside")).alias(scenario)
        for scenario in SCENARIOS
    )
    members = work.group_by("instance").agg(pl.col("stretches", *SCENARIOS).sum())
    walls = pl.DataFrame({"instance": of_moment[begin] // DEVICES, "wall": elapsed[finish] - elapsed[begin]})
    walls = walls.group_by(pl.col("instance").cast(pl.UInt32)).agg(pl.col("wall").sum(), episodes=pl.len())
    extra = pl.col("stretches") - pl.col("episodes").cast(pl.Int64)
    changes = members.join(walls, on="instance").select(
        "instance",
        *((pl.col(scenario) - pl.col("wall") + extra * gap[scenario]).alias(scenario) for scenario in SCENARIOS),
    )
    return Change(changes, "what overlapping these kernels gained or lost, and a pause before each kernel set free")
