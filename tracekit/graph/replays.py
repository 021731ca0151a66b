"""Graph launches of a trace, those that ran the same kernels put together."""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracekit.intervals import Ints
from tracekit.trace.schema import EXECUTABLE_UNIT, LAUNCH

COPY = -1
"""Key of a node that is a memory copy or set."""


class Replays(NamedTuple):
    """Launches that ran kernels of the same names in the same order of nodes.

    ``start``, ``end``, ``key`` (COPY: a copy or set) and ``device`` hold a row for each launch, by time, and a
    column for each node, in the order of node ids. ``launch`` numbers the launches among all of the trace, by time,
    from 1; ``correlation`` and ``executable`` are theirs.
    """

    process: int | None
    launch: Ints
    correlation: Ints
    executable: Ints
    start: Ints
    end: Ints
    key: Ints
    device: Ints

    @property
    def size(self) -> int:
        """Nodes of a launch."""
        return int(self.start.shape[1])


def find_replays(kernels: pl.DataFrame, copies: pl.DataFrame, names: pl.Series) -> list[Replays]:
    """The graph launches among kernels and copies (schema.KERNELS, schema.COPIES), in order of their first launch.

    ``names`` has the name of each kernel key. A launch is what shares a process and a correlation id; the node ids of
    an executable begin with its number. An updated executable keeps its ids while it runs other kernels, and a
    graph may be instantiated again: what runs the same kernels in the same order counts as one graph.
    """
    columns = ["start", "end", "device", "graph_node", *LAUNCH]
    rows = pl.concat(
        [
            kernels.select(*columns, key=pl.col("key").cast(pl.Int64)),
            copies.select(*columns, key=pl.lit(COPY, pl.Int64)),
        ]
    ).drop_nulls(["graph_node", "correlation"])
    if rows.is_empty():
        return []
    number = names.rank("dense").cast(pl.Int64).to_numpy()
    key = rows["key"].to_numpy()
    word = np.full(key.size, COPY)
    word[key != COPY] = number[key[key != COPY]]
    # A node in the body of a loop has several rows.
    rows = rows.with_columns(word=word).sort(*LAUNCH, "graph_node", "start", "end", nulls_last=True)
    launches = (
        rows.group_by(LAUNCH, maintain_order=True)
        .agg(
            pl.col("start", "end", "key", "device"),
            sequence=pl.col("word").cast(pl.String).str.join(","),
            first=pl.col("start").min(),
            executable=pl.col("graph_node").min() // EXECUTABLE_UNIT,
        )
        .sort("first", *LAUNCH, nulls_last=True)
        .with_row_index("launch", 1)
    )
    return [_replays(same) for same in launches.partition_by(["process", "sequence"], maintain_order=True)]


def _replays(launches: pl.DataFrame) -> Replays:
    columns = {
        name: launches[name].explode().to_numpy().reshape(launches.height, -1).astype(np.int64)
        for name in ("start", "end", "key", "device")
    }
    numbers = {name: launches[name].to_numpy().astype(np.int64) for name in ("launch", "correlation", "executable")}
    return Replays(launches["process"][0], *numbers.values(), **columns)
