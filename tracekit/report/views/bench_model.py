"""What a person is shown of a model's speed."""

from tracekit.analysis.results import BenchModel
from tracekit.analysis.results.bench import SpeedRow
from tracekit.report.document import Document, Section
from tracekit.report.views.names import ratio_interval, time_interval, warning_lines
from tracekit.units import duration


def document(answer: BenchModel) -> Document:
    """Workload against arm, then each figure with its interval."""
    arms = list(answer.arms)
    of = {(row.workload, row.arm): row for row in answer.rows}
    workloads = list(dict.fromkeys(row.workload for row in answer.rows))
    table = [[workload, *(_speed(of.get((workload, arm))) for arm in arms)] for workload in workloads]
    return Document(
        f"bench {answer.phase} of {answer.model}",
        [
            Section("", notes=[f"{answer.device}; MLX {answer.versions.get('mlx', 'unknown')}"]),
            Section("Arms", notes=[f"{name}: {told}" for name, told in answer.arms.items()]),
            Section("Speed by arm", ["workload", *arms], table),
            _details(answer.rows, arms[0]),
        ],
        warning_lines(answer.warnings),
    )


def _speed(row: SpeedRow | None) -> str:
    """A pass of several tokens and a prefill by their time, decoding by tokens/s, as such tables are published."""
    if row is None or row.time_ns is None or row.tokens_per_s is None:
        return "-"
    return f"{row.tokens_per_s:.1f} tok/s" if row.workload == "decode" else duration(row.time_ns)


def _details(rows: list[SpeedRow], ground: str) -> Section:
    columns = ["workload", "arm", "tokens", "n", "median", "95 %", "tok/s", f"to {ground}", "95 %", "warm-up"]
    cells = [
        [
            row.workload,
            row.arm,
            str(row.tokens),
            str(row.n),
            duration(row.time_ns),
            time_interval(row.ci95),
            "-" if row.tokens_per_s is None else f"{row.tokens_per_s:.1f}",
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            ratio_interval(row.ratio_ci95),
            duration(row.warm_up_ns),
        ]
        for row in rows
    ]
    notes = ["warm-up: the first run of each process, not counted; ratios are of times, over processes in turn"]
    notes += [f"{row.workload}, {row.arm}: {row.unsteady}" for row in rows if row.unsteady]
    return Section("Every time", columns, cells, text_columns=2, notes=notes)
