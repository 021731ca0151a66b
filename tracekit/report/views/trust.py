"""What a person is shown of the checks: those that did not pass."""

from tracekit.analysis.results import Check, Diff
from tracekit.report.document import Section
from tracekit.units import shortened

_ORDER = ["fail", "warn", "cannot tell"]


def trust_section(answer: Diff) -> Section:
    """Checks that say the same of several arms and phases share a row.

    Where instances are too few, it goes without saying that nothing else can be told of them.
    """
    few = {(check.arm, check.phase) for check in answer.trust if check.name == "instances" and check.failed}
    alike: dict[tuple[str, str, str], list[Check]] = {}
    for check in answer.trust:
        implied = check.outcome == "cannot tell" and (check.arm, check.phase) in few
        if check.outcome != "pass" and not implied:
            alike.setdefault((check.outcome, check.name, check.message), []).append(check)
    rows = [
        [name, outcome, _listed([check.arm for check in of]), _listed([check.phase for check in of]), message]
        for (outcome, name, message), of in sorted(alike.items(), key=lambda each: _ORDER.index(each[0][0]))
    ]
    passed = sum(check.outcome == "pass" for check in answer.trust)
    notes = [f"{passed} checks passed"] if answer.trust else []
    if any(check.failed and check.withholds for check in answer.trust):
        notes.append("a failed check of times or records keeps its phase undecided")
    return Section("Trust", ["check", "outcome", "arm", "phase", "finding"], rows, text_columns=5, notes=notes)


def _listed(values: list[str | None]) -> str:
    """Each once; what concerns all has none."""
    return ", ".join(dict.fromkeys(shortened(value) for value in values if value is not None)) or "all"
