"""Words and values that every answer uses."""

from typing import Literal

import msgspec

Number = int | float
Dimensions = tuple[int | None, int | None, int | None]
Granularity = Literal["node", "graph", "none", "unknown"]

ALL, OUTSIDE = "(all)", "(outside)"
"""The one phase of a trace without ranges; the work that no range holds."""


class Warn(msgspec.Struct, frozen=True):
    """Something the reader of the figures has to know; ``count`` is how many rows or cases it concerns."""

    code: str
    message: str
    count: int


class TraceLine(msgspec.Struct, frozen=True):
    """One input."""

    path: str
    nsys_version: str | None
    schema_version: str | None
    granularity: Granularity
    gpus: list[str]
    kernel_rows: int
    graph_kernel_rows: int


class Kernel(msgspec.Struct, frozen=True):
    """What identifies a kernel; null where it was grouped away or not recorded."""

    name: str | None
    mangled_name: str | None
    short_name: str | None
    grid: Dimensions | None
    block: Dimensions | None
    cluster: Dimensions | None
    dynamic_smem: int | None


class Verdict(msgspec.Struct, frozen=True):
    """Who won, why, and what to do about it."""

    winner: Literal["a", "b", "tie", "undecided"]
    reason: str
    advice: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every command's output holds."""

    tracekit: str
    command: str
    traces: list[TraceLine]
    warnings: list[Warn]
