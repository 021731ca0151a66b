"""A run folder as a page: what each block took, what there is to know of it, and what to do next."""

import shlex
from pathlib import Path

from tracekit.capture.run_folder import Block, Manifest
from tracekit.report.document import Document, Section
from tracekit.units import duration, percent

COLUMNS = ["arm", "trace", "findings", "block", "profiled", "plain", "profiler cost"]


def document(manifest: Manifest, folder: Path) -> Document:
    """The page."""
    told = [finding for block in manifest.blocks for finding in block.findings] + manifest.findings
    return Document(
        f"{folder}: {manifest.state}{f' ({manifest.reason})' if manifest.reason else ''}",
        [
            Section("", COLUMNS, [_row(block) for block in manifest.blocks], text_columns=3),
            Section("", notes=_next(manifest, folder)),
        ],
        list(dict.fromkeys(f"{each.code}: {each.message}" for each in told if each.message != manifest.reason)),
    )


def _row(block: Block) -> list[str]:
    profiled, plain = block.profiled_wall_s, block.plain_wall_s
    cost = profiled / plain - 1 if profiled and plain else None
    codes = ", ".join(dict.fromkeys(finding.code for finding in block.findings))
    times = [_seconds(profiled), _seconds(plain), percent(cost)]
    return [block.arm, block.trace or "none", codes or "-", str(block.block), *times]


def _seconds(value: float | None) -> str:
    return duration(None if value is None else value * 1e9)


def _next(manifest: Manifest, folder: Path) -> list[str]:
    traced = {block.arm: block.trace for block in manifest.blocks if block.trace}
    if len(traced) > 1:
        return [f"next: {shlex.join(['tracekit', 'diff', str(folder)])}"]
    return [f"next: {shlex.join(['tracekit', 'summary', str(folder / trace)])}" for trace in traced.values()]
