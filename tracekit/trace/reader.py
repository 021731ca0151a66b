"""An export as typed frames, each read when it is first asked for."""

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
import polars as pl

from tracekit.intervals import overlap_by_device
from tracekit.trace import schema
from tracekit.trace.cache import FrameCache
from tracekit.trace.calls import roles_by_string
from tracekit.trace.facts import Facts, read_facts
from tracekit.trace.keys import number_keys
from tracekit.trace.ranges import closed_ranges
from tracekit.trace.tables import Export
from tracekit.trace.validity import believable

T = TypeVar("T")


class Trace:
    """One export. Frames follow ``tracekit.trace.schema``; only what is asked for is read.

    ``label`` is the path as the user gave it. Errors of reading surface as ``UnusableInput``.
    """

    def __init__(self, label: str, open_export: Callable[[], Export], cache: FrameCache) -> None:
        self.label = label
        self._open = open_export
        self._cache = cache

    @property
    def stem(self) -> str:
        """The file's name without its ending, for headings."""
        return Path(self.label).name.removesuffix(".gz").rsplit(".", 1)[0]

    @cached_property
    def export(self) -> Export:
        """The opened file; not opened at all while the cache answers."""
        return self._open()

    @cached_property
    def facts(self) -> Facts:
        """Versions, GPUs, recording options and row counts."""
        return self.kept("facts", Facts, lambda: read_facts(self.export))

    def kept(self, name: str, kind: type[T], build: Callable[[], T]) -> T:
        """A value worked out from this trace, kept with its frames under ``name``."""
        return self._cache.value(name, kind, lambda: (build(), not self.unreadable.total()))

    @cached_property
    def strings(self) -> pl.DataFrame:
        """Columns ``id``, ``value``."""
        frame = self.export.read(schema.STRING_TABLE, {"id": pl.Int64, "value": pl.String})
        return frame.unique("id", keep="first", maintain_order=True)

    def _frames(self, names: tuple[str, ...], read: Callable[[], tuple[pl.DataFrame, ...]]) -> dict[str, pl.DataFrame]:
        def build() -> tuple[dict[str, pl.DataFrame], bool]:
            frames = dict(zip(names, read(), strict=True))
            # What could not be read is counted while reading, and must be said every time.
            return frames, not self.unreadable.total()

        return self._cache.frames(names, build)

    @cached_property
    def _kernel_frames(self) -> dict[str, pl.DataFrame]:
        return self._frames(("kernels", "kernel_keys", "depths", "unbelievable"), self._read_kernels)

    @property
    def kernels(self) -> pl.DataFrame:
        """Kernel instances with believable times, by start: schema.KERNELS."""
        return self._kernel_frames["kernels"]

    @property
    def kernel_keys(self) -> pl.DataFrame:
        """Names and launch configurations: schema.KERNEL_KEYS."""
        return self._kernel_frames["kernel_keys"]

    @property
    def depths(self) -> pl.DataFrame:
        """How long (``time``, ns) so many kernels (``depth``) ran at once on each ``device``."""
        return self._kernel_frames["depths"]

    @property
    def unbelievable(self) -> dict[str, int]:
        """Reason -> kernel rows left out because their times cannot be true."""
        frame = self._kernel_frames["unbelievable"]
        return dict(zip(frame["reason"], frame["count"], strict=True))

    def _read_kernels(self) -> tuple[pl.DataFrame, ...]:
        columns = dict.fromkeys((*schema.KERNEL_COLUMNS.values(), *schema.NAME_COLUMNS, *schema.LAUNCH_SHAPE), pl.Int64)
        rows = self.export.read(schema.KERNEL_TABLE, columns).rename(
            {source: column for column, source in schema.KERNEL_COLUMNS.items()}
        )
        rows, keys = number_keys(rows, self.strings)
        rows, reasons = believable(rows, self._launched_before_zero)
        # In steps, so that no more than two states of the rows are held at once.
        rows = _by_start(rows)
        rows = rows.with_columns(
            pl.col("device").fill_null(0).cast(pl.Int32),
            pl.col("process") // schema.PROCESS_UNIT,
            pl.when(pl.col("graph_node") != 0).then("graph_node").alias("graph_node"),
        )
        rows = self._fill_sole_process(rows)
        overlapped, depths = overlap_by_device(rows)
        rows = rows.with_columns(overlapped)
        left_out = pl.DataFrame(list(reasons.items()), schema={"reason": pl.String, "count": pl.Int64}, orient="row")
        return rows.select(list(schema.KERNELS)).cast(schema.KERNELS), keys, depths, left_out

    def _launched_before_zero(self) -> pl.DataFrame:
        """Correlation ids of API calls made at or before the clock's zero, for kernels that start there."""
        calls = self.export.read(schema.CALL_TABLE, {"start": pl.Int64, "correlationId": pl.Int64})
        return calls.filter(pl.col("start") <= 0).select(correlation="correlationId").drop_nulls().unique()

    def _fill_sole_process(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Where GPU rows name no process and only one made API calls, it is that one."""
        if rows.is_empty() or rows["process"].null_count() < rows.height:
            return rows
        return rows.with_columns(process=pl.lit(self._sole_process, pl.Int64))

    @cached_property
    def _sole_process(self) -> int | None:
        threads = self.export.read(schema.CALL_TABLE, {"globalTid": pl.Int64})["globalTid"]
        processes = (threads // schema.PROCESS_UNIT).drop_nulls().unique()
        return processes[0] if processes.len() == 1 else None

    @cached_property
    def copies(self) -> pl.DataFrame:
        """Memory copies and sets with believable times: schema.COPIES."""
        return self._frames(("copies",), self._read_copies)["copies"]

    def _read_copies(self) -> tuple[pl.DataFrame]:
        columns = dict.fromkeys(schema.KERNEL_COLUMNS.values(), pl.Int64)
        frames = [self.export.read(table, columns) for table in schema.COPY_TABLES.values()]
        rows = pl.concat(frames).rename({source: column for column, source in schema.KERNEL_COLUMNS.items()})
        return (self._gpu_rows(rows, schema.COPIES),)

    @cached_property
    def graph_executions(self) -> pl.DataFrame:
        """Graph launches recorded as one interval each: schema.GRAPH_EXECUTIONS."""
        return self._frames(("graph_executions",), self._read_graph_executions)["graph_executions"]

    def _read_graph_executions(self) -> tuple[pl.DataFrame]:
        names = {**schema.KERNEL_COLUMNS, "graph": "graphId", "executable": "graphExecId"}
        del names["graph_node"]
        rows = self.export.read(schema.GRAPH_EXECUTION_TABLE, dict.fromkeys(names.values(), pl.Int64))
        rows = rows.rename({source: column for column, source in names.items()})
        return (self._gpu_rows(rows, schema.GRAPH_EXECUTIONS),)

    def _gpu_rows(self, rows: pl.DataFrame, frame_schema: pl.Schema) -> pl.DataFrame:
        rows, _ = believable(rows, self._launched_before_zero)
        rows = rows.with_columns(pl.col("device").fill_null(0).cast(pl.Int32), pl.col("process") // schema.PROCESS_UNIT)
        rows = self._fill_sole_process(rows).select(list(frame_schema)).cast(frame_schema)
        return rows.sort(pl.all())

    @cached_property
    def calls(self) -> pl.DataFrame:
        """CUDA API calls of the host: schema.CALLS."""
        return self._frames(("calls",), self._read_calls)["calls"]

    def _read_calls(self) -> tuple[pl.DataFrame]:
        columns = {
            "start": pl.Int64, "end": pl.Int64, "globalTid": pl.Int64,
            "correlationId": pl.Int64, "nameId": pl.Int64, "returnValue": pl.Int64,
        }  # fmt: skip
        rows = self.export.read(schema.CALL_TABLE, columns).drop_nulls(["start", "end"])
        roles = roles_by_string(self.strings)
        calls = rows.select(
            "start",
            "end",
            process=pl.col("globalTid") // schema.PROCESS_UNIT,
            thread="globalTid",
            correlation="correlationId",
            role=pl.col("nameId").replace_strict(
                roles["id"], roles["role"], default="other", return_dtype=schema.CALLS["role"]
            ),
            failed=pl.col("returnValue").fill_null(0) != 0,
        )
        return (calls,)

    @cached_property
    def node_events(self) -> pl.DataFrame:
        """Creations and clones of graph nodes: schema.NODE_EVENTS."""
        return self._frames(("node_events",), self._read_node_events)["node_events"]

    def _read_node_events(self) -> tuple[pl.DataFrame]:
        columns = {"start": pl.Int64, "globalTid": pl.Int64, "graphNodeId": pl.Int64, "originalGraphNodeId": pl.Int64}
        tables = [table for table in schema.NODE_TABLES if "graphNodeId" in self.export.columns(table)]
        rows = pl.concat([self.export.read(table, columns) for table in tables or schema.NODE_TABLES[:1]])
        events = rows.select(
            "start",
            process=pl.col("globalTid") // schema.PROCESS_UNIT,
            thread="globalTid",
            node="graphNodeId",
            original=pl.when(pl.col("originalGraphNodeId") != 0).then("originalGraphNodeId"),
        ).drop_nulls(["start", "node"])
        return (events.cast(schema.NODE_EVENTS).sort(pl.all(), nulls_last=True),)

    @cached_property
    def ranges(self) -> pl.DataFrame:
        """Closed NVTX ranges: schema.RANGES."""
        return self._frames(("ranges",), self._read_ranges)["ranges"]

    def _read_ranges(self) -> tuple[pl.DataFrame]:
        return (closed_ranges(self.export, self.strings),)

    @property
    def unreadable(self) -> Counter[tuple[str, str]]:
        """(table, column) -> values of another type than the column's, among what was read."""
        return self.export.unreadable if "export" in self.__dict__ else Counter()

    def close(self) -> None:
        """Release the file."""
        if "export" in self.__dict__:
            self.export.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _by_start(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort kernel rows by start, and equal ones in an order of their own: the file's order of rows means nothing."""
    order = np.argsort(rows["start"].to_numpy())
    start = rows["start"].to_numpy()[order]
    equal = np.zeros(start.size + 1, np.bool_)
    equal[1:-1] = start[1:] == start[:-1]
    tied = np.flatnonzero(equal[1:] | equal[:-1])
    columns = ["start", "end", "device", "stream", "key", "process", "correlation", "graph_node"]
    settled = rows[order[tied]].with_row_index("_place").sort(columns)["_place"].to_numpy()
    order[tied] = order[tied][settled]
    return rows[order]
