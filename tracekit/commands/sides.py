"""The arms of a comparison as the user names them: files, files of a side, or a run folder."""

import os
import re
from itertools import takewhile
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tracekit.analysis.results import Diff, ProfilerCost, Verdict, Warn
from tracekit.errors import UnusableInput, WrongUsage

if TYPE_CHECKING:
    from tracekit.capture.run_folder import Block, Manifest

MANIFEST = "run.json"
"""The file that makes a folder a run folder."""

MOST_ARMS = 26
"""Arms are called by letters."""

SPOILT = {"interrupted", "workload-failed", "mislabelled"}
"""Findings of a block that keep it out of a comparison."""


class Sides(NamedTuple):
    """Arms, each a list of trace files; what the comparison is called; the run folder's manifest if it is one."""

    arms: list[list[str]]
    workload: str
    manifest: "Manifest | None" = None

    @property
    def files(self) -> list[str]:
        """All traces."""
        return [file for arm in self.arms for file in arm]


def sides_of(traces: list[str], a: list[str], b: list[str]) -> Sides:
    """What to compare. Raises WrongUsage, or UnusableInput for a run folder without two arms."""
    if a or b:
        if traces or not (a and b):
            raise WrongUsage("with --a and --b give the files of both sides so, and none besides")
        return Sides([a, b], _common_name([*a, *b]))
    if len(traces) == 1 and (Path(traces[0]) / MANIFEST).is_file():
        return _of_run(Path(traces[0]))
    if len(traces) < 2:
        raise WrongUsage(
            "diff needs two or more traces, or a run folder: tracekit diff GRAPHS-ON.sqlite GRAPHS-OFF.sqlite"
        )
    if len(traces) > MOST_ARMS:
        raise WrongUsage(f"diff compares at most {MOST_ARMS} traces, {len(traces)} are given: compare fewer at a time")
    return Sides([[trace] for trace in traces], _common_name(traces))


def _of_run(folder: Path) -> Sides:
    """A run's arms in the order asked for, each with its blocks by number, so that blocks pair up."""
    from tracekit.capture.run_folder import read_manifest

    manifest = read_manifest(folder)
    arms = []
    for arm in manifest.arms:
        blocks = sorted(
            (each for each in manifest.blocks if each.arm == arm.name and each.trace), key=lambda x: x.block
        )
        arms.append([os.fspath(folder / block.trace) for block in blocks if block.trace])
    recorded = [arm for arm in arms if arm]
    if len(recorded) < 2:
        raise UnusableInput(
            f"{folder}: holds traces of {len(recorded)} arm: record more with tracekit run --graphs both"
        )
    whole = min(map(len, recorded))
    return Sides([arm[:whole] for arm in recorded], manifest.name, manifest)


def _codes(block: "Block") -> set[str]:
    return {finding.code for finding in block.findings}


def _common_name(files: list[str]) -> str:
    """The words that all file names begin with: gbx-graphs-on and gbx-graphs-off are of gbx-graphs."""
    words = [re.split(r"[-_. ]", Path(file).name.rsplit(".", 1)[0]) for file in files]
    common = takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False))
    return "-".join(each[0] for each in common) or "-".join(words[0])


def with_profiler_cost(answer: Diff, manifest: "Manifest | None") -> Diff:
    """Put beside the answer what the run's record tells of it, above all what profiling cost in wall time.

    Where the unprofiled times put the arms in another order, there is no verdict on the whole.
    """
    if manifest is None:
        return answer
    from tracekit.analysis.trust.profiler_effect import with_profiler_effect
    from tracekit.analysis.trust.run_checks import PROFILER, run_checks
    from tracekit.capture.run_folder import wall_times

    costs, warnings = [], list(answer.warnings)
    left_out = [block for block in manifest.blocks if SPOILT & _codes(block)]
    if left_out:
        named = ", ".join(
            f"{block.arm}-{block.block} ({', '.join(sorted(SPOILT & _codes(block)))})" for block in left_out
        )
        warnings.append(Warn("blocks_left_out", f"blocks left out: {named}", len(left_out)))
    if manifest.state != "complete":
        warnings.append(Warn("run_incomplete", f"the run is {manifest.state}: not every block was recorded", 0))
    for times in wall_times(manifest):
        ratio = times.profiled / times.plain
        costs.append(ProfilerCost(times.arm, times.blocks, times.plain, times.profiled, round(ratio, 4)))
    letters = _letters(manifest)
    checks = run_checks(manifest, costs, letters)
    warnings += [Warn("profiler_cost", check.message, 0) for check in checks if check.failed and check.name == PROFILER]
    against = [check.message for check in checks if check.withholds and check.failed]
    verdict = answer.verdict
    if against:
        verdict = Verdict("undecided", "; ".join(against), "time the arms without the profiler and go by those times")
    by_letter = {letters[cost.arm]: cost for cost in costs if cost.arm in letters}
    return msgspec.structs.replace(
        answer,
        profiler=costs,
        warnings=warnings,
        trust=[*answer.trust, *checks],
        verdict=verdict,
        phases=[with_profiler_effect(phase, by_letter) for phase in answer.phases],
    )


def _letters(manifest: "Manifest") -> dict[str, str]:
    """Arm -> the letter that the comparison of a run folder calls it by."""
    recorded = [arm.name for arm in manifest.arms if any(b.arm == arm.name and b.trace for b in manifest.blocks)]
    return dict(zip(recorded, ascii_lowercase, strict=False))
