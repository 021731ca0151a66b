"""A copy of an export that is safe to attach to a public report.

Nothing is copied unless it is listed here: tables, columns, kinds of rows, settings and how their values
look. Of the strings only those that kept rows refer to remain.
"""

import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import polars as pl

from tracekit.capture.private_names import private_words, replacements
from tracekit.trace import schema
from tracekit.trace.ranges import DOMAIN, PUSH_POP, START_END
from tracekit.trace.reader import Trace
from tracekit.trace.tables import Export

Frames = dict[str, pl.DataFrame]

_GPU_WORK = "start end deviceId contextId greenContextId streamId correlationId globalPid graphNodeId"
_GRAPH_EVENT = (
    "start end eventClass globalTid nameId graphNodeId originalGraphNodeId graphId originalGraphId graphExecId"
)

COLUMNS: dict[str, str] = {
    schema.KERNEL_TABLE: f"{_GPU_WORK} graphId registersPerThread staticSharedMemory "
    + " ".join((*schema.NAME_COLUMNS, *schema.LAUNCH_SHAPE)),
    schema.COPY_TABLES["copy"]: f"{_GPU_WORK} bytes copyKind srcKind dstKind",
    schema.COPY_TABLES["set"]: f"{_GPU_WORK} bytes memKind",
    schema.GRAPH_EXECUTION_TABLE: f"{_GPU_WORK} graphId graphExecId",
    schema.CALL_TABLE: "start end eventClass globalTid correlationId nameId returnValue",
    "CUDA_GRAPH_EVENTS": _GRAPH_EVENT,
    "CUDA_GRAPH_NODE_EVENTS": _GRAPH_EVENT,
    schema.RANGE_TABLE: "start end eventType text globalTid endGlobalTid textId domainId",
    "TARGET_INFO_GPU": "id name smCount computeMajor computeMinor smMajor smMinor",
    "TARGET_INFO_CUDA_GPU": "deviceId name numMultiprocessors computeCapabilityMajor computeCapabilityMinor",
}
"""Table -> the columns that are kept where an export has them."""

_VERSION = r"\d+(?:\.\d+)*"
SETTINGS: dict[str, dict[str, str]] = {
    "META_DATA_EXPORT": {
        "EXPORT_PRODUCT_VERSION": _VERSION,
        "EXPORT_SCHEMA_VERSION": _VERSION,
        "EXPORT_PLATFORM": r"(?:linux|windows|macos|mac|qnx)(?:-[a-z0-9]{1,12})?",
    },
    "META_DATA_CAPTURE": {"CUDA_GRAPH_TRACE_OPTIONS:MODE": r"(?i:graph|node)"},
    "TARGET_INFO_SYSTEM_ENV": {"NvDriverVersion": _VERSION, "CudaDriverVersion": _VERSION},
}
"""Table -> setting -> the regular expression that the whole of a kept value matches."""

_TEXTS = {"text", "name"}
_STRING_IDS = {*schema.NAME_COLUMNS, "nameId", "textId"}
_THREADS = {"globalPid", "globalTid", "endGlobalTid"}


class Scrubbed(NamedTuple):
    """What a scrubbed export holds."""

    rows: int
    removed_names: int


def scrub(trace: Trace, target: Path) -> Scrubbed:
    """Write the scrubbed copy of a trace to ``target``, which appears whole or not at all, replacing what is there.

    Equal content gives equal bytes, whatever the order of its rows and the numbers of its strings.
    Processes and threads are numbered from 1 in their order. Raises UnusableInput where the trace cannot be
    read, OSError or sqlite3.Error where the target cannot be written.
    """
    export = trace.export
    frames = {table: rows for table in COLUMNS if (rows := _kept_rows(export, table)) is not None}
    settings = {table: rows for table in SETTINGS if (rows := _kept_settings(export, table)) is not None}
    removed = replacements(_names(frames, trace.strings), private_words(export))
    frames = _with_names_replaced(frames, removed)
    frames, strings = _with_strings_numbered(frames, trace.strings, removed)
    frames = _with_threads_numbered(frames) | settings
    frames = {table: rows.sort(pl.all(), nulls_last=True) for table, rows in frames.items()}
    _put(target, {schema.STRING_TABLE: strings, **frames})
    return Scrubbed(sum(rows.height for rows in frames.values()), len(removed))


