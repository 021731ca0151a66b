"""One recording of an arm: the program runs on the model, and an nsys export and the true accounts come of it."""

from dataclasses import replace
from typing import NamedTuple

from nsys_export import Export

from proving.gpu_model import Law, Task, run
from proving.host import BEGIN, PID, Call, Host
from proving.noise import Noise
from proving.truth import HOST_CAUSES, Account, Activity, Ran, clusters
from proving.workload import Arm, Node, Phase, Work, in_a_row

_PAUSE_NS = 400_000
_LAUNCH_LATENCY_NS = 2000
_GRAPH_PAUSE_NS = 2500
_BEGINS_AT = 0.8
"""Share of a launch call after which the GPU knows of the work."""

_MAIN_STREAM, _FIRST_OTHER = 7, 13


class Recorded(NamedTuple):
    """An export, the accounts of each phase's instances after the first, which is warm-up, and the whole time (ns)."""

    export: Export
    accounts: dict[str, list[Account]]
    wall: int


def record(arm: Arm, law: Law, block: int, *seed: object) -> Recorded:
    """Run an arm's phases once, as block ``block``. The same seed gives the same recording."""
    recording = _Recording(arm, law, block, Noise(*seed))
    accounts = {phase.name: recording.play(phase)[1:] for phase in arm.phases}
    return Recorded(recording.export, accounts, recording.wall)


class _Launched(NamedTuple):
    """What one phase instance put on the GPU."""

    tasks: list[Task]
    activities: list[Activity]
    end: int


