"""The record that ``tracekit run`` would have left of a scenario: what its blocks took without the profiler."""

from collections.abc import Sequence
from datetime import UTC, datetime

from proving.scenario import LETTERS
from tracekit.capture.machine import Machine
from tracekit.capture.run_folder import Block, Manifest, Nsys, RecordedArm

SECOND = 1e9


def run_record(walls: Sequence[Sequence[tuple[int, int]]]) -> Manifest:
    """A manifest of arms whose blocks took so long (ns) without and with the profiler, recorded in turn."""
    arms = LETTERS[: len(walls)]
    blocks = [
        Block(arm, number, f"{arm}-{number}.sqlite", profiled_wall_s=profiled / SECOND, plain_wall_s=plain / SECOND)
        for number, of_arms in enumerate(zip(*walls, strict=True), start=1)
        for arm, (plain, profiled) in zip(arms, of_arms, strict=True)
    ]
    return Manifest(
        name="scenario",
        state="complete",
        started=datetime.fromtimestamp(0, UTC),
        command=["scenario"],
        annotate="none",
        framework=None,
        packages={},
        machine=Machine(),
        nsys=Nsys("2026.2.1", []),
        environment={},
        arms=[RecordedArm(arm, "own", {}, []) for arm in arms],
        blocks=blocks,
    )
