"""Which part of a trace is asked about."""

from typing import Literal, NamedTuple

By = Literal["launch", "name", "short", "operator"]
"""What makes two kernel instances one row; ``operator`` is the framework range that launched or created them."""


class Selection(NamedTuple):
    """Which part of a trace is asked about. Times are ns on the trace's clock: kernels that start in
    [``begin``, ``finish``)."""

    kernel: str | None = None
    phase: str | None = None
    device: int | None = None
    stream: int | None = None
    begin: int | None = None
    finish: int | None = None
    by: By = "launch"
    sort: str = "total"
    top: int | None = None
