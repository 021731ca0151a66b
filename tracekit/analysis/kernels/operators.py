"""Operators: the framework range in which a kernel was launched, or its graph node created, and the module."""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.phases.open_ranges import range_of_calls
from tracekit.analysis.results import Warn
from tracekit.frameworks import LIBRARY_DOMAINS
from tracekit.trace.reader import Trace
from tracekit.trace.schema import EXECUTABLE_UNIT, LAUNCH

MODULES = "tracekit.modules"
"""NVTX domain of the ranges of modules, named by their path in the model (capture.annotate.module_calls)."""

LONGEST_CHAIN = 64
"""Clones of clones that are followed."""


class Operators(NamedTuple):
    """The operator of each kernel instance (null: unknown), and how many node events lead back to themselves."""

    of_kernels: pl.Series
    looping: int


def operators_of(trace: Trace, kernels: pl.DataFrame) -> Operators:
    """The operators of some of a trace's kernels."""
    work = pl.concat([frame.select(*LAUNCH, "graph_node") for frame in (trace.kernels, trace.copies)])
    return find_operators(kernels, work, trace.calls, trace.ranges, trace.node_events)


def operator_warnings(found: Operators) -> list[Warn]:
    """Say what keeps operators from being known."""
    if not found.looping:
        return []
    message = f"{found.looping} graph nodes are recorded as copies of each other in a loop: their operator is unknown"
    return [Warn("node_loop", message, found.looping)]


def find_operators(
    kernels: pl.DataFrame, work: pl.DataFrame, calls: pl.DataFrame, ranges: pl.DataFrame, node_events: pl.DataFrame
) -> Operators:
    """The innermost range open when an eager kernel was launched, or when its graph node was created.

    Where modules are annotated, it is called ``operator in module``, or by the module alone where no operator has a
    range. Frames follow ``tracekit.trace.schema``; ``work`` are all kernels and copies of the trace (``process``,
    ``correlation``, ``graph_node``), ``kernels`` those asked about. A replayed node leads through its originals to the
    first one's creation. An executable that was updated keeps its node ids while it runs other work: there the j-th
    node of a launch is the j-th one created on the launching thread since its previous graph launch, when their
    numbers agree, else unknown.
    """
    domain = pl.col("domain").fill_null("")
    framework = ranges.filter(~domain.str.contains(f"^tracekit|(?i){LIBRARY_DOMAINS.pattern}"))
    modules = ranges.filter(domain == MODULES)
    # An executable's node is listed with its original and without; the last original given counts.
    events = node_events.sort("original", "start", nulls_last=False).unique(["process", "node"], keep="last")
    created = events.filter(pl.col("original").is_null())
    roots, looping = _roots(events)
    if framework.is_empty() and modules.is_empty():
        return Operators(pl.Series("operator", [None], pl.String).new_from_index(0, kernels.height), looping)
    launches = calls.filter(pl.col("role").is_in(["launch", "graph launch"]) & pl.col("correlation").is_not_null())
    launches = launches.sort("start").unique(LAUNCH, keep="first", maintain_order=True)
    replayed = _updated(kernels, work, calls, launches, created)
    by_node = roots.join(created, left_on=["process", "root"], right_on=["process", "node"])
    moments = (
        kernels.select(*LAUNCH, "graph_node", "start")
        .with_row_index("kernel")
        .join(launches.select(*LAUNCH, "thread", launched="start"), on=LAUNCH, how="left")
        .join(
            by_node.select("process", graph_node="node", created="start", creator="thread"),
            on=["process", "graph_node"],
            how="left",
        )
        .join(replayed, on="kernel", how="left")
    )
    in_graph = pl.col("graph_node").is_not_null()
    late = pl.col("start") < pl.col("launched")
    moments = moments.select(
        "kernel",
        "process",
        call=pl.when(pl.col("updated")).then("renewed").when(in_graph).then("created").when(~late).then("launched"),
        thread=pl.when(pl.col("updated")).then("renewer").when(in_graph).then("creator").otherwise("thread"),
    ).drop_nulls("call")
    every = pl.DataFrame({"kernel": pl.int_range(kernels.height, dtype=pl.UInt32, eager=True)})
    names = every.join(_open_then(moments, framework).rename({"name": "operator"}), on="kernel", how="left")
    names = names.join(_open_then(moments, modules).rename({"name": "module"}), on="kernel", how="left").sort("kernel")
    both = pl.format("{} in {}", "operator", "module")
    return Operators(names.select(operator=pl.coalesce(both, "operator", "module"))["operator"], looping)


