"""Running a script or a module as ``__main__``, as python itself would."""

import builtins
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from tracekit.errors import WrongUsage

OWN_FOLDER = str(Path(__file__).parent)


class Program:
    """What ``python SCRIPT`` or ``python -m MODULE`` would run: code, or source to compile, and its ``__main__``."""

    def __init__(self, code: CodeType | bytes, file: str, loader: Any, spec: ModuleSpec | None = None) -> None:  # noqa: ANN401
        self._code = code
        self._file = file
        self._main = main = ModuleType("__main__")
        main.__loader__, main.__spec__ = loader, spec
        main.__package__ = spec.parent if spec else None
        main.__dict__.update(
            __annotations__={}, __builtins__=builtins, __cached__=spec.cached if spec else None, __file__=file
        )

    def run(self) -> None:
        """Run it once. Raises what it raises."""
        sys.modules["__main__"] = self._main
        try:
            if isinstance(self._code, bytes):
                self._code = compile(self._code, self._file, "exec", dont_inherit=True)
            exec(self._code, self._main.__dict__)
        except SystemExit:
            raise
        except BaseException:
            _leave_own_frames_out()
            raise


def load_script(script: str, arguments: list[str]) -> Program:
    """A source file, or a folder or zip file with a ``__main__`` module; ``sys.argv`` and ``sys.path`` are set for it.

    Raises WrongUsage where it cannot be read.
    """
    path = Path(script)
    sys.argv = [script, *arguments]
    if path.is_dir() or zipfile.is_zipfile(path):
        # python -P leaves out the folder that a script lies in, yet not the folder or archive that is the program.
        sys.path[: 0 if sys.flags.safe_path else 1] = [str(path.absolute())]
        spec = PathFinder.find_spec("__main__", sys.path[:1])
        if spec is None:
            raise WrongUsage(f"{script}: no '__main__' module in it: name a script")
        return _of_spec(spec)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise WrongUsage(f"{script}: cannot be read ({error.strerror}): check the path") from error
    _first_on_path(str(path.resolve().parent))
    file = str(path.absolute())
    return Program(source, file, SourceFileLoader("__main__", file))


def load_module(name: str, arguments: list[str]) -> Program:
    """A module, or a package's ``__main__``; ``sys.argv`` and ``sys.path`` are set for it.

    Raises WrongUsage where there is none, and what its packages raise when they are imported.
    """
    _first_on_path(str(Path.cwd()))
    sys.argv = ["-m", *arguments]
    try:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None or not hasattr(spec.loader, "get_code"):
        raise WrongUsage(f"-m {name}: no such module can be run by {sys.executable}: check the name, or install it")
    sys.argv[0] = str(spec.origin)
    return _of_spec(spec)


def _of_spec(spec: ModuleSpec) -> Program:
    loader: Any = spec.loader
    return Program(loader.get_code(spec.name), str(spec.origin), loader, spec)


def _first_on_path(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _leave_own_frames_out() -> None:
    """Have the traceback that ends the program begin in the script, and without hooks."""
    show = sys.excepthook

    def show_without(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        for one in _chain(error):
            one.__traceback__ = _trimmed(one.__traceback__)
        show(kind, error, error.__traceback__)

    sys.excepthook = show_without


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            waiting += [one.__cause__, one.__context__]
            yield one


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace:
        code = trace.tb_frame.f_code
        if code is Program.run.__code__:
            kept = []
        elif not code.co_filename.startswith(OWN_FOLDER):
            kept.append(trace)
        trace = trace.tb_next
    for frame, following in zip(kept, [*kept, None][1:], strict=True):
        frame.tb_next = following
    return kept[0] if kept else None
