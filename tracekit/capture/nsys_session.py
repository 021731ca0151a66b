"""One run of ``nsys profile``: what it was told, what it said, and the process it leaves in the background."""

import os
import re
import secrets
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tracekit.capture.nsys_options import Settings, Version, profile_arguments


@dataclass(frozen=True)
class Session:
    """A session of nsys that writes ``report``."""

    name: str
    command: list[str]
    report: Path

    @classmethod
    def of(cls, nsys: Path, version: Version, settings: Settings, folder: Path, workload: Sequence[str]) -> "Session":
        """A session of its own name, with everything it writes in ``folder``. Raises WrongUsage as the options do."""
        name = f"tracekit-{os.getpid()}-{secrets.token_hex(4)}"
        report = folder / "report.nsys-rep"
        options, _ = profile_arguments(version, settings, output=report.with_suffix(""), session=name)
        return cls(name, [str(nsys), "profile", *options, *workload], report)

    def by_hand(self, workload: Sequence[str]) -> str:
        """The command line without what only makes sense within a run."""
        options = self.command[: self.command.index("/bin/sh")]
        options = [option for option in options if not option.startswith(("--output=", "--session-new="))]
        return shlex.join([*options, *workload])

    def sweep(self) -> None:
        """End the background process where nsys itself is gone, and remove what it was writing."""
        for agent, unfinished in self._agents():
            with suppress(ProcessLookupError):
                os.kill(agent, signal.SIGKILL)
            for file in unfinished:
                file.unlink(missing_ok=True)

    def _agents(self) -> Iterator[tuple[int, list[Path]]]:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"--session-name={self.name}".encode() in (process / "cmdline").read_bytes().split(b"\0"):
                    opened = [link.readlink() for link in (process / "fd").iterdir()]
                    yield int(process.name), [file for file in opened if file.suffix == ".qdstrm"]


def complaint(words: str) -> str:
    """The last complaint in what nsys said, else the last thing that is not progress."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", words)]
    said = [line for line in lines if line and "%" not in line and not line.startswith(("usage:", "Try ", "Gener"))]
    complaints = [line for line in said if re.search(r"error|fail|lost|unable|cannot|not found|unrecogni", line, re.I)]
    return (complaints or said or ["it gave no reason"])[-1]
