"""What a person is shown of a summary."""

from tracekit.analysis.results import Summary
from tracekit.report.document import Document, Section
from tracekit.report.views.devices import device_section, gap_section
from tracekit.report.views.names import dimensions, kernel_names, trace_notes, warning_lines
from tracekit.units import duration, percent


def document(answer: Summary) -> Document:
    """Kernels, devices, pauses, and what was recorded."""
    return Document(
        f"summary of {', '.join([answer.traces[0].path, *answer.selected])}",
        [
            Section("", notes=trace_notes(answer.traces)),
            _kernels(answer),
            device_section(answer.devices),
            gap_section(answer.devices),
            _recording(answer),
        ],
        warning_lines(answer.warnings),
    )


def _kernels(answer: Summary) -> Section:
    if "kernel ranking" in answer.recording.withheld:
        share = percent(answer.recording.opaque_share)
        return Section(
            "Kernels",
            notes=[f"withheld: {share} of GPU time is inside graphs whose kernels are not in this trace"],
        )
    by_launch = answer.by == "launch"
    shape = ["grid", "block"] if by_launch else []
    columns = ["kernel", *shape, "count", "in graphs", "total", "share", "mean", "median"]
    columns += ["p25", "p75", "p95", "min", "max", "overlapped", ""]
    names = kernel_names(answer.kernels)
    rows = [
        [
            name,
            *([dimensions(row.grid), dimensions(row.block)] if by_launch else []),
            str(row.count),
            str(row.graph_count),
            "withheld" if row.total_ns is None else duration(row.total_ns),
            percent(row.share),
            duration(row.mean_ns),
            duration(row.median_ns) if row.median_ns else "no timing",
            *(duration(value) for value in (row.p25_ns, row.p75_ns, row.p95_ns, row.min_ns, row.max_ns)),
            percent(row.overlapped_fraction),
            "mixed" if row.mixed else "",
        ]
        for name, row in zip(names, answer.kernels, strict=True)
    ]
    notes = [] if rows else ["no kernel to show"]
    if answer.kernels_left_out:
        notes.append(f"{answer.kernels_left_out} more: --top N shows so many, --format csv or json all")
    if any(row.mixed for row in answer.kernels):
        notes.append("mixed: p95 is over 1.5 times p5 without overlap, so the median stands for several kinds of work")
    return Section(f"Kernels by {answer.by}", columns, rows, text_columns=1 + len(shape), notes=notes)


def _recording(answer: Summary) -> Section:
    recording = answer.recording
    notes = [f"recorded: {', '.join(recording.recorded) or 'nothing'}"]
    if recording.opaque_share:
        notes.append(f"hidden inside graphs: {percent(recording.opaque_share)} of GPU time")
    if recording.launch_coverage is not None:
        notes.append(f"records of graph launches that are there: {percent(recording.launch_coverage)}")
    if recording.invalid_rows:
        listed = ", ".join(f"{count} {reason}" for reason, count in recording.invalid_rows.items())
        notes.append(f"kernel rows left out: {listed}")
    if recording.withheld:
        notes.append(f"withheld: {', '.join(recording.withheld)}")
    return Section("What was recorded", notes=notes)
