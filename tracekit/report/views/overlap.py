"""What a person is shown of overlap."""

from tracekit.analysis.results import DeviceOverlap, Episodes, Overlap
from tracekit.report.document import Document, Section
from tracekit.report.views.contention import contention_section, kernel_name, sets_section
from tracekit.report.views.devices import device_section
from tracekit.report.views.names import trace_notes, warning_lines
from tracekit.units import duration, percent

MOST_PAIRS = 30
"""Pairs of kernels shown to a person; every one is in the other formats."""


def document(answer: Overlap) -> Document:
    """Depth, kinds of overlap, pairs of streams and kernels, episodes."""
    return Document(
        f"overlap in {', '.join([answer.traces[0].path, *answer.selected])}",
        [
            Section("", notes=[*trace_notes(answer.traces), f"how it was traced: {answer.traced_by}"]),
            device_section(answer.devices),
            _depth(answer.devices),
            _kinds(answer.devices),
            _streams(answer),
            _stream_pairs(answer),
            _kernel_pairs(answer),
            contention_section(answer.contention),
            _episodes(answer.episodes),
            sets_section(answer.sets),
        ],
        warning_lines(answer.warnings),
    )


def _depth(devices: list[DeviceOverlap]) -> Section:
    rows = [
        [str(line.device), depth, duration(length), percent(length / line.busy_ns if line.busy_ns else None)]
        for line in devices
        for depth, length in (line.depth_ns or {}).items()
    ]
    return Section("Time by depth (kernels at once)", ["device", "depth", "time", "of busy"], rows)


def _kinds(devices: list[DeviceOverlap]) -> Section:
    rows = [
        [
            str(line.device),
            duration(line.stream_overlap_ns),
            duration(line.graph_branch_overlap_ns),
            duration(line.same_stream_overlap_ns),
        ]
        for line in devices
        if line.stream_overlap_ns or line.graph_branch_overlap_ns or line.same_stream_overlap_ns
    ]
    if any(line.overlapped_ns is None for line in devices):
        return Section("Kinds of overlap", notes=["withheld: records were lost"])
    if any(line.stream_overlap_ns is None for line in devices):
        return Section("Kinds of overlap", notes=["unknown: streams are not recorded"])
    if not rows:
        hidden = any(line.idle_ns is None for line in devices)
        return Section(
            "Kinds of overlap",
            notes=[
                "none seen; inside of graphs traced as a whole it is hidden"
                if hidden
                else "no kernel ran beside another"
            ],
        )
    notes = []
    if any(line.graph_branch_overlap_ns for line in devices):
        notes.append("edges unknown: whether an edge orders two nodes of a launch is not in the trace")
    columns = ["device", "different streams", "graph branches on one stream", "same stream"]
    return Section("Kinds of overlap", columns, rows, notes=notes)


def _streams(answer: Overlap) -> Section:
    rows = [
        [
            str(line.device),
            _stream(line.process, line.stream, answer),
            str(line.kernel_rows),
            duration(line.busy_ns),
            duration(line.overlapped_ns),
        ]
        for line in answer.streams
    ]
    return Section("Streams", ["device", "stream", "kernels", "busy", "overlapped"], rows)


def _stream(process: int | None, stream: int | None, answer: Overlap) -> str:
    name = "unknown" if stream is None else str(stream)
    several = len({line.process for line in answer.streams}) > 1
    return f"{name} (process {process})" if several else name


def _stream_pairs(answer: Overlap) -> Section:
    rows = [
        [
            str(pair.device),
            _stream(pair.process_a, pair.a, answer),
            _stream(pair.process_b, pair.b, answer),
            duration(pair.overlap_ns),
        ]
        for pair in answer.stream_pairs[:MOST_PAIRS]
    ]
    return Section("Streams side by side", ["device", "stream", "stream", "at once"], rows)


def _kernel_pairs(answer: Overlap) -> Section:
    rows = [
        [
            kernel_name(pair.a),
            kernel_name(pair.b),
            duration(pair.overlap_ns),
            str(pair.instances),
            _times(pair.stretch_a),
            _times(pair.stretch_b),
        ]
        for pair in answer.kernel_pairs[:MOST_PAIRS]
    ]
    notes = ["stretch: duration / solo; a stretched kernel was slowed, which does not say that time was lost"]
    if len(answer.kernel_pairs) > MOST_PAIRS:
        notes.append(f"{len(answer.kernel_pairs) - MOST_PAIRS} more pairs: --format csv lists all")
    return Section(
        "Kernels side by side",
        ["kernel", "beside", "at once", "pairs", "stretch", "stretch of the other"],
        rows,
        text_columns=2,
        notes=notes if rows else [],
    )


def _times(stretch: float | None) -> str:
    return "unknown" if stretch is None else f"{stretch:.2f}x"


def _bounds(episodes: Episodes) -> list[int]:
    return [gain for gain in (episodes.gain_low_ns, episodes.gain_high_ns) if gain is not None]


def _episodes(episodes: Episodes) -> Section:
    if not episodes.count:
        return Section("Overlap episodes", notes=["none"])
    if episodes.wall_ns is None:
        return Section("Overlap episodes", notes=["withheld: records were lost"])
    notes = [
        f"{episodes.count} episodes with two or more kernels at once, {duration(episodes.wall_ns)} in all",
        f"solo durations from: {episodes.solo_from}; known for all members in {percent(episodes.coverage)} of it",
    ]
    if episodes.gain_ns is not None and episodes.solo_ns is not None:
        outcome = "saved" if episodes.gain_ns >= 0 else "lost"
        notes.append(
            f"where known: took {duration(episodes.covered_wall_ns)} (W) for work of {duration(episodes.solo_ns)} (S) "
            f"one after another: overlap {outcome} {duration(abs(episodes.gain_ns))} "
            f"[{' to '.join(duration(abs(gain)) for gain in sorted(_bounds(episodes), key=abs))}]"
        )
    if episodes.coverage is not None and episodes.coverage < 1:
        notes.append(
            f"bounds over all: gain between {duration(episodes.bound_low_ns)} and {duration(episodes.bound_high_ns)}; "
            "--baseline EAGER supplies solo durations"
        )
    return Section("Overlap episodes", notes=notes)
