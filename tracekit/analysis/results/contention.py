"""Who slowed whom, and which kernels side by side gained or lost time."""

from typing import Literal

import msgspec

from tracekit.analysis.results.common import Kernel, Number

Band = Literal["alone", "up to half", "over half"]


class Contention(msgspec.Struct, frozen=True):
    """Instances of one kernel, the victim, by the set of kernels that ran beside them and for how much of their time.

    ``stretch`` is their median duration / solo: it says that a kernel was slowed, never that time was lost.
    ``companions`` are the whole set, each kernel once; the victim is among them where it ran beside itself. ``band``
    is the overlapped share of the instances: alone (up to 1 %), up to half, over half; null for sets that are
    summed up in one row because each is rare, of which ``note`` says how many. ``split`` rows are the separate
    effect of one companion, told apart over several sets: their ``instances`` are those of all sets that hold it,
    which have rows of their own. ``arm`` and ``phase`` are null where there is one trace.
    """

    arm: str | None
    phase: str | None
    victim: Kernel
    companions: list[Kernel]
    band: Band | None
    instances: int
    stretch: float | None
    ci95: tuple[float, float] | None
    overlapped_fraction: float
    split: bool
    note: str | None


class OverlapSet(msgspec.Struct, frozen=True):
    """Overlap episodes of one set of kernels: what they took (W), what their work takes one after another (S).

    All figures are for one counted instance of the phase, on average; for one trace, in all. They add up to those of
    all episodes. ``pair``: each episode has exactly two members, so that the gain is the pair's; other gains belong
    to the set. ``members`` lists each kernel once, a pair's both. Rare sets are summed up in a row without members,
    ``sets`` of them. ``gain_ns`` = S - W, null where the solo duration of a member is unknown; ``low_ns`` and
    ``high_ns`` hold it for another recording with 95 %, the p25-p75 of the solo durations included.
    ``operators``: those of the members, by name, where they were asked for.
    """

    arm: str | None
    phase: str | None
    members: list[Kernel]
    pair: bool
    sets: int
    episodes: Number
    wall_ns: int
    solo_ns: int | None
    gain_ns: int | None
    low_ns: Number | None
    high_ns: Number | None
    operators: list[str]
