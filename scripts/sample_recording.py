"""A small simulator: a host thread that launches groups of kernels, eagerly or as CUDA graphs, and a GPU."""

from dataclasses import dataclass, replace
from typing import Any

from nsys_export import Export
from sample_models import COMPILED_HASH, EAGER_HASH
from sample_plan import Alone, Graph, Group, Kernel, Noise, Placed, in_a_row, kernels_of
from sample_truth import Truth

PID = 4242
_STREAMS = (7, 13, 14)
_NODE_GAP_NS = 1200
_GRAPH_GAP_NS = 6000
_LAUNCH_LATENCY_NS = 2500
_PAUSE_NS = 40_000_000


@dataclass(frozen=True)
class Arm:
    """One way to run a model: as graphs or eagerly, with its groups at once or in a row."""

    graphs: bool
    at_once: bool


ARMS = {"on": Arm(True, True), "off": Arm(False, False), "serial": Arm(True, False)}


class Recording:
    """One process with one host thread, from its first call to the export and its truth.

    Work is given as the graphs of a phase instance; ``eager_gap_ns`` is the gap between kernels, by phase.
    """

    def __init__(self, seed: str, arm: Arm, eager_gap_ns: dict[str, int]) -> None:
        self.export = Export()
        self.truth = Truth()
        self._arm = arm
        self._eager_gap_ns = eager_gap_ns
        self._phase = ""
        self._noise = Noise(seed)
        self._now = 1_000_000_000
        self._gpu_free = self._now
        self._correlation = 100
        self._last_graph = 0
        self._loaded: set[str] = set()
        self._executables: dict[tuple[object, ...], int] = {}
        self.export.gpu(0, "Synthetic GPU (generated, not recorded)", pid=PID)
        self.export.domain(self._now, "cuBLAS", pid=PID)

    def prefill(self, graphs: list[Graph]) -> None:
        """One prefill after a pause: copy the tokens in, run the graphs, wait for the last of them."""
        self._phase = "prefill"
        self._now += _PAUSE_NS
        start = self._now
        begin, correlation = self._call("cudaMemcpyAsync_v3020", 4000)
        copied = begin + _LAUNCH_LATENCY_NS + 3000
        self.export.memcpy(copied - 3000, copied, bytes=8192, pid=PID, correlation=correlation)
        self._gpu_free = copied
        end = self._submit(graphs)
        self._wait("cudaStreamSynchronize_v3020", end)
        closed = self._range(start, "prefill", domain="tracekit")
        self.truth.instance("prefill", start, closed, end, end - start)

    def decode(self, graphs: list[Graph], steps: int) -> None:
        """A sequence of steps; each range launches the next step and waits for its own."""
        self._phase = "decode"
        previous: int | None = None
        for step in range(steps):
            start = self._now
            if step == 0:
                awaited = self._submit(graphs)
            launched = self._submit(graphs)
            self._wait("cudaEventSynchronize_v3020", awaited)
            closed = self._range(start, "decode", domain="tracekit")
            time = None if previous is None else launched - previous
            self.truth.instance("decode", start, closed, launched, time)
            previous = awaited = launched
        self._wait("cudaStreamSynchronize_v3020", awaited)

    def report(self) -> dict[str, Any]:
        """The planted answers; the first prefill is warm-up."""
        gaps = dict.fromkeys(self._eager_gap_ns, _NODE_GAP_NS) if self._arm.graphs else self._eager_gap_ns
        answers = self.truth.report(warm_up={"prefill": 1})
        graph_rows = answers["kernel_rows"] if self._arm.graphs else 0
        return {"graph_mode": "Node", "planted_gap_ns": gaps, "graph_kernel_rows": graph_rows, **answers}

    def _submit(self, graphs: list[Graph]) -> int:
        for graph in graphs:
            if self._arm.graphs:
                self._launch_graph(graph if self._arm.at_once else in_a_row(graph))
            else:
                self._launch_each(kernels_of(graph))
        return self._gpu_free

    def _launch_each(self, kernels: list[Kernel]) -> None:
        gap = self._eager_gap_ns[self._phase]
        for kernel in kernels:
            self._load(kernel)
            start = self._now
            name = "cudaLaunchKernelExC_v11060" if kernel.smem else "cudaLaunchKernel_v7000"
            begin, correlation = self._call(name, 3000)
            self._range(start, kernel.operator)
            renamed = replace(kernel, name=kernel.name.replace(COMPILED_HASH, EAGER_HASH))
            earliest = max(self._gpu_free + self._noise(gap, 0.05), begin + _LAUNCH_LATENCY_NS)
            for placed in self._run(Alone(renamed), earliest):
                self._kernel(placed, correlation)
        self._range(self._now, "CommandEncoder::commit")

    def _launch_graph(self, groups: Graph) -> None:
        kernels = kernels_of(groups)
        graph = self._new_graph()
        self.export.graph_event(self._now, graph, pid=PID)
        for index, kernel in enumerate(kernels):
            self._create_node(kernel, graph << 32 | index)
        start = self._now
        executable = self._executable(groups, graph, len(kernels))
        begin, correlation = self._call("cudaGraphLaunch_v10000", 15_000)
        self._range(start, "CommandEncoder::commit")
        earliest = max(self._gpu_free + self._noise(_GRAPH_GAP_NS, 0.05), begin + _LAUNCH_LATENCY_NS)
        node = executable << 32
        for group in groups:
            for placed in self._run(group, earliest):
                self._kernel(placed, correlation, node)
                node += 1
            earliest = self._gpu_free + self._noise(_NODE_GAP_NS, 0.05)

    def _create_node(self, kernel: Kernel, node: int) -> None:
        self._load(kernel)
        start = self._now
        if kernel.captured:
            self._call("cudaStreamBeginCapture_v10000", 2000)
            begin, _ = self._call("cudaLaunchKernelExC_v11060", 3000)
            self._call("cudaStreamEndCapture_v10000", 2000)
            self._call("cudaGraphAddChildGraphNode_v10000", 4000)
        else:
            begin, _ = self._call("cudaGraphAddKernelNode_v10000", 1500)
        self.export.graph_node(begin + 800, node, pid=PID)
        self._range(start, kernel.operator)

    def _executable(self, groups: Graph, graph: int, nodes: int) -> int:
        """The executable for graphs of this form: an old one, updated, else a new one."""
        form = tuple((len(group.kernels), group.kernels[0].captured) for group in groups)
        if form in self._executables:
            self._call("cudaGraphExecUpdate_v10020", 20_000)
            return self._executables[form]
        begin, _ = self._call("cudaGraphInstantiate_v12000", 600_000)
        executable = self._executables[form] = self._new_graph()
        self.export.graph_event(begin, graph, executable=executable, pid=PID)
        for index in range(nodes):
            created = begin + 1000 + index * 3000
            self.export.graph_node(created, executable << 32 | index, pid=PID)
            self.export.graph_node(created + 900, executable << 32 | index, graph << 32 | index, pid=PID)
        return executable

    def _run(self, group: Group, earliest: int) -> list[Placed]:
        placed = group.place(earliest, self._noise)
        self.truth.group(self._phase, group, placed)
        self._gpu_free = max(kernel.end for kernel in placed)
        return placed

    def _kernel(self, placed: Placed, correlation: int, node: int | None = None) -> None:
        kernel = placed.kernel
        self.export.kernel(
            placed.start,
            placed.end,
            _STREAMS[placed.lane],
            kernel.name,
            pid=PID,
            correlation=correlation,
            node=node,
            graph=None if node is None else node >> 32,
            grid=(kernel.grid, 1, 1),
            block=(kernel.threads, 1, 1),
            smem=kernel.smem,
            mangled=kernel.mangled,
        )

    def _load(self, kernel: Kernel) -> None:
        """The first use of a kernel loads its module."""
        if kernel.name not in self._loaded:
            self._loaded.add(kernel.name)
            self._call("cuLibraryLoadData", 4_000_000)

    def _call(self, name: str, duration: int) -> tuple[int, int]:
        """A call of the host thread: its start and its correlation id."""
        begin = self._now
        self._correlation += 1
        self._now = begin + self._noise(duration, 0.05)
        self.export.api(begin, self._now, name, self._correlation, pid=PID)
        self.truth.call(self._phase, name)
        self._now += 400
        return begin, self._correlation

    def _wait(self, name: str, until: int) -> None:
        """A call that returns once the GPU has passed ``until``."""
        begin = self._now
        self._correlation += 1
        self._now = max(begin, until) + 4000
        self.export.api(begin, self._now, name, self._correlation, pid=PID)
        self.truth.call(self._phase, name)
        self.export.synchronize(begin, self._now, self._correlation, pid=PID)

    def _range(self, start: int, name: str, *, domain: str | None = None) -> int:
        """A range from ``start`` to about now; returns its end."""
        end = self._now + 500
        self._now = end + 300
        self.export.range(start, end, name, pid=PID, domain=domain, registered=domain is None)
        return end

    def _new_graph(self) -> int:
        self._last_graph += 1
        return self._last_graph
