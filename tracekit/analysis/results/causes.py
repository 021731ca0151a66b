"""Where the difference of a phase's times comes from: steps that add up, and explanations tested against them."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Number

Cause = Literal[
    "overlap_lost",
    "overlap_gained",
    "plain_sharing",
    "kernels_alone",
    "clocks",
    "one_side_only",
    "counts_differ",
    "gaps",
    "launch_bound",
    "setup",
    "host_work",
    "copies",
    "profiler",
    "drift",
    "unexplained",
]
"""What can make two arms differ; docs/concepts.md says what each is."""

Outcome = Literal["carries", "contributes", "ruled out", "cannot tell"]


class Step(msgspec.Struct, frozen=True):
    """One step of the way from time a to time b: ns of b minus a, with its 95 % interval.

    ``ns`` is null where the step cannot be told from others; ``unexplained`` then holds its time.
    """

    cause: Cause
    ns: Number | None
    low_ns: Number | None
    high_ns: Number | None


class Explanation(msgspec.Struct, frozen=True):
    """One cause, tested. ``share`` is ``ns`` as a share of the difference of the times, in its direction."""

    cause: Cause
    outcome: Outcome
    ns: Number | None
    low_ns: Number | None
    high_ns: Number | None
    share: float | None
    evidence: str
