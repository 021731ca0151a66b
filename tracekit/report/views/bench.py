"""What a person is shown of a benchmark."""

from collections.abc import Iterator, Sequence

from tracekit.analysis.results.bench import Bench, BenchRow
from tracekit.report.document import Document, Section
from tracekit.report.views.bench_sentences import disagreements, lessons, over_m
from tracekit.report.views.names import time_interval, warning_lines
from tracekit.units import duration, percent, shortened

MARKS = {
    "above-roofline": "faster than memory can deliver the bytes: they came from a cache, so no model that reads its "
    "weights once a token gets this time",
    "at-floor": "half of the time or more is the wait for the result, not the operation",
    "batching-hides": "the batched loop overlaps its independent calls; decoding, where each call waits for the one "
    "before it, pays the time of the chain",
    "host-bound": "building the graph of one operation takes about as long as running it, so the host may set the pace",
    "unsettled": "no steady time: a longer loop does not take longer in proportion",
    "unsteady": "the times drift or have two states",
    "outliers": "some times lie so far from the others that they hold much of the time",
    "merged": "withheld: the compiler merged or fused calls, so fewer ran than were asked for",
    "unbounded": "withheld: the chain's values vanish or grow without bound",
}
"""Each mark in plain words."""


def document(answer: Bench) -> Document:
    """Times by M first, then what they mean, then every cell."""
    return Document(
        f"bench of {answer.operation}",
        [
            Section("", notes=[*_surroundings(answer)]),
            _times(answer.rows),
            Section("What the methods say of each other", notes=[*disagreements(answer)]),
            Section("Over M", notes=[*over_m(answer)]),
            Section("How to measure this", notes=[*lessons(answer)]),
            _cells(answer.rows),
            _in_trace(answer.rows),
            _checks(answer),
        ],
        warning_lines(answer.warnings),
    )


def _surroundings(answer: Bench) -> Iterator[str]:
    around = answer.surroundings
    yield f"{around.device}; MLX {around.versions.get('mlx', 'unknown')}; " + ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in answer.shape.items()
    )
    if answer.link == "pair":
        yield "chained through a pair, K to N and N to K in turn: each time is the mean of the two"
    if answer.link == "projection":
        yield "chained through a small operation whose own time was measured in a chain of its own and subtracted"
    yield f"last-level cache {around.cache_bytes / 2**20:.0f} MiB ({around.cache_basis})"
    yield f"memory bandwidth {around.bandwidth / 1e9:.1f} GB/s ({around.bandwidth_basis})"
    yield f"waiting for an empty evaluation takes {duration(around.floor_ns)}"
    for when, clocks, heat in zip(("before", "after"), around.clocks_mhz, around.temperatures_c, strict=False):
        yield f"GPU {when}: {_list(clocks)} MHz, {_list(heat)} degrees C"
    if around.throttled:
        yield f"clocks held back by: {', '.join(around.throttled)}"


def _list(values: Sequence[float | None]) -> str:
    return ", ".join("unknown" if value is None else f"{value:g}" for value in values)


def _times(rows: Sequence[BenchRow]) -> Section:
    """M against method and weights; the ratio is of the chain, the method to believe for decoding."""
    kinds = list(dict.fromkeys((row.method, row.weights) for row in rows))
    of: dict[tuple[str, str, int], dict[tuple[str, str], BenchRow]] = {}
    for row in rows:
        of.setdefault((row.candidate, row.block, row.m), {})[row.method, row.weights] = row
    columns = ["operation", "block", "M", *(f"{method}, {weights}" for method, weights in kinds)]
    cells = [
        [candidate, block, str(m), *(_time(found.get(kind)) for kind in kinds)]
        for (candidate, block, m), found in of.items()
    ]
    notes = ["median time of one operation; '?' where rounds differ by more than 10 %: see its interval below"]
    return Section("Time of one operation", columns, cells, text_columns=2, notes=notes)


def _time(row: BenchRow | None) -> str:
    if row is None or row.time_ns is None:
        return "withheld" if row and row.n == 0 else "-"
    wide = row.ci95 is None or row.ci95[1] - row.ci95[0] > 0.1 * row.time_ns
    return duration(row.time_ns) + ("?" if wide else "")


def _cells(rows: Sequence[BenchRow]) -> Section:
    columns = ["operation", "block", "method", "weights", "marks", "M", "n", "median", "95 %", "to first M", "bytes"]
    columns += ["GB/s", "of roofline", "overhead", "length", "needed", "building"]
    cells = [
        [
            row.candidate,
            row.block,
            row.method,
            row.weights,
            ", ".join(row.marks),
            str(row.m),
            str(row.n),
            duration(row.time_ns),
            time_interval(row.ci95),
            "-" if row.of_first is None else f"{row.of_first:.2f}x",
            "-" if row.bytes is None else f"{row.bytes / 1e6:.3g} MB",
            "-" if row.bytes_per_s is None else f"{row.bytes_per_s / 1e9:.1f}",
            percent(row.roofline_share, 0),
            duration(row.overhead_ns),
            "-" if row.length is None else str(row.length),
            "-" if row.needed_length is None else str(row.needed_length),
            duration(row.build_ns),
        ]
        for row in rows
    ]
    marks = dict.fromkeys(mark for row in rows for mark in row.marks)
    notes = [f"{mark}: {MARKS[mark]}" for mark in marks]
    return Section("Every time", columns, cells, text_columns=5, notes=notes)


def _in_trace(rows: Sequence[BenchRow]) -> Section:
    columns = ["operation", "block", "method", "weights", "longest kernel", "M", "kernels", "its median", "overlapped"]
    cells = [
        [
            row.candidate,
            row.block,
            row.method,
            row.weights,
            shortened(row.in_trace.kernel or "(unnamed)"),
            str(row.m),
            str(row.in_trace.kernels),
            duration(row.in_trace.median_ns),
            percent(row.in_trace.overlapped_share, 0),
        ]
        for row in rows
        if row.in_trace
    ]
    return Section("In the trace", columns, cells, text_columns=5)


def _checks(answer: Bench) -> Section:
    columns = ["operation", "M", "error", "allowed", "chain of permutations"]
    exact = {True: "exact", False: "NOT EXACT", None: "-"}
    cells = [
        [
            each.candidate,
            str(each.m),
            "-" if each.error is None else f"{each.error:.1e}",
            "-" if each.allowed is None else f"{each.allowed:.0e}",
            exact[each.exact_chain],
        ]
        for each in answer.checks
    ]
    return Section("Outputs against a float32 reference", columns, cells)
