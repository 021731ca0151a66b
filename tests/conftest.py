"""What several tests share: the command line in a process of its own, and traces beside the repository."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracekit.cli import main

SHARED = Path(__file__).parents[2] / "shared"


@dataclass(frozen=True)
class Ran:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:  # noqa: ANN401
        """The JSON on stdout of a run that went well."""
        assert (self.code, self.err) == (0, ""), self.err
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``run(*arguments, cwd=, env=)``: tracekit with a cache of its own; ``env`` adds variables."""
    cache = tmp_path_factory.mktemp("cache")

    def ran(*arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        process = subprocess.run(
            [sys.executable, "-m", "tracekit", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "TRACEKIT_CACHE": str(cache), "TRACEKIT_DB": str(cache / "results.db"), **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(process.returncode, process.stdout, process.stderr)

    return ran


@pytest.fixture
def call(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """``call(*arguments)``: the same within this process, which is quicker; any other exception passes through."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TRACEKIT_CACHE", str(cache))
    monkeypatch.setenv("TRACEKIT_DB", str(cache / "results.db"))

    def called(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tracekit", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return Ran(int(end.value.code or 0), *capsys.readouterr())

    return called


@pytest.fixture(scope="session")
def real_traces() -> list[Path]:
    """Exports recorded by strangers; skips where they are not beside the repository."""
    found = sorted((SHARED / "traces").glob("*.sqlite"))
    if not found:
        pytest.skip("the real traces are not beside the repository")
    return found
