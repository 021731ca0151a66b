"""Streams of each device: how busy they are, and which run at the same time."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.analysis.overlap.pairs import crossings, meetings
from tracekit.analysis.results import Stream, StreamPair
from tracekit.analysis.rows import process_id
from tracekit.intervals import arrays, sweep

STREAM = ["process", "stream"]
"""A stream is known by its process and its id: ids of different processes have nothing in common."""


class Streams(NamedTuple):
    """The streams of one device.

    ``ids`` has ``number``, ``process``, ``stream`` and ``rows``; ``busy`` the disjoint stretches
    (``number``, ``start``, ``end``) in which each runs; ``deep`` the stretches (``start``, ``end``) in which
    two or more kernels of the device run.
    """

    device: int
    ids: pl.DataFrame
    busy: pl.DataFrame
    deep: pl.DataFrame


def streams_by_device(kernels: pl.DataFrame) -> list[Streams]:
    """The streams of every device, by device."""
    return [
        _streams(int(device), rows) for (device,), rows in sorted(kernels.partition_by("device", as_dict=True).items())
    ]


def _streams(device: int, kernels: pl.DataFrame) -> Streams:
    ids = (
        kernels.group_by(STREAM).agg(rows=pl.len()).sort(STREAM, nulls_last=True).with_row_index("number")
    ).with_columns(pl.col("number").cast(pl.Int64))
    numbered = kernels.join(
        ids.select("number", *STREAM), on=STREAM, how="left", nulls_equal=True, maintain_order="left"
    )
    running = sweep(*arrays(kernels))
    begin, finish = running.stretches(2)
    deep = pl.DataFrame({"start": running.time[begin], "end": running.time[finish]})
    return Streams(device, ids, merged(numbered, "number", 1), deep)


def merged(intervals: pl.DataFrame, group: str, least: int) -> pl.DataFrame:
    """Stretches (``group``, ``start``, ``end``) of each group with at least ``least`` of its intervals running."""
    groups = intervals[group].to_numpy()
    moments = sweep(*arrays(intervals), group=groups)
    begin, finish = moments.stretches(least)
    of_moment = np.empty(moments.time.size, np.int64)
    of_moment[moments.first] = groups
    of_moment[moments.last] = groups
    return pl.DataFrame({group: of_moment[begin], "start": moments.time[begin], "end": moments.time[finish]})


def stream_lines(devices: list[Streams]) -> list[Stream]:
    """One line a stream."""
    return [line for streams in devices for line in _lines(streams)]


def _lines(streams: Streams) -> list[Stream]:
    length = (pl.col("end") - pl.col("start")).sum()
    busy = streams.busy.group_by("number").agg(busy=length)
    beside = crossings(streams.busy, streams.deep).group_by("number").agg(overlapped=pl.col("overlap").sum())
    rows = streams.ids.join(busy, on="number", how="left").join(beside, on="number", how="left").sort("number")
    return [
        Stream(
            device=streams.device,
            process=process_id(row["process"]),
            stream=row["stream"],
            kernel_rows=row["rows"],
            busy_ns=row["busy"] or 0,
            overlapped_ns=row["overlapped"] or 0,
        )
        for row in rows.iter_rows(named=True)
    ]


def stream_pairs(devices: list[Streams]) -> list[StreamPair]:
    """Pairs of streams of one device and how long kernels ran on both at once, longest first."""
    pairs = [pair for streams in devices for pair in _pairs(streams)]
    return sorted(pairs, key=lambda pair: (-(pair.overlap_ns or 0), pair.device))


def _pairs(streams: Streams) -> list[StreamPair]:
    busy = streams.busy.sort("start", "end", "number")
    number = busy["number"].to_numpy()
    sums = [pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64, "overlap": pl.Int64})]
    for left, right, overlap in meetings(busy):
        one, other = number[left], number[right]
        met = pl.DataFrame({"a": np.minimum(one, other), "b": np.maximum(one, other), "overlap": overlap})
        sums.append(met.group_by("a", "b").agg(pl.col("overlap").sum()))
    ids = {row["number"]: (process_id(row["process"]), row["stream"]) for row in streams.ids.iter_rows(named=True)}
    total = pl.concat(sums).group_by("a", "b").agg(pl.col("overlap").sum()).sort("a", "b")
    return [
        StreamPair(
            device=streams.device,
            process_a=ids[a][0],
            a=ids[a][1],
            process_b=ids[b][0],
            b=ids[b][1],
            overlap_ns=overlap,
        )
        for a, b, overlap in total.iter_rows()
    ]
