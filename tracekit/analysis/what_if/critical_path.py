"""What a phase would take if its graphs were bound by nothing but the order of their nodes."""

from collections.abc import Iterable

import polars as pl

from tracekit.analysis.arms import Arm
from tracekit.analysis.what_if.basis import SCENARIOS, Change, Unpredictable, need_solo, pauses, solo_of_keys
from tracekit.analysis.what_if.graph_figures import solo_of_nodes
from tracekit.graph.ordering import Ordered
from tracekit.graph.replays import COPY, Replays
from tracekit.trace.schema import LAUNCH


def critical_paths(arm: Arm, rows: pl.DataFrame, graphs: Iterable[tuple[Replays, Ordered]]) -> Change:
    """The change of phase instances (``rows``) if each graph launch took its critical path at solo speed.

    That is a list schedule on a machine wide enough for all that is ready, each node as fast as alone, with the
    measured pause between dependent kernels on every edge; what lies outside of launches stays. ``graphs`` are those
    of the arm's trace. Raises Unpredictable.
    """
    kernels = arm.work.kernels.filter(pl.col("instance").is_in(rows["instance"].implode()))
    owner = kernels.filter(pl.col("graph_node").is_not_null()).select("instance", *LAUNCH).unique()
    found = [
        (graph, order, launches)
        for graph, order in graphs
        if (launches := _launches(graph).join(owner, on=LAUNCH, nulls_equal=True)).height
    ]
    launches = pl.concat([_changes(arm, *each) for each in found])
    before = pl.col("end").cum_max().shift(1).over("instance", order_by="start")
    if launches.select((pl.col("start") < before).any()).item():
        raise Unpredictable("graph launches of it ran at the same time")
    return Change(launches.group_by("instance").agg(pl.col(*SCENARIOS).sum()), _basis([order for _, order, _ in found]))


def _launches(graph: Replays) -> pl.DataFrame:
    return pl.DataFrame(
        {"correlation": graph.correlation, "start": graph.start.min(axis=1), "end": graph.end.max(axis=1)}
    ).with_columns(process=pl.lit(graph.process, pl.Int64))


def _changes(arm: Arm, graph: Replays, order: Ordered, launches: pl.DataFrame) -> pl.DataFrame:
    """``instance``, ``start``, ``end`` and the change of each of a graph's launches."""
    if order.dag is None:
        raise Unpredictable(order.note or "the order of its nodes is unknown")
    need_solo(arm, pl.Series(graph.key[graph.key != COPY], dtype=pl.UInt32))
    solo, gap = solo_of_keys(arm), pauses(arm)
    paths = {
        scenario: float(order.dag.finished(solo_of_nodes(graph, solo[scenario]), gap[scenario]).max())
        for scenario in SCENARIOS
    }
    span = pl.col("end") - pl.col("start")
    return launches.select(
        "instance", "start", "end", *((path - span).alias(scenario) for scenario, path in paths.items())
    )


def _basis(orders: list[Ordered]) -> str:
    inferred = sum(order.source == "inferred" for order in orders)
    if not inferred:
        return "the edges of dumps, each node at solo speed, a pause on each edge"
    return (
        f"the order of nodes, of {inferred} of {len(orders)} graphs inferred from replays, which may order more than "
        "the edges do; each node at solo speed, a pause on each edge"
    )
