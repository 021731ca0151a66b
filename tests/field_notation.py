"""Small exports and answers about them, in few words: kernels are (start, end, stream, name) in ns."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.inventory import inventory
from tracekit.analysis.results import Diff, Info, Overlap, Summary
from tracekit.analysis.side_by_side import overlaps_of
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.report import table
from tracekit.report.views import diff, info, overlap, summary
from tracekit.trace.source import open_trace

Kernel = tuple[int, int, int, str]

MS = 1_000_000
LEAD = 1_000
"""From a step's range start, where its calls are made, to the zero of its kernels' times."""


def eager(export: Export, at: int, kernels: Iterable[Kernel], *, pid: int = 1) -> None:
    """Kernels launched one by one from ``at`` on, their times counted from ``at + LEAD``."""
    for index, (start, end, stream, name) in enumerate(kernels):
        correlation = export.launch(at + index, at + index + 1, pid=pid)
        export.kernel(at + LEAD + start, at + LEAD + end, stream, name, pid=pid, correlation=correlation)


def graph(export: Export, at: int, kernels: Iterable[Kernel], *, pid: int = 1) -> None:
    """The same kernels as the nodes of one graph launch."""
    correlation = export.launch(at, at + LEAD // 2, "cudaGraphLaunch_v10000", pid=pid)
    for node, (start, end, stream, name) in enumerate(kernels):
        export.kernel(
            at + LEAD + start,
            at + LEAD + end,
            stream,
            name,
            pid=pid,
            correlation=correlation,
            node=2 << 32 | node,
            graph=2,
        )


def steps(
    kernels: Sequence[Kernel],
    *,
    graphs: bool,
    count: int = 9,
    name: str = "step",
    stretched: Sequence[float] = (1.0, 1.001, 0.999),
) -> Export:
    """``count`` ranges of domain tracekit, far apart, each of which runs ``kernels``, by one graph launch or
    one by one. The first counts as warm-up. Times vary from range to range by the factors ``stretched``."""
    export = Export()
    apart = 10 * max(end for _, end, _, _ in kernels) + 10 * LEAD
    for index in range(count):
        at = MS + index * apart
        factor = stretched[index % len(stretched)]
        scaled = [
            (round(start * factor), round(end * factor), stream, called) for start, end, stream, called in kernels
        ]
        (graph if graphs else eager)(export, at, scaled)
        export.range(at, at + apart // 2, name, domain="tracekit")
    return export


def summary_of(export: Export | Path, folder: Path, selection: Selection = Selection()) -> Summary:  # noqa: B008
    """``tracekit summary``."""
    with open_trace(_path(export, folder, "trace"), cached=False) as trace:
        return summarise_trace(trace, selection)


def overlap_of(export: Export | Path, folder: Path, baseline: Export | None = None) -> Overlap:
    """``tracekit overlap``."""
    with ExitStack() as stack:
        trace = stack.enter_context(open_trace(_path(export, folder, "trace"), cached=False))
        if baseline is None:
            return overlaps_of(trace, None, Selection())
        alone = stack.enter_context(open_trace(_path(baseline, folder, "baseline"), cached=False))
        return overlaps_of(trace, alone, Selection())


def info_of(export: Export | Path, folder: Path) -> Info:
    """``tracekit info``."""
    with open_trace(_path(export, folder, "trace"), cached=False) as trace:
        return inventory(trace)


def diff_of(a: Export | Path, b: Export | Path, folder: Path, *, warm_up: int = 1) -> Diff:
    """``tracekit diff``."""
    with ExitStack() as stack:
        traces = [
            stack.enter_context(open_trace(_path(export, folder, name), cached=False))
            for name, export in (("a", a), ("b", b))
        ]
        return compare(traces, warm_up=warm_up)


def _path(export: Export | Path, folder: Path, name: str) -> Path:
    return export if isinstance(export, Path) else export.write(folder / f"{name}.sqlite")


def shown(answer: Summary | Overlap | Info | Diff) -> str:
    """What a person reads."""
    match answer:
        case Summary():
            return table.render(summary.document(answer))
        case Overlap():
            return table.render(overlap.document(answer))
        case Info():
            return table.render(info.document(answer))
        case Diff():
            return table.render(diff.document(answer))


def codes(answer: Summary | Overlap | Info | Diff) -> dict[str, int]:
    """Code -> count of the warnings; counts of one code are added up."""
    found: dict[str, int] = {}
    for warning in answer.warnings:
        found[warning.code] = found.get(warning.code, 0) + warning.count
    return found
