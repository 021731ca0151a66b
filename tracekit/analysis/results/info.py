"""Answer of ``tracekit info``."""

import msgspec

from tracekit.analysis.results.common import Answer


class FoundPhase(msgspec.Struct, frozen=True):
    """A phase of one trace."""

    name: str
    instances: int
    kernel_rows: int
    kernel_ns: int


class InfoProcess(msgspec.Struct, frozen=True):
    """A process that used the GPU or tried to; ``launch_ns`` is host time in its launch calls, each counted once."""

    process: int | None
    kernel_rows: int
    launches: int
    graph_launches: int
    launch_ns: int


class Info(Answer, frozen=True, kw_only=True):
    """Answer of ``tracekit info``."""

    platform: str | None
    driver_version: str | None
    cuda_version: str | None
    compute_capabilities: list[str | None]
    first_ns: int | None
    last_ns: int | None
    devices: list[int]
    streams: list[int | None]
    processes: list[InfoProcess]
    rows: dict[str, int]
    not_recorded: list[str]
    phases: list[FoundPhase]
    phases_from: str