def _open_then(moments: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """The innermost range open at each moment: ``kernel``, ``name``."""
    if ranges.is_empty():
        return pl.DataFrame(schema={"kernel": pl.UInt32, "name": pl.String})
    numbered = ranges.with_row_index("range")
    found = range_of_calls(moments, numbered, innermost=True)
    return found.join(numbered.select("range", "name"), on="range").select("kernel", "name")


def _roots(events: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Each node's first original (``process``, ``node``, ``root``), and how many nodes lead round in a loop."""
    parents = events.select("process", "node", "original")
    further = parents.select("process", root="node", next="original").drop_nulls("next")
    rest = parents.select("process", "node", root=pl.coalesce("original", "node"))
    for _ in range(LONGEST_CHAIN):
        stepped = rest.join(further, on=["process", "root"], how="left")
        rest = stepped.select("process", "node", root=pl.coalesce("next", "root"))
        if stepped["next"].null_count() == stepped.height:
            return rest, 0
    looping = rest.join(further, on=["process", "root"], how="semi")
    return rest.join(further, on=["process", "root"], how="anti"), looping.height


def _updated(
    kernels: pl.DataFrame, work: pl.DataFrame, calls: pl.DataFrame, launches: pl.DataFrame, created: pl.DataFrame
) -> pl.DataFrame:
    """For kernels of updated executables: ``kernel``, ``updated``, and when and by whom their node was renewed.

    Columns ``renewed`` and ``renewer`` are null where the number of nodes does not agree.
    """
    commits = launches.filter(pl.col("role") == "graph launch").select(*LAUNCH, "thread", "start").sort("start")
    owner = pl.col("graph_node") // EXECUTABLE_UNIT
    nodes = (
        work.drop_nulls("graph_node")
        .unique()
        .with_columns(
            order=pl.col("graph_node").rank("ordinal").over(LAUNCH), nodes=pl.len().over(LAUNCH), executable=owner
        )
    )
    executables = nodes.group_by(LAUNCH).agg(pl.col("executable").first())
    commits = commits.join(executables, on=LAUNCH, how="left", maintain_order="left")
    renewed = _before_commit(created.select("process", "thread", "start"), commits).sort("start")
    renewed = renewed.with_columns(
        order=pl.int_range(1, pl.len() + 1).over("process", "source").cast(pl.UInt32),
        made=pl.len().over("process", "source"),
    )
    updates = calls.filter(pl.col("role") == "graph update").select("process", "thread", "start")
    sources = _before_commit(updates, commits).select("process", "source").unique()
    at_source = commits.join(sources, left_on=LAUNCH, right_on=["process", "source"], how="semi")
    # A later launch of the executable without an update of its own replays what the last update put there.
    followed = commits.drop_nulls("executable").join_asof(
        at_source.select("process", "executable", "start", source="correlation").drop_nulls("executable"),
        on="start",
        by=["process", "executable"],
        strategy="backward",
        check_sortedness=False,
    )
    members = nodes.join(followed.drop_nulls("source").select(*LAUNCH, "source"), on=LAUNCH)
    paired = members.join(
        renewed.select("process", "source", "order", "made", renewed="start", renewer="thread"),
        on=["process", "source", "order"],
        how="left",
    )
    agrees = pl.col("made") == pl.col("nodes")
    paired = paired.with_columns(pl.when(agrees).then(pl.col("renewed", "renewer")))
    numbered = kernels.select(*LAUNCH, "graph_node").with_row_index("kernel")
    return numbered.join(paired, on=[*LAUNCH, "graph_node"]).select(
        "kernel", "renewed", "renewer", updated=pl.lit(True)
    )


def _before_commit(events: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """The first graph launch after each event on its thread: ``source``, its correlation id."""
    after = events.sort("start").join_asof(
        commits.select("process", "thread", "start", source="correlation").with_columns(committed="start"),
        on="start",
        by=["process", "thread"],
        strategy="forward",
        check_sortedness=False,
    )
    return after.drop_nulls("source")
