"""JSON by the schema that ships with the package (``tracekit/report/schema.json``)."""

from importlib.resources import files
from typing import Any

import msgspec

from tracekit.analysis.results import (
    Answer,
    Bench,
    BenchCompare,
    BenchModel,
    Diff,
    GraphAnswer,
    Info,
    Overlap,
    Repro,
    ReproVerify,
    Summary,
)
from tracekit.filed import History
from tracekit.report.document import UNPRINTABLE

ANSWERS = (
    Summary, Overlap, Diff, Bench, BenchModel, BenchCompare, GraphAnswer, Repro, ReproVerify, Info, History,
)  # fmt: skip


def render(answer: Answer) -> str:
    """The answer as indented JSON, keys in the order of their declaration; control characters are escaped."""
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    return UNPRINTABLE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of every answer, made from the result types, by the value of ``command``."""
    _, components = msgspec.json.schema_components(ANSWERS, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tracekit --format json",
        "type": "object",
        "required": ["tracekit", "command", "traces", "warnings"],
        "oneOf": [
            {"properties": {"command": {"const": _command(kind)}}, "$ref": f"#/$defs/{kind.__name__}"}
            for kind in ANSWERS
        ],
        "$defs": components,
    }


def _command(kind: type[Answer]) -> str:
    """The command that an answer is of."""
    return kind.__name__.removesuffix("Answer").lower()


def shipped_schema() -> dict[str, Any]:
    """The schema file of the installed package."""
    text = files("tracekit.report").joinpath("schema.json").read_text()
    schema: dict[str, Any] = msgspec.json.decode(text)
    return schema
