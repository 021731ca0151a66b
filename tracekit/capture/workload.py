"""What is run: a Python script, a module or any command line, and the framework it uses."""

import ast
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracekit.errors import UnusableInput, WrongUsage
from tracekit.frameworks import FRAMEWORKS, Framework

Annotate = Literal["phases", "modules", "sync-modules", "off"]


@dataclass(frozen=True)
class Workload:
    """``words`` begin with the script, the module or the program, and go on with its arguments.

    A script or a module is run by this interpreter, its NVTX ranges made as ``annotate`` says; a command line is
    run as it is.
    """

    form: Literal["script", "module", "command"]
    words: tuple[str, ...]
    annotate: Annotate = "phases"

    @property
    def annotated(self) -> bool:
        """Whether ranges are made for it."""
        return self.form != "command" and self.annotate != "off"

    @property
    def name(self) -> str:
        """What to call it where nobody says."""
        return self.words[0] if self.form == "module" else Path(self.words[0]).resolve().stem

    @property
    def command(self) -> list[str]:
        """The command line that runs it."""
        if self.form == "command":
            return list(self.words)
        mode = ["-m", "tracekit.capture.annotate", "--mode", self.annotate] if self.annotated else []
        return [sys.executable, *mode, *(["-m"] if self.form == "module" else []), *self.words]

    @property
    def in_this_environment(self) -> bool:
        """Whether it sees the packages of this interpreter."""
        found = shutil.which(self.words[0])
        return self.form != "command" or (
            found is not None and Path(found).absolute().parent == Path(sys.executable).parent
        )

    def check(self) -> None:
        """Raise UnusableInput for a script that cannot be read, WrongUsage for a program that is not there."""
        first = self.words[0]
        if self.form == "script" and not (first and Path(first).exists()):
            raise UnusableInput(f"{first!r}: no such script: check the path; a program's command line goes after '--'")
        if self.form == "command" and shutil.which(first) is None:
            raise WrongUsage(f"{first}: no such program: check its name, or give its path")

    @property
    def framework(self) -> Framework | None:
        """The framework by the program's name or by what the script imports; nothing that is imported is followed."""
        form, words = self.form, self.words
        if form == "command" and re.fullmatch(r"python[\d.]*", Path(words[0]).name):
            form, words = _given_to_python(words)
        if form == "command":
            program = Path(words[0]).name
            return next((each for each in FRAMEWORKS if re.fullmatch(each.programs, program)), None)
        modules = {words[0].partition(".")[0]} if form == "module" else set()
        modules |= _imported(_source(form, words[0]))
        return next((each for each in FRAMEWORKS if any(re.fullmatch(each.modules, name) for name in modules)), None)

    def warnings(self, framework: Framework) -> list[str]:
        """What is known to go wrong with such a command line."""
        line = shlex.join(self.words)
        return [trap.warning for trap in framework.traps if re.search(trap.command, line)]

    def port(self, framework: Framework | None) -> int | None:
        """Where it serves: as its arguments say, else by the framework's default where it is an engine's own server."""
        for option, value in zip(("", *self.words), (*self.words, ""), strict=True):
            given = value if option == "--port" else option.removeprefix("--port=")
            if option.startswith("--port") and given.isdecimal():
                return int(given)
        return framework.port if framework and self.form != "script" else None


def named_framework(name: str) -> Framework:
    """The framework that is called so, or that has a module or a program called so. Raises WrongUsage."""
    wanted = name.casefold()
    for framework in FRAMEWORKS:
        patterns = (re.escape(framework.name.casefold()), framework.modules, framework.programs)
        if any(re.fullmatch(pattern, wanted) for pattern in patterns):
            return framework
    known = ", ".join(framework.name for framework in FRAMEWORKS)
    raise WrongUsage(f"--framework {name}: not known; one of {known}")


def _given_to_python(words: tuple[str, ...]) -> tuple[Literal["script", "module", "command"], tuple[str, ...]]:
    """What a command line has Python run, where that is plain to see."""
    for at, word in enumerate(words[1:], 1):
        if word == "-m" and words[at + 1 :]:
            return "module", words[at + 1 :]
        if not word.startswith("-"):
            return "script", words[at:]
    return "command", words


def _source(form: str, name: str) -> str:
    """The source of a script, or of a module beside it; empty where there is none to be read."""
    path = Path(name) if form == "script" else Path(*name.split("."))
    candidates = [path, path / "__main__.py"] if form == "script" else [path.with_suffix(".py"), path / "__main__.py"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8", errors="replace")
    return ""


def _imported(source: str) -> set[str]:
    """Top-level names of what a source imports anywhere."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Python itself will say what is wrong with it.
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