class _Recording:
    def __init__(self, arm: Arm, law: Law, block: int, noise: Noise) -> None:
        self.export = Export()
        self.export.gpu(0, "Model GPU (simulated, not recorded)", pid=PID)
        self._arm = arm
        self._noise = noise
        self._host = Host(self.export, noise, arm.noise.times)
        self._law = law.varied(noise.factor(arm.noise.law))
        state = arm.states[block % len(arm.states)] if arm.states else 1.0
        self._clock = arm.clock * state * noise.factor(arm.noise.recording)
        self._gpu_free = self._host.now
        self._executables: dict[tuple[str, int], int] = {}
        self._graphs = 0

    @property
    def wall(self) -> int:
        """Time of the program until now (ns)."""
        return self._host.now - BEGIN

    def play(self, phase: Phase) -> list[Account]:
        """All instances of a phase, the warm-up among them."""
        return self._pipelined(phase) if phase.pipelined else self._isolated(phase)

    def _isolated(self, phase: Phase) -> list[Account]:
        """Each range launches its work and waits for it."""
        accounts = []
        for number in range(phase.instances):
            self._host.work(_PAUSE_NS)
            start = self._host.now
            launched = self._launch(phase, number)
            self._host.wait("cudaStreamSynchronize_v3020", launched.end)
            self._host.range(start, phase.name)
            accounts.append(self._account(launched, start))
        return accounts

    def _pipelined(self, phase: Phase) -> list[Account]:
        """Each range launches the next instance's work and waits for its own."""
        accounts = []
        awaited = 0
        for number in range(phase.instances):
            start = self._host.now
            if not number:
                awaited = self._launch(phase, 0).end
            launched = self._launch(phase, number)
            self._host.wait("cudaEventSynchronize_v3020", awaited)
            self._host.range(start, phase.name)
            accounts.append(self._account(launched, awaited))
            awaited = launched.end
        self._host.wait("cudaStreamSynchronize_v3020", awaited)
        return accounts

    def _launch(self, phase: Phase, number: int) -> _Launched:
        """Copies, then kernels; ``number`` is that of the instance."""
        grown = 1 + self._arm.drift * number / max(1, phase.instances - 1)
        slower = self._clock * grown * self._noise.factor(self._arm.noise.instance)
        how = phase.launching
        activities = [self._copy(how.copy_ns) for _ in range(how.copies)]
        work = in_a_row(phase.work) if how.serial else phase.work
        tasks: list[Task] = []
        for part, nodes in enumerate(_cut(work, max(1, how.graphs))):
            of_part = [self._task(node, slower, how.gap_ns + self._arm.traced_ns) for node in nodes]
            calls = self._launch_graph(phase, part, nodes) if how.graphs else self._launch_each(phase, nodes)
            earliest = self._gpu_free + self._host.noisy(_GRAPH_PAUSE_NS if how.graphs else how.gap_ns)
            for task, (call, _) in zip(of_part, calls, strict=True):
                known = call.begin + _BEGINS_AT * (call.returned - call.begin) + _LAUNCH_LATENCY_NS
                task.ready = max(known, earliest) if not task.after else known
            run(of_part, self._law)
            streams = _streams(nodes)
            for task, (call, node), stream in zip(of_part, calls, streams, strict=True):
                activities.append(self._kernel(task, call, node, stream))
            self._gpu_free = max(activity.end for activity in activities)
            tasks += of_part
        return _Launched(tasks, activities, self._gpu_free)

    def _task(self, node: Node, slower: float, gap: float) -> Task:
        kernel = node.kernel
        own = self._noise.held_up(self._arm.noise.kernel) * self._arm.slower.get(kernel.name, 1.0)
        return Task(
            kernel,
            work=kernel.solo_ns * node.size * slower * own,
            after=node.after,
            pause=self._host.noisy(gap),
            trigger=node.trigger,
        )

    def _copy(self, ns: float) -> Activity:
        call = self._host.call("cudaMemcpyAsync_v3020", 3000, "launch_bound")
        start = max(self._gpu_free + 1000, call.begin + _LAUNCH_LATENCY_NS)
        self._gpu_free = start + max(1, self._host.noisy(ns))
        self.export.memcpy(start, self._gpu_free, bytes=round(ns), pid=PID, correlation=call.correlation)
        return Activity(start, self._gpu_free, call.begin, call.returned)

    def _launch_each(self, phase: Phase, nodes: Work) -> list[tuple[Call, int | None]]:
        calls: list[tuple[Call, int | None]] = []
        for _ in nodes:
            self._host.work(phase.launching.host_ns)
            calls.append((self._host.call("cudaLaunchKernel_v7000", phase.launching.launch_ns, "launch_bound"), None))
        return calls

    def _launch_graph(self, phase: Phase, part: int, nodes: Work) -> list[tuple[Call, int | None]]:
        how = phase.launching
        self._host.work(how.host_ns)
        if how.setup == "capture":
            self._host.call("cudaStreamBeginCapture_v10000", 2000, "setup")
            self._host.call("cudaStreamEndCapture_v10000", how.setup_ns, "setup")
        if how.setup == "instantiate" or (phase.name, part) not in self._executables:
            self._build(phase, part, nodes)
        elif how.setup == "update":
            self._host.call("cudaGraphExecUpdate_v10020", how.setup_ns, "setup")
        call = self._host.call(
            "cudaGraphLaunch_v10000", how.launch_ns + how.node_launch_ns * len(nodes), "launch_bound"
        )
        executable = self._executables[phase.name, part]
        return [(call, executable << 32 | number) for number in range(len(nodes))]

    def _build(self, phase: Phase, part: int, nodes: Work) -> None:
        """A new graph and its executable."""
        graph, executable = self._graphs + 1, self._graphs + 2
        self._graphs = executable
        self._executables[phase.name, part] = executable
        self.export.graph_event(self._host.now, graph, pid=PID)
        for number in range(len(nodes)):
            created = self._host.call("cudaGraphAddKernelNode_v10000", 1000, "setup").begin
            self.export.graph_node(created, graph << 32 | number, pid=PID)
        how = phase.launching
        call = self._host.call("cudaGraphInstantiate_v12000", how.setup_ns or 200_000, "setup")
        self.export.graph_event(call.begin, graph, executable=executable, pid=PID)
        for number in range(len(nodes)):
            clone = executable << 32 | number
            self.export.graph_node(call.begin + number, clone, pid=PID)
            self.export.graph_node(call.begin + number, clone, graph << 32 | number, pid=PID)

    def _kernel(self, task: Task, call: Call, node: int | None, stream: int) -> Activity:
        start, end = round(task.start), max(round(task.start) + 1, round(task.end))
        self.export.kernel(
            start,
            end,
            stream,
            task.kernel.name,
            pid=PID,
            correlation=call.correlation,
            node=node,
            graph=None if node is None else node >> 32,
            grid=(task.kernel.blocks, 1, 1),
        )
        return Activity(start, end, call.begin, call.returned)

    def _account(self, launched: _Launched, since: int) -> Account:
        """Where the time from ``since`` to the instance's last completion went."""
        kernels: dict[str, Ran] = {}
        for task in launched.tasks:
            ran = kernels.get(task.kernel.name, Ran(0, 0))
            kernels[task.kernel.name] = Ran(ran.launches + 1, ran.solo + task.work)
        losses = [cluster.lost for cluster in clusters(launched.tasks)]
        lost, gained = sum(ns for ns in losses if ns > 0), sum(ns for ns in losses if ns < 0)
        idle = self._idle(launched.activities, since)
        time = launched.end - since
        ran_alone = sum(ran.solo for ran in kernels.values())
        return Account(
            time=time,
            kernels=kernels,
            lost=lost,
            gained=gained,
            copies=time - ran_alone - lost - gained - sum(idle.values()),
            idle=idle,
        )

    def _idle(self, activities: list[Activity], since: int) -> dict[str, float]:
        idle = dict.fromkeys(HOST_CAUSES, 0.0)
        covered = since
        for activity in sorted(activities):
            known = min(activity.returned, activity.start)
            for cause, ns in self._host.did(covered, known).items():
                idle[cause] += ns
            idle["gaps"] += max(0, activity.start - max(covered, known))
            covered = max(covered, activity.end)
        return idle


def _cut(work: Work, parts: int) -> list[Work]:
    """The work in so many graphs, each after the one before it; edges across the cut are kept by that."""
    each = -(-len(work) // parts)
    cut = []
    for first in range(0, len(work), each):
        inside = work[first : first + each]
        cut.append(tuple(replace(node, after=tuple(n - first for n in node.after if n >= first)) for node in inside))
    return cut


def _streams(nodes: Work) -> list[int]:
    """A stream for each node: its first predecessor's, unless another node went on there."""
    streams: list[int] = []
    ends: dict[int, int] = {}
    for number, node in enumerate(nodes):
        free = [streams[other] for other in node.after if ends[streams[other]] == other]
        unused = _FIRST_OTHER + len(ends) - 1 if ends else _MAIN_STREAM
        streams.append(free[0] if free else unused)
        ends[streams[-1]] = number
    return streams
