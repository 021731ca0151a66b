"""Write SQLite exports shaped as nsys writes them, from kernels, calls and ranges given one by one.

Meant for tests, for the sample traces and for benchmarks. Nothing here was recorded on a GPU.
"""

import re
from collections import Counter

from nsys_rows import ExportRows
from nsys_schema import metadata

Dimensions = tuple[int, int, int]

_KERNEL = (
    "start end streamId demangledName shortName mangledName globalPid deviceId contextId correlationId "
    "graphNodeId graphId registersPerThread dynamicSharedMemory gridId gridX gridY gridZ "
    "blockX blockY blockZ clusterX clusterY clusterZ"
)
_COPY = "start end streamId globalPid deviceId correlationId graphNodeId bytes"


def global_id(pid: int, tid: int = 0) -> int:
    """``globalPid`` of a process, or ``globalTid`` of one of its threads, as nsys packs them."""
    return 1 << 48 | pid << 24 | tid


class Export(ExportRows):
    """An nsys export under construction; ``write(path, shuffle=seed)`` puts it into a file.

    Times are integer nanoseconds and are stored as given, also impossible ones. A table without rows is
    not created. A ``correlation`` of None is stored as NULL; ``launch`` hands out fresh ids.
    """

    def __init__(
        self, *, graph_mode: str | None = "Node", product: str = "2026.2.1.210", schema: str = "3.25.0"
    ) -> None:
        super().__init__(metadata(graph_mode, product, schema))
        self._domains: dict[tuple[int, str], int] = {}
        self._issued = Counter[str]()

    def kernel(
        self,
        start: int,
        end: int,
        stream: int = 7,
        name: str = "k",
        *,
        pid: int = 1,
        device: int = 0,
        correlation: int | None = None,
        node: int | None = None,
        graph: int | None = None,
        grid: Dimensions = (1, 1, 1),
        block: Dimensions = (256, 1, 1),
        cluster: Dimensions = (0, 0, 0),
        smem: int = 0,
        mangled: str | None = None,
        short: str | None = None,
        registers: int = 32,
        context: int = 1,
    ) -> None:
        """A kernel row; ``name`` is demangled, ``smem`` dynamic bytes, ``mangled=""`` stores NULL."""
        mangled = name if mangled is None else mangled
        names = (
            self.string(name),
            self.string(base_name(name) if short is None else short),
            self.string(mangled) if mangled else None,
        )
        place = (global_id(pid), device, context, correlation, node, graph)
        shape = (registers, smem, self._next("grid"), *grid, *block, *cluster)
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", _KERNEL, (start, end, stream, *names, *place, *shape))

    def api(
        self,
        start: int,
        end: int,
        name: str,
        correlation: int | None = None,
        *,
        pid: int = 1,
        tid: int | None = None,
        result: int = 0,
    ) -> None:
        """A CUDA runtime (``cuda...``) or driver (``cu...``) call of thread ``tid`` (default: ``pid``)."""
        event_class = int(not name.startswith("cuda"))
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "start end eventClass globalTid correlationId nameId returnValue",
            (start, end, event_class, _thread(pid, tid), correlation, self.string(name), result),
        )

    def launch(
        self,
        start: int,
        end: int,
        name: str = "cudaLaunchKernel_v7000",
        *,
        pid: int = 1,
        tid: int | None = None,
    ) -> int:
        """A launch call with a fresh correlation id (from 1,000,001), returned for its kernels."""
        correlation = 1_000_000 + self._next("correlation")
        self.api(start, end, name, correlation, pid=pid, tid=tid)
        return correlation

    def range(
        self,
        start: int,
        end: int | None,
        name: str,
        *,
        pid: int = 1,
        tid: int | None = None,
        domain: str | None = None,
        registered: bool = False,
        kind: int = 59,
    ) -> None:
        """An NVTX range (59 push/pop, 60 start/end) or mark (34), in the domain of that name.

        ``registered`` stores the name as a string id. The domain's own row appears with its first range.
        """
        thread = _thread(pid, tid)
        domain_id = 0 if domain is None else self.domain(start, domain, pid=pid, tid=tid)
        text, text_id = (None, self.string(name)) if registered else (name, None)
        started_elsewhere = (self._next("range"), thread) if kind == 60 else (None, None)
        self.add(
            "NVTX_EVENTS",
            "start end eventType text textId domainId globalTid rangeId endGlobalTid",
            (start, end, kind, text, text_id, domain_id, thread, *started_elsewhere),
        )

    def domain(self, start: int, name: str, *, pid: int = 1, tid: int | None = None) -> int:
        """Id of the process's NVTX domain ``name``; its creation row is written once, at ``start``."""
        key = (pid, name)
        if key not in self._domains:
            self._domains[key] = 1 + sum(owner == pid for owner, _ in self._domains)
            self.add(
                "NVTX_EVENTS",
                "start eventType text domainId globalTid",
                (start, 75, name, self._domains[key], _thread(pid, tid)),
            )
        return self._domains[key]

    def memcpy(
        self,
        start: int,
        end: int,
        stream: int = 7,
        *,
        bytes: int = 0,
        kind: int = 1,
        pid: int = 1,
        device: int = 0,
        correlation: int | None = None,
        node: int | None = None,
    ) -> None:
        """A memory copy; ``kind`` is 1 host to device, 2 device to host, 8 device to device."""
        row = (start, end, stream, global_id(pid), device, correlation, node, bytes, kind)
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", f"{_COPY} copyKind", row)

    def memset(
        self,
        start: int,
        end: int,
        stream: int = 7,
        *,
        bytes: int = 0,
        pid: int = 1,
        device: int = 0,
        correlation: int | None = None,
        node: int | None = None,
    ) -> None:
        """A memset."""
        row = (start, end, stream, global_id(pid), device, correlation, node, bytes)
        self.add("CUPTI_ACTIVITY_KIND_MEMSET", _COPY, row)

    def synchronize(
        self,
        start: int,
        end: int,
        correlation: int | None = None,
        *,
        stream: int = 7,
        pid: int = 1,
        device: int = 0,
    ) -> None:
        """A stream synchronisation, as the device's record of it."""
        self.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            "start end streamId globalPid deviceId correlationId",
            (start, end, stream, global_id(pid), device, correlation),
        )

    def graph_trace(
        self,
        start: int,
        end: int,
        correlation: int | None,
        graph: int = 1,
        executable: int = 2,
        *,
        stream: int = 7,
        pid: int = 1,
        device: int = 0,
    ) -> None:
        """One graph launch recorded as a whole, its kernels unseen."""
        self.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            "start end streamId globalPid deviceId correlationId graphId graphExecId",
            (start, end, stream, global_id(pid), device, correlation, graph, executable),
        )

    def graph_node(
        self,
        start: int,
        node: int,
        original: int | None = None,
        *,
        pid: int = 1,
        tid: int | None = None,
        name: str = "Graph Node Creation",
    ) -> None:
        """The creation of a graph node, or (``original``) of its clone in an executable graph."""
        self.add(
            "CUDA_GRAPH_NODE_EVENTS",
            "start end eventClass globalTid nameId graphNodeId originalGraphNodeId",
            (start, start, 77, _thread(pid, tid), self.string(name), node, original),
        )

    def graph_event(
        self,
        start: int,
        graph: int,
        *,
        original: int | None = None,
        executable: int | None = None,
        pid: int = 1,
        tid: int | None = None,
    ) -> None:
        """The creation of a graph, of a clone (``original``) or of an executable graph (``executable``)."""
        event_class, name = 95, "Graph Creation"
        if executable is not None:
            event_class, name = 94, "GraphExec Creation"
        elif original is not None:
            event_class, name = 96, "Graph Clone"
        self.add(
            "CUDA_GRAPH_EVENTS",
            "start end eventClass globalTid nameId graphId originalGraphId graphExecId",
            (start, start, event_class, _thread(pid, tid), self.string(name), graph, original, executable),
        )

    def gpu(
        self,
        id: int,
        name: str,
        *,
        compute: tuple[int, int] = (12, 1),
        sms: int = 48,
        memory: int = 0,
        pid: int = 1,
    ) -> None:
        """A GPU with its SM count and memory in bytes, seen by process ``pid`` as CUDA device ``id``."""
        self.add(
            "TARGET_INFO_GPU",
            "id cuDevice pwGpuId name smCount totalMemory computeMajor computeMinor smMajor smMinor",
            (id, id, id, name, sms, memory, *compute, *compute),
        )
        self.add("TARGET_INFO_CUDA_DEVICE", "gpuId cudaId pid numMultiprocessors", (id, id, pid, sms))

    def _next(self, what: str) -> int:
        self._issued[what] += 1
        return self._issued[what]


def base_name(name: str) -> str:
    """A demangled kernel name without return type, namespaces, template arguments and parameters."""
    head = re.split(r"[<(]", name.replace("(anonymous namespace)::", "").removeprefix("void "))[0]
    return head.rpartition("::")[2].strip()


def _thread(pid: int, tid: int | None) -> int:
    return global_id(pid, pid if tid is None else tid)
