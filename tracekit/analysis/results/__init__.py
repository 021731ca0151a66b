"""What each command answers, as typed values. The JSON output and its schema are made from these.

Times are nanoseconds. A fact that is absent or withheld is null and a warning says why.
"""

from tracekit.analysis.results.bench import Bench, BenchCompare, BenchModel
from tracekit.analysis.results.causes import Cause, Explanation, Outcome, Step
from tracekit.analysis.results.checks import Check, CheckOutcome
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
from tracekit.analysis.results.contention import Contention, OverlapSet
from tracekit.analysis.results.diff import ArmLine, Diff, KernelComparison, KernelOnOneSide, Phase, ProfilerCost, Status
from tracekit.analysis.results.graph import GraphAnswer, GraphDetail, GraphNode, GraphShape, LevelRun, SerialPairs
from tracekit.analysis.results.info import FoundPhase, Info, InfoProcess
from tracekit.analysis.results.mechanics import Mechanics
from tracekit.analysis.results.overlap import DeviceOverlap, Episodes, KernelPair, Overlap, Stream, StreamPair
from tracekit.analysis.results.repro import Repro, ReproNodeCheck, ReproRow, ReproVerify
from tracekit.analysis.results.summary import Device, GapBucket, KernelSummary, Recording, Summary
from tracekit.analysis.results.what_if import WhatIf

__all__ = [
    "ALL",
    "OUTSIDE",
    "Answer",
    "ArmLine",
    "Bench",
    "BenchCompare",
    "BenchModel",
    "Cause",
    "Check",
    "CheckOutcome",
    "Contention",
    "Device",
    "DeviceOverlap",
    "Diff",
    "Dimensions",
    "Episodes",
    "Explanation",
    "FoundPhase",
    "GapBucket",
    "Granularity",
    "GraphAnswer",
    "GraphDetail",
    "GraphNode",
    "GraphShape",
    "Info",
    "InfoProcess",
    "Kernel",
    "KernelComparison",
    "KernelOnOneSide",
    "KernelPair",
    "KernelSummary",
    "LevelRun",
    "Mechanics",
    "Number",
    "Outcome",
    "Overlap",
    "OverlapSet",
    "Phase",
    "ProfilerCost",
    "Recording",
    "Repro",
    "ReproNodeCheck",
    "ReproRow",
    "ReproVerify",
    "SerialPairs",
    "Status",
    "Step",
    "Stream",
    "StreamPair",
    "Summary",
    "TraceLine",
    "Verdict",
    "Warn",
    "WhatIf",
]
