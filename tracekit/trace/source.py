"""From the path a user names to an opened trace."""

import os
from pathlib import Path

from tracekit.capture.nsys import export_report
from tracekit.errors import UnusableInput
from tracekit.trace.cache import FrameCache
from tracekit.trace.identity import cache_folder, file_identity
from tracekit.trace.parquet_folder import ParquetFolder
from tracekit.trace.reader import Trace
from tracekit.trace.sqlite_file import SqliteFile
from tracekit.trace.tables import Export

REPORT_ENDINGS = (".nsys-rep", ".qdrep", ".qdstrm")


def open_trace(name: str | os.PathLike[str], *, cached: bool = True) -> Trace:
    """Open a ``.sqlite`` or ``parquetdir`` export, or export a ``.nsys-rep``/``.qdrep`` report first.

    A report is exported to the cache folder: an ``.sqlite`` that lies beside it may be older and is never
    taken for its export. With ``cached`` false nothing is read from or kept in the cache, but for the
    exported report itself.
    Raises UnusableInput, or OutsideProgramFailed where a report needs nsys and nsys does not do it.
    """
    path = Path(name)
    # A path need not be text; a label must be.
    label = os.fspath(name).encode("utf-8", "backslashreplace").decode()
    if path.is_dir():
        return Trace(label, lambda: _checked(label, Export(ParquetFolder(path))), FrameCache())
    if path.name.endswith(REPORT_ENDINGS):
        path = _exported(path)
    return Trace(
        label,
        lambda: _checked(label, Export(SqliteFile(path))),
        FrameCache.of(path) if cached else FrameCache(),
    )


def _exported(report: Path) -> Path:
    identity = file_identity(report)
    if identity is None:
        raise UnusableInput(f"{report}: no such file, or it cannot be read: check the path")
    export = cache_folder() / identity / "report.sqlite"
    if not export.exists():
        try:
            export.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UnusableInput(
                f"{report}: it is exported to the cache folder {cache_folder()}, which cannot be made "
                f"({error.strerror}): name another one in TRACEKIT_CACHE"
            ) from error
        export_report(report, export)
    return export


def _checked(label: str, export: Export) -> Export:
    """Refuse a database that nsys did not write."""
    if not any(export.find(table) for table in _NSYS_TABLES):
        export.close()
        raise UnusableInput(
            f"{label}: a database, but not an nsys export (it has no {_NSYS_TABLES[0]} table): "
            "make one with: nsys export --type sqlite REPORT.nsys-rep"
        )
    return export


_NSYS_TABLES = (
    "StringIds", "META_DATA_EXPORT", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "TARGET_INFO_GPU",
)  # fmt: skip
