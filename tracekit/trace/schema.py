"""The frames of a trace: what each column holds, and which export column it is read from.

Every time is an integer number of nanoseconds on the trace's own clock. A column that an export
lacks is null throughout; a table that an export lacks is an empty frame ("not recorded").
"""

import polars as pl

from tracekit.trace.calls import ROLES

PROCESS_UNIT = 1 << 24
"""``globalPid`` and ``globalTid`` count processes in these units; what is left over is the thread."""

EXECUTABLE_UNIT = 1 << 32
"""Node ids count the executable graph in these units; what is left over is the node."""

LAUNCH = ["process", "correlation"]
"""Work and the call that launched it share these: all nodes of a graph launch have one of each."""

KERNEL_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY_TABLES = {"copy": "CUPTI_ACTIVITY_KIND_MEMCPY", "set": "CUPTI_ACTIVITY_KIND_MEMSET"}
CALL_TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPH_EXECUTION_TABLE = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGE_TABLE = "NVTX_EVENTS"
STRING_TABLE = "StringIds"

LAUNCH_SHAPE = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
    "clusterX", "clusterY", "clusterZ", "dynamicSharedMemory",
)  # fmt: skip
NAME_COLUMNS = ("demangledName", "mangledName", "shortName")

KERNEL_COLUMNS = {
    "start": "start",
    "end": "end",
    "device": "deviceId",
    "stream": "streamId",
    "process": "globalPid",
    "correlation": "correlationId",
    "graph_node": "graphNodeId",
}
"""Frame column -> export column of the kernel instances, before their launch key is numbered."""

KERNELS = pl.Schema(
    {
        "start": pl.Int64,
        "end": pl.Int64,
        "device": pl.Int32,
        "stream": pl.Int64,
        "process": pl.Int64,
        "correlation": pl.Int64,
        "graph_node": pl.Int64,
        "key": pl.UInt32,
        "overlapped": pl.Int64,
    }
)
"""Kernel instances with believable times, by start. ``key`` numbers KERNEL_KEYS; ``overlapped`` is how
long (ns) at least one other kernel ran on the same device; ``graph_node`` is null for an eager launch."""

KERNEL_KEYS = pl.Schema(
    {
        "key": pl.UInt32,
        "name": pl.String,
        "mangled_name": pl.String,
        "short_name": pl.String,
        **dict.fromkeys(LAUNCH_SHAPE, pl.Int64),
    }
)
"""Kernel keys: names and launch configuration (null where the export does not record a dimension)."""

COPIES = pl.Schema(
    {
        "start": pl.Int64,
        "end": pl.Int64,
        "device": pl.Int32,
        "stream": pl.Int64,
        "process": pl.Int64,
        "correlation": pl.Int64,
        "graph_node": pl.Int64,
    }
)
"""Memory copies and sets."""

GRAPH_EXECUTIONS = pl.Schema(
    {
        "start": pl.Int64,
        "end": pl.Int64,
        "device": pl.Int32,
        "stream": pl.Int64,
        "process": pl.Int64,
        "correlation": pl.Int64,
        "graph": pl.Int64,
        "executable": pl.Int64,
    }
)
"""Graph launches recorded as one interval each, their kernels hidden inside."""

ROLE = pl.Enum([*ROLES, "other"])
"""What an API call does."""

CALLS = pl.Schema(
    [
        ("start", pl.Int64()),
        ("end", pl.Int64()),
        ("process", pl.Int64()),
        ("thread", pl.Int64()),
        ("correlation", pl.Int64()),
        ("role", ROLE),
        ("failed", pl.Boolean()),
    ]
)
"""CUDA API calls of the host. ``thread`` is the export's globalTid."""

RANGES = pl.Schema(
    {
        "start": pl.Int64,
        "end": pl.Int64,
        "process": pl.Int64,
        "thread": pl.Int64,
        "name": pl.String,
        "domain": pl.String,
        "nested": pl.Boolean,
    }
)
"""Closed NVTX ranges. ``nested``: pushed and popped on one thread (else started and ended anywhere);
``domain`` is null for the default domain."""

NODE_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
"""Where graph node events are: in the first up to 2026, in the second, with node columns, up to 2023."""

NODE_EVENTS = pl.Schema(
    {
        "start": pl.Int64,
        "process": pl.Int64,
        "thread": pl.Int64,
        "node": pl.Int64,
        "original": pl.Int64,
    }
)
"""Creations and clones of graph nodes; ``original`` is null for a creation."""
