"""What a person is shown of a trace's contents."""

from tracekit.analysis.results import Info
from tracekit.report.document import Document, Section
from tracekit.report.views.names import warning_lines
from tracekit.units import duration, shortened


def document(answer: Info) -> Document:
    """Facts, processes, phases."""
    return Document(
        f"info of {answer.traces[0].path}",
        [_facts(answer), _rows(answer), _processes(answer), _phases(answer)],
        warning_lines(answer.warnings),
    )


def _facts(answer: Info) -> Section:
    line = answer.traces[0]
    gpus = [
        f"{name} (compute capability {capability})" if capability else name
        for name, capability in zip(line.gpus, answer.compute_capabilities, strict=True)
    ]
    span = None if answer.first_ns is None or answer.last_ns is None else answer.last_ns - answer.first_ns
    facts = {
        "nsys": line.nsys_version,
        "export schema": line.schema_version,
        "platform": answer.platform,
        "GPU": ", ".join(dict.fromkeys(gpus)) or None,
        "driver": answer.driver_version,
        "CUDA": answer.cuda_version,
        "graph tracing": line.granularity,
        "devices used": _numbers(answer.devices),
        "streams used": _numbers(answer.streams),
        "GPU work": None
        if span is None
        else f"{duration(span)}, from {duration(answer.first_ns, 6)} to {duration(answer.last_ns, 6)}",
    }
    return Section(
        "",
        ["fact", "value"],
        [[name, value or "not recorded"] for name, value in facts.items()],
        text_columns=2,
    )


def _numbers(values: list[int] | list[int | None]) -> str | None:
    return ", ".join("unknown" if value is None else str(value) for value in values) or None


def _rows(answer: Info) -> Section:
    rows = [
        [name, "not recorded" if name in answer.not_recorded else str(count)] for name, count in answer.rows.items()
    ]
    return Section("Rows", ["rows", "count"], rows)


def _processes(answer: Info) -> Section:
    rows = [
        [
            "unknown" if line.process is None else str(line.process),
            str(line.kernel_rows),
            str(line.launches),
            str(line.graph_launches),
            duration(line.launch_ns),
        ]
        for line in answer.processes
    ]
    return Section("Processes", ["process", "kernels", "kernel launches", "graph launches", "time in launches"], rows)


def _phases(answer: Info) -> Section:
    rows = [
        [shortened(line.name), str(line.instances), str(line.kernel_rows), duration(line.kernel_ns)]
        for line in answer.phases
    ]
    return Section(
        "Phases",
        ["phase", "instances", "kernels", "kernel time"],
        rows,
        notes=[f"from: {answer.phases_from}"],
    )
