"""Whether nsys really records and exports: a child that opens one range, recorded, exported and looked for.

Exit codes of nsys prove nothing; the files do.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import tracekit
from tracekit.capture.nsys import ATTEMPTS
from tracekit.capture.outside import ask
from tracekit.capture.phase import DOMAIN
from tracekit.errors import TracekitError

SECONDS = 30.0
"""How long nsys may take over the recording, and again over the export; either usually takes a second or two."""

_RANGE = "self test"
_CHILD = f"from tracekit import phase\nwith phase({_RANGE!r}): pass"


class SelfTest(NamedTuple):
    """What came of each step: None where it worked, else what went wrong. A step after a failed one is wrong too."""

    record: str | None
    export: str | None
    ranges: str | None


def self_test(nsys: Path) -> SelfTest:
    """Record this interpreter opening a range, as ``tracekit.phase`` does, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tracekit-") as folder:
        report, export = Path(folder, "self-test.nsys-rep"), Path(folder, "self-test.sqlite")
        # The child imports this very package, and nothing from the folder the user happens to be in (-P).
        search = os.pathsep.join([str(Path(tracekit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        for _ in range(ATTEMPTS):
            recorded = ask(
                [nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--output", report.with_suffix(""),
                 sys.executable, "-P", "-c", _CHILD],
                SECONDS,
                {"PYTHONPATH": search, "TMPDIR": folder},
            )  # fmt: skip
            if _is_filled(report) or recorded.code is None:
                break
        if not _is_filled(report):
            return SelfTest(f"nsys profile {recorded.ending} and leaves no report", _NOT_TRIED, _NOT_TRIED)
        exported = ask([nsys, "export", "--type", "sqlite", "--output", export, report], SECONDS)
        if not _is_filled(export):
            return SelfTest(None, f"nsys export {exported.ending} and leaves no file", _NOT_TRIED)
        return SelfTest(None, *_looked_for(export))


_NOT_TRIED = "not tried"


def _is_filled(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _looked_for(export: Path) -> tuple[str | None, str | None]:
    """What is wrong with the export, and with its ranges."""
    from tracekit.trace.source import open_trace

    try:
        with open_trace(export, cached=False) as trace:
            ranges = trace.ranges.select("domain", "name").rows()
    except TracekitError:
        return "nsys leaves a file that is no export", _NOT_TRIED
    return None, None if (DOMAIN, _RANGE) in ranges else "a range was opened and is not in the trace"
