"""The nsys program: where it is, and having it export a report."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracekit.errors import OutsideProgramFailed, UnusableInput

INSTALL_FOLDERS = (
    "/opt/nvidia/nsight-systems/*/bin",
    "/opt/nvidia/nsight-systems-cli/*/bin",
    "/usr/local/cuda*/bin",
    "/usr/lib/nsight-systems",
)

ATTEMPTS = 3
"""On a busy machine nsys may lose its own background process before it runs anything; trying again helps."""


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("TRACEKIT_NSYS"):
        yield Path(named)
    if found := shutil.which("nsys"):
        yield Path(found)
    for pattern in INSTALL_FOLDERS:
        yield from sorted(Path("/").glob(f"{pattern[1:]}/nsys"), reverse=True)


def find_nsys() -> Path | None:
    """nsys by ``TRACEKIT_NSYS``, on PATH, or in the usual install folders (the newest)."""
    return next((path for path in _candidates() if os.access(path, os.X_OK)), None)


def export_report(report: Path, target: Path, nsys: Path | None = None) -> None:
    """Export a report to a SQLite file, written aside and put in place whole.

    nsys' exit code proves nothing: the file is what counts. Raises UnusableInput when no nsys is
    found, OutsideProgramFailed when nsys leaves no export.
    """
    nsys = nsys or find_nsys()
    if nsys is None:
        raise UnusableInput(
            f"{report}: a report must be exported first and no nsys was found: on the machine that has it "
            f"run: nsys export --type sqlite --output {report.name}.sqlite {report.name}"
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        # nsys may write beside its input, so it gets a link in a folder of its own.
        link = Path(folder) / f"input{report.suffix}"
        link.symlink_to(report.resolve())
        fresh = Path(folder) / "export.sqlite"
        said = _said([nsys, "export", "--type", "sqlite", "--output", fresh, link])
        if not fresh.exists() or fresh.stat().st_size == 0:
            raise OutsideProgramFailed(
                f"{report}: nsys left no export"
                + (f" ({said[-1].strip()})" if said else "")
                + f": try it by hand: {nsys} export --type sqlite {report.name}"
            )
        fresh.replace(target)


def _said(command: Sequence[str | Path]) -> list[str]:
    """Run nsys to its end and give the lines that it said, its complaints if it has any.

    It has a session of its own, so that Ctrl-C reaches only this process, which decides what becomes of nsys.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        out, complaints = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return (complaints or out).strip().splitlines()
