"""How an arm launched its work: graph launches and what they cost, and what the GPU waited for."""

import msgspec

from tracekit.analysis.results.common import Number


class Mechanics(msgspec.Struct, frozen=True):
    """One phase in one arm: means over its counted ``instances``, null where not recorded. Times are ns.

    ``launches`` are of kernels one by one. ``nodes_per_launch``: kernels, copies and sets of a graph launch -> how many
    launches had so many. ``executables``: different executable graphs launched, in the block with the most.
    ``api_ns`` and ``api_calls``: time and number of CUDA calls by kind, over all threads; failed calls cost time but
    do not count. ``host_ns``: no CUDA call was being made and the GPU did nothing. ``idle_ns`` = ``gaps_ns`` +
    ``launch_bound_ns`` + ``setup_ns`` + ``host_work_ns`` + ``unattributed_ns``, and ``time_ns`` holds it.
    """

    arm: str
    phase: str
    instances: int
    time_ns: Number | None
    graph_launches: Number | None
    launches: Number | None
    instantiations: Number | None
    updates: Number | None
    captures: Number | None
    executables: int | None
    nodes_per_launch: dict[str, int] | None
    api_calls: dict[str, Number] | None
    api_ns: dict[str, Number] | None
    host_ns: Number | None
    idle_ns: Number | None
    gaps_ns: Number | None
    launch_bound_ns: Number | None
    setup_ns: Number | None
    host_work_ns: Number | None
    unattributed_ns: Number | None
