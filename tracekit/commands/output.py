"""Writing an answer where the user wants it, whole or not at all."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tracekit.commands.options import Format
from tracekit.errors import WrongUsage

if TYPE_CHECKING:
    from tracekit.analysis.results import Answer
    from tracekit.report.document import Document

AnyAnswer = TypeVar("AnyAnswer", bound="Answer")


def check_output(path: Path | None, force: bool, traces: Sequence[str] = ()) -> None:
    """Refuse, before any work is done, to overwrite a file or a trace, or to write where nothing can be written."""
    if path is None:
        return
    if path.exists() and any(Path(trace).exists() and path.samefile(trace) for trace in traces):
        raise WrongUsage(f"{path}: is the trace itself: name another file")
    if os.path.lexists(path) and not path.is_file():
        raise WrongUsage(f"{path}: is no regular file: name another one, or leave -o out and redirect the output")
    if path.exists() and not force:
        raise WrongUsage(f"{path}: exists already: name another file, or add --force")
    if not path.absolute().parent.is_dir():
        raise WrongUsage(f"{path}: its folder does not exist: create it first")


def write_answer(answer: AnyAnswer, view: "Callable[[AnyAnswer], Document]", form: Format, path: Path | None) -> None:
    """Render the answer and put it on stdout or into the file, which appears whole or not at all."""
    text = _rendered(answer, view, form, to_terminal=path is None and sys.stdout.isatty())
    if path is None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise WrongUsage(f"the output cannot be written ({error.strerror}): write it elsewhere") from error
        return
    put(path, text)


def _rendered(answer: AnyAnswer, view: "Callable[[AnyAnswer], Document]", form: Format, *, to_terminal: bool) -> str:
    match form:
        case Format.json:
            from tracekit.report import json

            return json.render(answer)
        case Format.csv:
            from tracekit.report import csv

            return csv.render(answer)
        case Format.markdown:
            from tracekit.report import markdown

            return markdown.render(view(answer))
        case Format.table:
            from tracekit.report import table

            return table.render(
                view(answer),
                width=shutil.get_terminal_size().columns if to_terminal else None,
                colour=to_terminal and not os.environ.get("NO_COLOR"),
            )


def put(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    try:
        _put(path, text)
    except OSError as error:
        raise WrongUsage(f"{path}: cannot be written ({error.strerror}): name another place") from error


def _put(path: Path, text: str) -> None:
    handle, aside = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(aside).chmod(0o666 & ~umask)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on a terminal's stderr while something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
