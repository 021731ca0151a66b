"""The traces of a run folder that a repro is made from, and what else of it goes into the bundle."""

import os
from pathlib import Path
from typing import NamedTuple

from tracekit.capture.private_names import private_words
from tracekit.capture.run_folder import Manifest, RecordedArm, read_manifest
from tracekit.errors import UnusableInput
from tracekit.trace.reader import Trace

REPORT = "report.html"


class Inputs(NamedTuple):
    """Trace of the graph run, of the eager run, DOT files; and of a run folder its manifest and the graph arm."""

    graph: str
    baseline: str | None
    dumps: list[str]
    manifest: Manifest | None = None
    arm: str | None = None


def inputs_of_run(folder: Path) -> Inputs:
    """The arm with graphs on, else the first, against the one with graphs off, else the second. UnusableInput."""
    manifest = read_manifest(folder)
    recorded = [(arm, trace) for arm in manifest.arms if (trace := _first_trace(manifest, arm))]
    if not recorded:
        raise UnusableInput(f"{folder}: holds no trace: record one with tracekit run --graphs both")
    arm, graph = next((each for each in recorded if each[0].role == "on"), recorded[0])
    others = [each for each in recorded if each[0] is not arm]
    eager = next((each for each in others if each[0].role == "off"), None)
    baseline = eager or next((each for each in others if each[0].role == "own"), None)
    dumps = manifest.dumps.files if manifest.dumps else []
    return Inputs(
        os.fspath(folder / graph),
        os.fspath(folder / baseline[1]) if baseline else None,
        [os.fspath(folder / file) for file in dumps],
        manifest,
        arm.name,
    )


def _first_trace(manifest: Manifest, arm: RecordedArm) -> str | None:
    blocks = sorted(
        (block for block in manifest.blocks if block.arm == arm.name and block.trace), key=lambda b: b.block
    )
    return blocks[0].trace if blocks else None


def public_report(folder: Path, trace: Trace) -> tuple[bytes | None, str | None]:
    """The run's HTML report, where there is one; else, or where it tells of a person or a place, None and why."""
    file = folder / REPORT
    if not file.is_file():
        return None, None
    content = file.read_bytes()
    text = content.decode(errors="replace").lower()
    private = {*private_words(trace.export), os.fspath(folder.absolute()).lower(), os.fspath(Path.home()).lower()}
    if any(word in text for word in private):
        return None, f"{REPORT} is left out: it tells of a user, a host or a place"
    return content, None
