"""``tracekit doctor``."""

import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tracekit.commands import output
from tracekit.errors import OutsideProgramFailed

if TYPE_CHECKING:
    from tracekit.capture.doctor import Doctor
    from tracekit.report.document import Document


class DoctorFormat(StrEnum):
    """What the findings are written as."""

    table = "table"
    json = "json"


def doctor(
    form: Annotated[DoctorFormat, typer.Option("--format", "-f", help="What to write.")] = DoctorFormat.table,
) -> None:
    """What recording needs: what is here, what is missing, and the command that mends it.

    nsys is tried out: a process is recorded and exported, and its NVTX range looked for. Exits with 0 when
    recording can work and with 4 when it cannot. The environment is never shown.
    """
    from tracekit.capture.doctor import examine_machine

    with output.progress("trying out what recording needs"):
        answer = examine_machine()
    sys.stdout.write(_rendered(answer, form))
    if not answer.can_record:
        raise OutsideProgramFailed(answer.conclusion)


def _rendered(answer: "Doctor", form: DoctorFormat) -> str:
    if form is DoctorFormat.json:
        import msgspec

        return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n"
    from tracekit.report import table

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return table.render(_document(answer), width=width)


def _document(answer: "Doctor") -> "Document":
    from tracekit.report.document import Document, Section

    found = [[check.name, check.state, check.found] for check in answer.checks]
    mends = [[check.name, check.mend] for check in answer.checks if check.mend]
    return Document(
        "what recording needs",
        [
            Section("", ["what", "state", "found"], found, text_columns=3),
            Section("Mends", ["what", "mend"], mends, text_columns=2),
            # What stands in the way is the error that follows.
            Section("", notes=[answer.conclusion] if answer.can_record else []),
        ],
        [],
    )