def _kept_rows(export: Export, table: str) -> pl.DataFrame | None:
    present = {column.lower() for column in export.columns(table)}
    kept = [column for column in COLUMNS[table].split() if column.lower() in present]
    if not kept:
        return None
    rows = export.read(table, {column: pl.String if column in _TEXTS else pl.Int64 for column in kept})
    if table == schema.RANGE_TABLE and "eventType" in kept:
        # Names of threads, categories and marks are rows of this table too.
        rows = rows.filter(pl.col("eventType").is_in([PUSH_POP, START_END, DOMAIN]))
    return rows


def _kept_settings(export: Export, table: str) -> pl.DataFrame | None:
    if not {"name", "value"} <= export.columns(table):
        return None
    rows = export.read(table, {"name": pl.String, "value": pl.String})
    known = pl.any_horizontal(
        (pl.col("name") == name) & pl.col("value").str.contains(rf"^(?:{pattern})$")
        for name, pattern in SETTINGS[table].items()
    )
    return rows.filter(known)


def _names(frames: Frames, strings: pl.DataFrame) -> dict[str, bool]:
    """Every name that would be kept, and whether it is that of kernels alone."""
    kernels = _values({schema.KERNEL_TABLE: frames.get(schema.KERNEL_TABLE, pl.DataFrame())}, _STRING_IDS, pl.Int64)
    others = _values({table: rows for table, rows in frames.items() if table != schema.KERNEL_TABLE}, _STRING_IDS)
    names = dict.fromkeys(strings.filter(pl.col("id").is_in(kernels.implode()))["value"], True)
    names |= dict.fromkeys(strings.filter(pl.col("id").is_in(others.implode()))["value"], False)
    return names | dict.fromkeys(_values(frames, _TEXTS, pl.String), False)


def _values(frames: Frames, columns: Iterable[str], kind: type[pl.DataType] = pl.Int64) -> pl.Series:
    """The distinct values of columns of that kind, in order."""
    found = [rows[column] for rows in frames.values() for column in rows.columns if column in columns]
    return pl.concat([pl.Series([], dtype=kind), *(each.rename("") for each in found)]).unique().drop_nulls().sort()


def _with_names_replaced(frames: Frames, removed: dict[str, str]) -> Frames:
    return {
        table: rows.with_columns(pl.col(sorted(_TEXTS & set(rows.columns))).replace(removed))
        for table, rows in frames.items()
    }


def _with_strings_numbered(
    frames: Frames, strings: pl.DataFrame, removed: dict[str, str]
) -> tuple[Frames, pl.DataFrame]:
    """The frames with new string ids, and the strings (``id``, ``value``) that they refer to, in order."""
    used = strings.filter(pl.col("id").is_in(_values(frames, _STRING_IDS).implode()))
    used = used.with_columns(pl.col("value").replace(removed))
    used = used.with_columns(number=pl.col("value").rank("dense").cast(pl.Int64))
    numbered = _renumbered(frames, _STRING_IDS, used["id"], used["number"])
    return numbered, used.select(id="number", value="value").unique().sort("id")


def _with_threads_numbered(frames: Frames) -> Frames:
    known = _values(frames, _THREADS)
    ids = pl.DataFrame({"id": known}).with_columns(process=pl.col("id") // schema.PROCESS_UNIT)
    # A process comes before its threads, as the lowest of their ids.
    thread = pl.col("id").rank("dense").over("process").cast(pl.Int64) - 1
    process = pl.col("process").rank("dense").cast(pl.Int64)
    numbers = ids.select(number=process * schema.PROCESS_UNIT + thread)["number"]
    return _renumbered(frames, _THREADS, known, numbers)


def _renumbered(frames: Frames, columns: set[str], old: pl.Series, new: pl.Series) -> Frames:
    return {
        table: rows.with_columns(
            pl.col(sorted(columns & set(rows.columns))).replace_strict(old, new, default=None, return_dtype=pl.Int64)
        )
        for table, rows in frames.items()
    }


def _put(target: Path, frames: Frames) -> None:
    with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=f".{target.name}.") as folder:
        aside = Path(folder, "scrubbed.sqlite")
        with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
            for setting in ("page_size = 4096", "journal_mode = OFF", "synchronous = OFF"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN")
            for table, rows in frames.items():
                fields = (
                    f'"{column}" {"TEXT" if kind == pl.String else "INTEGER"}' for column, kind in rows.schema.items()
                )
                connection.execute(f"CREATE TABLE {table} ({', '.join(fields)})")
                places = ", ".join("?" * rows.width)
                connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows.iter_rows())
            connection.execute("COMMIT")
        with aside.open("r+b") as file:
            # SQLite stamps its own version here, and the bytes shall not depend on the machine.
            file.seek(96)
            file.write(bytes(4))
        aside.replace(target)
