"""What was checked before figures are believed."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Number

CheckOutcome = Literal["pass", "warn", "fail", "cannot tell"]


class Check(msgspec.Struct, frozen=True):
    """One check of one arm (null: of all arms) and phase (null: of whole traces).

    ``figure`` is what was measured, in ``unit``, and ``threshold`` the limit it is held against; null where there is
    none. ``withholds``: the verdict on that phase is undecided because of it.
    """

    name: str
    arm: str | None
    phase: str | None
    figure: Number | None
    unit: str
    threshold: Number | None
    outcome: CheckOutcome
    withholds: bool
    message: str

    @property
    def failed(self) -> bool:
        """Beyond the limit, or as good as."""
        return self.outcome == "fail"
