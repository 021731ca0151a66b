"""What a trace holds of one graph launch beyond the frames: registers, static shared memory, sizes of copies."""

from typing import NamedTuple

import polars as pl

from tracekit.graph.replays import COPY, Replays
from tracekit.trace import schema
from tracekit.trace.reader import Trace

_KERNEL = ("registersPerThread", "staticSharedMemory", "localMemoryPerThread")
_COPY = ("bytes", "copyKind", "value")


class LaunchRow(NamedTuple):
    """One recorded node of a launch. ``key`` is its kernel key or COPY; ``stream`` as the trace numbers it.

    What the export does not hold is None; ``is_set`` tells a memset from a copy.
    """

    key: int
    start: int
    end: int
    stream: int | None
    registers: int | None = None
    static_smem: int | None = None
    local: int | None = None
    is_set: bool = False
    bytes: int | None = None
    copy_kind: int | None = None
    value: int | None = None


def rows_of_launch(trace: Trace, graph: Replays, row: int) -> list[LaunchRow]:
    """The nodes of a graph's launch, in the order of its columns."""
    correlation = int(graph.correlation[row])
    columns = ["start", "end", "stream", "graph_node"]
    of_launch = pl.col("correlation").eq(correlation) & pl.col("process").eq_missing(pl.lit(graph.process, pl.Int64))
    rows = (
        pl.concat(
            [
                trace.kernels.filter(of_launch).select(*columns, key=pl.col("key").cast(pl.Int64)),
                trace.copies.filter(of_launch).select(*columns, key=pl.lit(COPY, pl.Int64)),
            ]
        )
        .drop_nulls("graph_node")
        .sort("graph_node", "start", "end", nulls_last=True)
    )
    recorded = _recorded(trace, correlation, graph.process)
    rows = rows.join(recorded, on=["graph_node", "start"], how="left", maintain_order="left")
    return [
        LaunchRow(
            key=line["key"],
            start=line["start"],
            end=line["end"],
            stream=line["stream"],
            registers=_within(line["registersPerThread"], 1, 255),
            static_smem=_within(line["staticSharedMemory"], 0, 48 << 10),
            local=_within(line["localMemoryPerThread"], 0, 1 << 20),
            is_set=bool(line["is_set"]),
            bytes=_within(line["bytes"], 0, 1 << 40),
            copy_kind=line["copyKind"],
            value=line["value"],
        )
        for line in rows.iter_rows(named=True)
    ]


def _recorded(trace: Trace, correlation: int, process: int | None) -> pl.DataFrame:
    """The columns that the frames leave out, by ``graph_node`` and ``start``, a row each."""
    tables = {
        schema.KERNEL_TABLE: (_KERNEL, False),
        schema.COPY_TABLES["copy"]: (_COPY[:2], False),
        schema.COPY_TABLES["set"]: (("bytes", "value"), True),
    }
    found = []
    for table, (columns, is_set) in tables.items():
        names = ["start", "graphNodeId", "correlationId", "globalPid", *columns]
        rows = trace.export.read(table, dict.fromkeys(names, pl.Int64))
        same = (pl.col("globalPid") // schema.PROCESS_UNIT).eq(process) if process is not None else pl.lit(True)
        rows = rows.filter(pl.col("correlationId").eq(correlation) & same.fill_null(True))
        found.append(
            rows.select(
                "start",
                graph_node="graphNodeId",
                is_set=pl.lit(is_set),
                **{name: pl.col(name) if name in columns else pl.lit(None, pl.Int64) for name in (*_KERNEL, *_COPY)},
            )
        )
    return pl.concat(found).unique(["graph_node", "start"], keep="first", maintain_order=True)


def _within(value: int | None, low: int, high: int) -> int | None:
    """A value that can be; others are as good as not recorded."""
    return value if value is not None and low <= value <= high else None
