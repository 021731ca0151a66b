"""What a person is shown of predictions."""

from tracekit.analysis.results import Diff, Number, WhatIf
from tracekit.report.document import Section
from tracekit.units import duration, percent, shortened


def what_if_section(answer: Diff) -> Section:
    """Predicted phase times against those as it ran; empty where nothing was asked."""
    times = _times(answer)
    rows = [_row(each, times.get((each.phase, each.arm))) for each in answer.what_if]
    columns = ["phase", "arm", "what if", "as it ran", "predicted", "interval", "ratio", "measured", "error"]
    made = dict.fromkeys(
        (each.option.split()[0], each.basis) for each in answer.what_if if each.predicted_ns is not None
    )
    notes = [f"{option} rests on {basis}" for option, basis in made]
    notes += [
        f"{shortened(each.phase)}, {each.arm}: {each.option} cannot be predicted: {each.basis}"
        for each in answer.what_if
        if each.predicted_ns is None
    ]
    if made:
        notes.append("intervals carry p25-p75 of solo durations and of the pause between dependent kernels")
    return Section("What if", columns, rows, text_columns=3, notes=notes)


def _times(answer: Diff) -> dict[tuple[str, str], Number | None]:
    times: dict[tuple[str, str], Number | None] = {}
    for phase in answer.phases:
        times |= {(phase.name, "a"): phase.time_ns_a, (phase.name, phase.arm): phase.time_ns_b}
    return times


def _row(each: WhatIf, time: Number | None) -> list[str]:
    predicted = each.predicted_ns
    return [
        shortened(each.phase),
        each.arm,
        each.option,
        duration(time),
        duration(predicted),
        "-" if each.low_ns is None else f"{duration(each.low_ns, 4)} - {duration(each.high_ns, 4)}",
        "-" if predicted is None or not time else f"{predicted / time:.3f}",
        "-" if each.measured_arm is None else f"{duration(each.measured_ns)} ({each.measured_arm})",
        "-" if each.error is None else f"{'+' if each.error > 0 else ''}{percent(each.error)}",
    ]
