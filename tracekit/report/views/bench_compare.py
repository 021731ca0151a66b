"""What a person is shown of two results of ``tracekit bench``."""

from tracekit.analysis.results import BenchCompare
from tracekit.report.document import Document, Section
from tracekit.report.views.names import ratio_interval, warning_lines
from tracekit.units import duration


def document(answer: BenchCompare) -> Document:
    """What else differs first, then every time."""
    rows = [
        [
            row.name,
            duration(row.old_ns),
            duration(row.new_ns),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            ratio_interval(row.ci95),
            row.status,
        ]
        for row in answer.rows
    ]
    notes = ["ratio is new / old; same: the interval lies within 2 % of 1; slower, faster: beyond that"]
    return Document(
        f"bench {answer.new} against {answer.old}",
        [
            Section("What else differs, old | new", notes=answer.differences),
            Section("Times", ["time of", "old", "new", "ratio", "95 %", "status"], rows, notes=notes),
        ],
        warning_lines(answer.warnings),
    )
