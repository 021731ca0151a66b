"""From a trace to the launch that is reproduced."""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

import tracekit
from tracekit.analysis.graphs import WHY_NONE, ordered_graphs, solo_durations
from tracekit.analysis.kernels.matching import matched_labels
from tracekit.analysis.trust.recording import examine
from tracekit.analysis.what_if.graph_figures import GraphFigures
from tracekit.capture.private_names import private_words, replacements
from tracekit.errors import UnusableInput
from tracekit.graph.dumps import Dump
from tracekit.graph.ordering import Ordered
from tracekit.graph.replays import Replays
from tracekit.repro.arrange import arranged, child_graphs
from tracekit.repro.choice import choose
from tracekit.repro.launch_rows import rows_of_launch
from tracekit.repro.model import Gpu, Repro, ReproNode
from tracekit.repro.nodes import Graph, Kernels, with_unrecorded
from tracekit.trace.reader import Trace


def plan_repro(
    trace: Trace, baseline: Trace | None, dumps: Sequence[Dump], launch: int | None, phase: str | None
) -> Repro:
    """The launch to reproduce: that of this number, else the one that lost most (of the phase).

    ``baseline``, an eager run of the same work, supplies solo durations. Raises UnusableInput where the trace has no
    graph nodes or does not hold how they were launched, WrongUsage where there is no such launch or phase.
    """
    replays, orders = ordered_graphs(trace, dumps)
    if not replays:
        raise UnusableInput(f"{trace.label}: {WHY_NONE[examine(trace).line.granularity]}")
    labels = matched_labels([each.kernel_keys for each in (trace, *([baseline] if baseline else []))])
    own = labels.filter(pl.col("trace") == 0)
    solo = solo_durations(trace, baseline, labels)
    choice = choose(trace, replays, own, solo, launch, phase)
    graph, order = replays[choice.graph], orders[choice.graph]
    if order.dag is None:
        raise UnusableInput(f"{trace.label}: the edges of the chosen graph are unknown: {order.note}")
    gpu = gpu_of(trace, int(graph.device[choice.row, 0]))
    names = _public_names(trace, gpu.name, phase)
    gpu = msgspec.structs.replace(gpu, name=names.get(gpu.name, gpu.name))
    rows = rows_of_launch(trace, graph, choice.row)
    first = int(graph.start[choice.row].min())
    streams = {stream: i for i, stream in enumerate(dict.fromkeys(row.stream for row in rows))}
    kernels = Kernels(trace.kernel_keys, own, solo, names, gpu)
    recorded = [kernels.node(row, first, streams[row.stream]) for row in rows]
    shape = next((dump.shape for dump in dumps if order.source == "dump" and dump.file == order.file), None)
    whole = with_unrecorded(recorded, order.dag, shape, order.dump_nodes)
    children, put_in_place = child_graphs(whole.graphs, whole.dag)
    nodes, edges = _in_order(whole, children)
    known = [loss.lost_ns for loss in choice.losses if loss.lost_ns is not None]
    figures = GraphFigures(_one_launch(graph, choice.row), None, np.empty(0))
    return Repro(
        tracekit=tracekit.__version__,
        gpu=gpu,
        launch=int(graph.launch[choice.row]),
        launches=len(graph.launch),
        known_launches=len(known),
        slower_launches=sum(lost > 0 for lost in known),
        median_lost_ns=float(np.median(known)) if known else None,
        chosen=choice.why if phase is None else choice.why.replace(phase, names.get(phase, phase)),
        phase=None if phase is None else names.get(phase, phase),
        order="inferred" if shape is None else "dump",
        span_ns=int(figures.span[0]),
        busy_ns=figures.busy,
        summed_ns=figures.summed,
        max_depth=figures.max_depth,
        loss=choice.losses[choice.row],
        nodes=nodes,
        edges=edges,
        notes=_notes(nodes, order, len(graph.launch), put_in_place),
    )


def gpu_of(trace: Trace, device: int) -> Gpu:
    """The GPU that a launch ran on; what the trace does not tell is null."""
    known = next((gpu for gpu in trace.facts.gpus if gpu.device == device), None)
    rows = trace.export.read("TARGET_INFO_GPU", {"id": pl.Int64, "memoryBandwidth": pl.Int64})
    bandwidth = rows.filter((pl.col("id") == device) & (pl.col("memoryBandwidth") > 0))["memoryBandwidth"]
    return Gpu(
        name=known.name if known else "unknown GPU",
        compute_capability=known.compute_capability if known else None,
        sms=known.sm_count if known else None,
        bandwidth=int(bandwidth.sort()[0]) if bandwidth.len() else None,
    )


def _public_names(trace: Trace, *others: str | None) -> dict[str, str]:
    """What stands in place of the names, of kernels and others, that must not be published."""
    names = dict.fromkeys(trace.kernel_keys["short_name"], True)
    return replacements(names | {name: False for name in others if name is not None}, private_words(trace.export))


def _one_launch(graph: Replays, row: int) -> Replays:
    one = slice(row, row + 1)
    return Replays(graph.process, *(column[one] for column in graph[1:]))


def _in_order(graph: Graph, children: list[int | None]) -> tuple[list[ReproNode], list[tuple[int, int]]]:
    starts = [-1 if node.start_ns is None else node.start_ns for node in graph.nodes]
    order = arranged(graph.dag, starts, children)
    number = {node: i for i, node in enumerate(order)}
    edges = sorted((number[one], number[other]) for one, other in graph.dag.edges.tolist())
    return [msgspec.structs.replace(graph.nodes[node], child=children[node]) for node in order], edges


def _notes(nodes: list[ReproNode], order: Ordered, launches: int, put_in_place: int) -> list[str]:
    """What is not as in the traced graph, or not known of it."""
    kernels = [node for node in nodes if node.kernel]
    no_solo = sum(node.solo_ns is None for node in kernels)
    no_registers = sum(node.kernel is not None and node.kernel.registers is None for node in kernels)
    no_static = sum(node.kernel is not None and node.kernel.static_smem is None for node in kernels)
    local = sum(bool(node.kernel and node.kernel.local) for node in kernels)
    unknown_size = sum(node.kind in ("memcpy", "memset") and not node.bytes for node in nodes)
    idle = sum(node.kind == "empty" and node.name != "empty" for node in nodes)
    said = [
        (
            order.source == "inferred",
            f"edges are inferred from the order in which nodes ran in {launches} launches: nodes that only happened to "
            "run in turn are ordered too, so the real graph may be wider; a DOT dump (--dot) has the edges",
        ),
        (order.note is not None, str(order.note)),
        (put_in_place, f"{put_in_place} child graphs are put in place: they hold others, or their parts are ordered"),
        (no_solo, f"{no_solo} of {len(kernels)} kernels never ran alone: they are fitted to how long they took in the "
                  "graph, which what ran beside them may have stretched; an eager run (--baseline) tells"),
        (no_registers, f"registers of {no_registers} kernels are not recorded: their stand-ins have what they need"),
        (no_static, f"static shared memory of {no_static} kernels is not recorded: their stand-ins have none"),
        (local, f"{local} kernels used local memory (spilled registers): their stand-ins do not"),
        (unknown_size, f"{unknown_size} copies or sets have no recorded size: they move one byte"),
        (idle, f"{idle} nodes of other kinds (event, memory) stand as empty nodes, for the order that they give"),
        (True, "memory traffic is not in a trace: it is guessed from durations, and fitted by --calibrate"),
    ]  # fmt: skip
    return [text for applies, text in said if applies]
