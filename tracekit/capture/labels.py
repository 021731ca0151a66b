"""Whether a trace holds what its arm is called."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tracekit.capture.arms import Arm
from tracekit.capture.outcome import Finding

MOSTLY = 0.5
"""Share of GPU time in graph launches from which on a trace is one of graphs; without them a few may remain."""


def mislabelled(trace: Path, arm: Arm) -> Finding | None:
    """What speaks against the arm's name; None for arms of the user's own and where no kernel was recorded."""
    share = _graph_share(trace)
    if share is None or arm.role == "own":
        return None
    if arm.role == "off" and share >= MOSTLY:
        return Finding("mislabelled", f"arm off launched graphs ({share:.0%} of its GPU time): graphs were not off")
    if arm.role != "off" and not share:
        return Finding("mislabelled", f"arm {arm.name} launched no graph: this workload uses none, or they were off")
    return None


def _graph_share(trace: Path) -> float | None:
    """Share of the time of kernels and of graphs recorded as a whole that was launched by graphs."""
    with closing(sqlite3.connect(f"{trace.absolute().as_uri()}?mode=ro", uri=True)) as connection:

        def time(table: str, condition: str = "1") -> int:
            found = connection.execute(f"SELECT total(end - start) FROM {table} WHERE {condition}").fetchone()
            return int(found[0])

        def columns(table: str) -> set[str]:
            return {column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")}

        kernels, graphs = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
        all_kernels = time(kernels) if columns(kernels) else 0
        nodes = time(kernels, "graphNodeId <> 0") if "graphNodeId" in columns(kernels) else 0
        whole = time(graphs) if columns(graphs) else 0
    total = all_kernels + whole
    return (nodes + whole) / total if total else None
