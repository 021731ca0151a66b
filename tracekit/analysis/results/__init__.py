"""What each command answers, as typed values. The JSON output and its schema are made from these.

Times are nanoseconds. A fact that is absent or withheld is null and a warning says why.
"""

from tracekit.analysis.results.common import (
    ALL,
    OUTSIDE,
    Answer,
    Dimensions,
    Granularity,
    Kernel,
    Number,
    TraceLine,
    Verdict,
    Warn,
)
from tracekit.analysis.results.diff import ArmLine, Diff, KernelComparison, KernelOnOneSide, Phase, ProfilerCost, Status
from tracekit.analysis.results.info import FoundPhase, Info, InfoProcess
from tracekit.analysis.results.overlap import DeviceOverlap, Episodes, KernelPair, Overlap, Stream, StreamPair
from tracekit.analysis.results.summary import Device, GapBucket, KernelSummary, Recording, Summary

__all__ = [
    "ALL",
    "OUTSIDE",
    "Answer",
    "ArmLine",
    "Device",
    "DeviceOverlap",
    "Diff",
    "Dimensions",
    "Episodes",
    "FoundPhase",
    "GapBucket",
    "Granularity",
    "Info",
    "InfoProcess",
    "Kernel",
    "KernelComparison",
    "KernelOnOneSide",
    "KernelPair",
    "KernelSummary",
    "Number",
    "Overlap",
    "Phase",
    "ProfilerCost",
    "Recording",
    "Status",
    "Stream",
    "StreamPair",
    "Summary",
    "TraceLine",
    "Verdict",
    "Warn",
]
