"""Results of ``tracekit bench`` in the results database: each is kept whole and has a number."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tracekit.analysis.results import Bench, BenchModel
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.results_file import database_path, filed, opened, utc

if TYPE_CHECKING:
    from sqlite_utils import Database

BenchAnswer = Bench | BenchModel

MOST_LISTED = 8
"""Kept results that a message lists, newest first."""


class Kept(NamedTuple):
    """The number a result was kept under; or ``trouble``, one line that says why it was not."""

    number: int | None
    trouble: str | None


def keep_bench(answer: BenchAnswer, db: Path | None = None) -> Kept:
    """Keep a result. Never raises."""
    numbers: list[int] = []
    row = {
        "time": utc(datetime.now(UTC)),
        "operation": title(answer),
        "device": answer.surroundings.device if isinstance(answer, Bench) else answer.device,
        "answer": msgspec.json.encode(answer).decode(),
    }

    def write(database: "Database") -> None:
        database.table("benches").insert(row)
        numbers.append(database.execute("SELECT last_insert_rowid()").fetchone()[0])

    trouble = filed(db, write)
    return Kept(None if trouble else numbers[0], trouble)


def read_bench(name: str, db: Path | None = None) -> BenchAnswer:
    """A result by its number in the database, or from a JSON file. Raises WrongUsage or UnusableInput."""
    if Path(name).is_file():
        return _decoded(Path(name).read_bytes(), name)
    path = database_path(db)
    known: list[tuple[int, str]] = []
    if path.exists():
        with opened(path) as database:
            if name.isdecimal() and (row := _found(database, int(name))):
                return _decoded(row.encode(), f"result {name}")
            known = [tuple(row) for row in database.execute("SELECT id, operation FROM benches ORDER BY id DESC")]
    listed = ", ".join(f"{number} ({operation})" for number, operation in known[:MOST_LISTED])
    raise WrongUsage(f"{name}: is neither a file nor the number of a kept result: there are: {listed or 'none'}")


def title(answer: BenchAnswer) -> str:
    """What was timed."""
    return answer.operation if isinstance(answer, Bench) else f"{answer.phase} of {answer.model}"


def _found(database: "Database", number: int) -> str | None:
    row = database.execute("SELECT answer FROM benches WHERE id = ?", [number]).fetchone()
    return str(row[0]) if row else None


def _decoded(text: bytes, name: str) -> BenchAnswer:
    try:
        command = msgspec.json.decode(text, type=_Head).command
        if command == "benchmodel":
            return msgspec.json.decode(text, type=BenchModel)
        return msgspec.json.decode(text, type=Bench)
    except msgspec.MsgspecError as error:
        raise UnusableInput(f"{name}: is no result of 'tracekit bench' ({error})") from error


class _Head(msgspec.Struct):
    command: str
