"""What a phase would take were its graph nodes ordered another way."""

import msgspec

from tracekit.analysis.results.common import Number

SERIAL, CRITICAL_PATH, NO_OVERLAP_OF = "serial", "critical-path", "no-overlap-of"
"""What can be asked: kernels one after another; nothing but the order of nodes; these kernels beside no other."""


class WhatIf(msgspec.Struct, frozen=True):
    """A prediction for one phase of one arm, null where it cannot be made: ``basis`` says why, or what it rests on.

    ``low_ns`` and ``high_ns`` carry p25-p75 of the solo durations and of the pause between dependent kernels.
    ``error`` is predicted / measured - 1, where an arm that ran that way was measured.
    """

    arm: str
    phase: str
    option: str
    predicted_ns: Number | None
    low_ns: Number | None
    high_ns: Number | None
    measured_arm: str | None
    measured_ns: Number | None
    error: float | None
    basis: str
