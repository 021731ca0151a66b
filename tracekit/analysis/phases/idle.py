"""Why the GPU did nothing: each pause is charged to what its end waited for.

A pause ends when some next work begins. Once the call that launched it has returned, the device has all it needs,
and the rest of the pause is the device's own (a dependency, its latency). Before that the launching thread is what
the GPU waits for: it is inside calls that launch, inside calls that prepare, or does something else.
"""

import numpy as np
import polars as pl

from tracekit.analysis.phases.call_time import CallTime
from tracekit.analysis.phases.instances import Work
from tracekit.intervals import Ints
from tracekit.trace.calls import SETUP_ROLES, WORK_ROLES
from tracekit.trace.launches import launch_calls
from tracekit.trace.schema import ROLE

CAUSES = ("gaps", "launch_bound", "setup", "host_work")
"""The next work had been launched; its thread was inside launch calls; inside calls that set up; in neither."""

IDLE_CAUSES = pl.Schema({"instance": pl.UInt32, **dict.fromkeys((*CAUSES, "unattributed", "no_call"), pl.Int64)})
"""Idle time (ns) of phase instances: CAUSES and ``unattributed`` add up to phase time minus active time.

``unattributed`` is what is left: pauses whose launch call is not recorded and time in which only work of other
instances ran. It is negative where devices work at once, or work began before the phase time did, as active time
adds these up. ``no_call`` is the part of the idle time, by whatever cause, in which the process that launched what
ended it made no CUDA call on any thread.
"""

NO_PROCESS = -1

EVERY_CALL = tuple(ROLE.categories)


def idle_causes(work: Work, of_threads: CallTime, timed: pl.DataFrame) -> pl.DataFrame:
    """IDLE_CAUSES of phase instances.

    ``of_threads`` are the calls by thread. ``timed`` has ``instance``, ``last`` and ``active`` (``instance_figures``)
    and the phase ``time`` (ns) on some basis: each instance lasts until ``last``. A device is idle while it runs no
    kernel, copy or graph, whoever launched it; an instance that uses several is idle while none of them works.
    """
    columns = ["start", "end", "device", "process", "correlation", "instance"]
    everything = pl.concat([frame.select(columns) for frame in work])
    everything = everything[np.argsort(everything["start"].to_numpy(), kind="stable")]
    of_processes = of_threads.of_processes()
    rows = timed.select("instance", "time", "active", since=pl.col("last") - pl.col("time"), until="last")
    found = [
        _charged(everything.filter(pl.col("device").is_in(devices)), of_threads, of_processes, instances)
        for devices, instances in _by_devices(everything, rows)
    ]
    return pl.concat([pl.DataFrame(schema=IDLE_CAUSES), *found]).sort("instance")


def _by_devices(work: pl.DataFrame, rows: pl.DataFrame) -> list[tuple[list[int], pl.DataFrame]]:
    """The instances that use the same devices."""
    devices = work["device"].unique().sort().to_list()
    if len(devices) == 1:
        return [(devices, rows)]
    used = work.group_by("instance").agg(devices=pl.col("device").unique().sort())
    groups = rows.join(used, on="instance").partition_by("devices", maintain_order=True)
    return [(group["devices"][0].to_list(), group) for group in groups]


def _charged(work: pl.DataFrame, of_threads: CallTime, of_processes: CallTime, rows: pl.DataFrame) -> pl.DataFrame:
    since, until = rows["since"].to_numpy(), rows["until"].to_numpy()
    start, end, ended_by = pauses(work["start"].to_numpy(), work["end"].to_numpy(), since)
    next_work = work.select("start", "process", "correlation")[ended_by]
    parts = _parts(start, end, next_work, of_threads)
    process = next_work["process"].fill_null(NO_PROCESS).to_numpy()
    parts["no_call"] = end - start - of_processes.within(process, start, end, [EVERY_CALL])[0]
    # No pause reaches beyond the end of a phase time, which is the end of some work.
    first, last = np.searchsorted(start, since), np.searchsorted(start, until)
    sums = {}
    for cause, part in parts.items():
        elapsed = np.concatenate([[0], np.cumsum(part)])
        sums[cause] = elapsed[last] - elapsed[first]
    charged = rows.select("instance", "time", "active").with_columns(**{name: pl.Series(v) for name, v in sums.items()})
    return (
        charged.with_columns(unattributed=pl.col("time") - pl.col("active") - pl.sum_horizontal(CAUSES))
        .select(list(IDLE_CAUSES))
        .cast(IDLE_CAUSES)
    )


def pauses(start: Ints, end: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Stretches in which no interval runs, up to the last one: their starts and ends, and which interval ends each.

    The intervals are by start. Pauses are cut at ``cuts``, of which the first may come before every interval.
    """
    origin = min(int(cuts.min(initial=start[0])), int(start[0])) if start.size else 0
    reached = np.maximum.accumulate(np.concatenate([[origin], end]))[:-1]
    ended_by = np.flatnonzero(start > reached)
    begin, finish = reached[ended_by], start[ended_by]
    holds = np.searchsorted(finish, cuts, side="right")
    inside = holds < begin.size
    inside[inside] = begin[holds[inside]] < cuts[inside]
    begins = np.concatenate([begin, cuts[inside]])
    pause = np.concatenate([np.arange(begin.size), holds[inside]])
    order = np.argsort(begins, kind="stable")
    begins, pause = begins[order], pause[order]
    following = np.append(begins[1:], np.iinfo(np.int64).max)
    return begins, np.minimum(following, finish[pause]), ended_by[pause]


def _parts(start: Ints, end: Ints, next_work: pl.DataFrame, time: CallTime) -> dict[str, Ints]:
    """The time of each pause by cause; none where the call that ended it is not known, or is not its cause."""
    launch = time.calls.select(pl.col("start", "end", "thread").gather(launch_calls(next_work, time.calls)))
    possible = (launch["start"] <= next_work["start"]) & launch["thread"].is_not_null()
    known = possible.fill_null(False).to_numpy()
    returned = np.clip(launch["end"].fill_null(0).to_numpy(), start, end)
    waits = np.flatnonzero(known & (returned > start))
    thread = launch["thread"].gather(waits).to_numpy()
    launching, preparing = np.zeros((2, start.size), np.int64)
    launching[waits], preparing[waits] = time.within(thread, start[waits], returned[waits], (WORK_ROLES, SETUP_ROLES))
    parts = (end - returned, launching, preparing, returned - start - launching - preparing)
    return {cause: np.where(known, part, 0) for cause, part in zip(CAUSES, parts, strict=True)}
