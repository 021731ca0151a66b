"""The main list of an answer as comma-separated values, one row each, all figures in ns."""

import csv
import io
from collections.abc import Sequence
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
from tracekit.report.document import printable


def render(answer: Answer) -> str:
    """The answer's main list: kernels, pairs of kernels, compared kernels, graphs, phases found, or what is filed."""
    rows = [_flat(msgspec.to_builtins(row)) for row in _main_list(answer)]
    out = io.StringIO()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _main_list(answer: Answer) -> Sequence[msgspec.Struct]:
    match answer:
        case Summary():
            return answer.kernels
        case Overlap():
            return answer.kernel_pairs
        case Diff():
            return answer.kernels
        case GraphAnswer():
            return answer.graphs
        case Repro():
            return answer.rows
        case ReproVerify():
            return answer.nodes
        case Bench() | BenchModel() | BenchCompare():
            return answer.rows
        case Info():
            return answer.phases
        case History():
            return next(rows for rows in (answer.kernels, answer.phases, answer.entries) if rows is not None)
    raise AssertionError(answer)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Nested names become ``a_name``, dimensions ``64x1x1``, bounds ``low high``, control characters ``?``."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{inner}": each for inner, each in _flat(value).items()}
        elif key.startswith(("grid", "block", "cluster")) and isinstance(value, list | tuple):
            flat[key] = "x".join("?" if each is None else str(each) for each in value)
        elif isinstance(value, list | tuple):
            flat[key] = " ".join(map(str, value))
        else:
            flat[key] = printable(value) if isinstance(value, str) else value
    return flat
