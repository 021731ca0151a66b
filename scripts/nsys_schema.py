"""Tables of an nsys 2026 SQLite export (schema 3.25), as data.

A column is written ``name``, then ``:TEXT`` or ``:REAL`` unless it is an integer, then ``!`` where it
is NOT NULL, then ``=literal`` for what an insert that does not name the column puts there.
"""

import sqlite3
from collections.abc import Iterable, Sequence

_ENUM = "id! name:TEXT label:TEXT"
_ACTIVITY = "start! end! deviceId!=0 contextId!=1 greenContextId=0 streamId!=7 correlationId globalPid"
_GRAPH_EVENT = "start! end! eventClass! globalTid nameId!"

TABLES: dict[str, str] = {
    "StringIds": "id! value:TEXT!",
    "META_DATA_CAPTURE": "name:TEXT! value:TEXT",
    "META_DATA_EXPORT": "name:TEXT! value:TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"""{_ACTIVITY}
        demangledName! shortName! mangledName launchType=1 cacheConfig=1 registersPerThread!=32
        gridX!=1 gridY!=1 gridZ!=1 blockX!=256 blockY!=1 blockZ!=1
        staticSharedMemory!=0 dynamicSharedMemory!=0 localMemoryPerThread!=0 localMemoryTotal!=0
        gridId!=0 sharedMemoryExecuted=32768 graphNodeId sharedMemoryLimitConfig=0
        qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX=0 clusterY=0 clusterZ=0
        clusterSchedulingPolicy=1 maxPotentialClusterSize=0 maxActiveClusters=0
        sharedMemoryRequestedPercentage tensorSizeMinusOneElements:TEXT!='[]'""",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"""{_ACTIVITY} bytes!=0 copyKind!=1
        deprecatedSrcId srcKind=0 dstKind=2 srcDeviceId srcContextId dstDeviceId dstContextId
        migrationCause graphNodeId virtualAddress copyCount=1""",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_ACTIVITY} value!=0 bytes!=0 graphNodeId memKind=2",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"""{_ACTIVITY}
        deprecatedSyncType syncType!=3 eventId!=4294967295 eventSyncId=0""",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_ACTIVITY} graphId! graphExecId!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": """start! end! eventClass!=0 globalTid correlationId nameId!
        returnValue!=0 callchainId""",
    "CUDA_GRAPH_NODE_EVENTS": f"{_GRAPH_EVENT} graphNodeId! originalGraphNodeId",
    "CUDA_GRAPH_EVENTS": f"{_GRAPH_EVENT} graphId originalGraphId graphExecId",
    "NVTX_EVENTS": """start! end eventType!=59 rangeId category color text:TEXT globalTid endGlobalTid
        textId domainId=0 uint64Value int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL
        jsonTextId jsonText:TEXT binaryData:TEXT""",
    "TARGET_INFO_GPU": """vmId!=281474976710656 id! name:TEXT busLocation:TEXT='' isDiscrete=1 l2CacheSize=0
        totalMemory=0 memoryBandwidth=0 clockRate=0 smCount=0 pwGpuId=0 uuid:TEXT='' luid=0 chipName:TEXT=''
        cuDevice=0 ctxswDevPath:TEXT='' ctrlDevPath:TEXT='' revision=0 nodeMask=1 constantMemory=65536
        maxIPC=0 maxRegistersPerBlock=65536 maxShmemPerBlock=49152 maxShmemPerBlockOptin=101376
        maxShmemPerSm=102400 maxRegistersPerSm=65536 threadsPerWarp=32 asyncEngines=0 maxWarpsPerSm=48
        maxBlocksPerSm=24 maxThreadsPerBlock=1024 maxBlockDimX=1024 maxBlockDimY=1024 maxBlockDimZ=64
        maxGridDimX=2147483647 maxGridDimY=65535 maxGridDimZ=65535 computeMajor=0 computeMinor=0
        smMajor=0 smMinor=0""",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:TEXT='' numMultiprocessors=0",
}

ENUMS: dict[str, dict[int, tuple[str, str]]] = {
    "ENUM_NSYS_EVENT_TYPE": {
        id: (name, name)
        for id, name in (
            (33, "NvtxCategory"),
            (34, "NvtxMark"),
            (39, "NvtxThread"),
            (59, "NvtxPushPopRange"),
            (60, "NvtxStartEndRange"),
            (75, "NvtxDomainCreate"),
            (76, "NvtxDomainDestroy"),
        )
    },
    "ENUM_NSYS_EVENT_CLASS": {
        0: ("TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        1: ("TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        77: ("TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"),
        94: ("TRACE_PROCESS_EVENT_CUDA_GRAPHEXEC_CREATION", "CUDA graph exec creation"),
        95: ("TRACE_PROCESS_EVENT_CUDA_GRAPH_CREATION", "CUDA graph creation"),
        96: ("TRACE_PROCESS_EVENT_CUDA_GRAPH_CLONE", "CUDA graph clone"),
    },
    "ENUM_CUDA_MEMCPY_OPER": {
        0: ("CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        1: ("CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        2: ("CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        8: ("CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        10: ("CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
    },
    "ENUM_CUDA_MEM_KIND": {
        0: ("CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        1: ("CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        2: ("CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
        4: ("CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"),
    },
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": {
        0: ("CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"),
        1: ("CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"),
    },
    "ENUM_CUPTI_SYNC_TYPE": {
        1: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        2: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"),
        3: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        4: ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    },
}


def metadata(graph_mode: str | None, product: str, schema: str) -> dict[str, list[tuple[str, str]]]:
    """Rows of the two META_DATA tables; a ``graph_mode`` of None leaves the graph tracing mode out."""
    mode = [("CUDA_GRAPH_TRACE_OPTIONS:MODE", graph_mode)] if graph_mode else []
    capture = [*mode, ("CUDA_FLUSH_PERIODICALLY", "true"), ("CUDA_SKIP_SOME_API_CALLS", "true")]
    parts = zip(("MAJOR", "MINOR", "MICRO"), schema.split("."), strict=True)
    export = [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", product),
        ("EXPORT_PRODUCT_DATE", ".".join(product.split(".")[:2])),
        ("EXPORT_SCHEMA_VERSION", schema),
        *((f"EXPORT_SCHEMA_VERSION_{part}", value) for part, value in parts),
        ("EXPORT_PLATFORM", "linux-desktop"),
        ("EXPORT_PARAM_EXPORT_TYPE", "SQLite"),
        ("EXPORT_PARAM_LAZY", "true"),
    ]
    return {"META_DATA_CAPTURE": capture, "META_DATA_EXPORT": export}


def columns(table: str) -> tuple[str, ...]:
    """Column names of ``table`` in export order; KeyError for a table not listed here."""
    return tuple(name for name, _, _ in _parsed(table))


def create_table(connection: sqlite3.Connection, table: str) -> None:
    """Create ``table`` (one of ``TABLES`` or ``ENUMS``) in ``connection``."""
    fields = (f'"{name}" {declaration}' for name, declaration, _ in _parsed(table))
    connection.execute(f"CREATE TABLE {table} ({', '.join(fields)})")


def insert(
    connection: sqlite3.Connection,
    table: str,
    given: Sequence[str],
    rows: Iterable[Sequence[int | float | str | None]],
) -> None:
    """Insert ``rows`` holding the columns ``given``; the others take their defaults, else NULL."""
    defaults = {name: default for name, _, default in _parsed(table) if name not in given}
    names = ", ".join(f'"{name}"' for name in (*given, *defaults))
    values = ", ".join((*("?" * len(given)), *defaults.values()))
    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({values})", rows)


def _parsed(table: str) -> list[tuple[str, str, str]]:
    """Name, SQL declaration and default literal of each column."""
    parsed = []
    for column in (_ENUM if table in ENUMS else TABLES[table]).split():
        field, _, default = column.partition("=")
        name, _, kind = field.rstrip("!").partition(":")
        declaration = (kind or "INTEGER") + " NOT NULL" * field.endswith("!")
        if name == "id" and (table == "StringIds" or table in ENUMS):
            declaration += " PRIMARY KEY"
        parsed.append((name, declaration, default or "NULL"))
    return parsed
