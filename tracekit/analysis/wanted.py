"""Which part of a trace is asked about."""

from typing import Literal, NamedTuple

from tracekit.units import duration

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

    def spelled(self) -> list[str]:
        """What is selected, in words; empty for the whole trace."""
        parts = {"kernels matching": self.kernel, "phase": self.phase, "device": self.device, "stream": self.stream}
        words = [f"{what} {value}" for what, value in parts.items() if value is not None]
        if self.begin is not None:
            words.append(f"from {duration(self.begin, 6)}")
        if self.finish is not None:
            words.append(f"to {duration(self.finish, 6)}")
        return words
