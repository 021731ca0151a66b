"""Answers of ``tracekit repro``: what was written, and how a run compares with the trace."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan

import tracekit
from tracekit.analysis import results
from tracekit.analysis.rows import known_number, number, rounded
from tracekit.analysis.trust.recording import examine
from tracekit.repro.bundle import Expected
from tracekit.repro.model import Repro
from tracekit.repro.verify import Results, Verified
from tracekit.trace.reader import Trace


def repro_answer(
    repro: Repro, traces: Sequence[Trace], folder: str, archive: str, files: Sequence[str], warnings: list[results.Warn]
) -> results.Repro:
    """What was chosen and written."""
    trusts = [examine(trace) for trace in traces]
    loss = repro.loss
    return results.Repro(
        tracekit=tracekit.__version__,
        command="repro",
        traces=[trust.line for trust in trusts],
        warnings=[*trusts[0].warnings, *warnings],
        folder=folder,
        archive=archive,
        files=sorted(files),
        launch=repro.launch,
        launches=repro.launches,
        known_launches=repro.known_launches,
        slower_launches=repro.slower_launches,
        chosen=repro.chosen,
        edges_from=repro.order,
        nodes=len(repro.nodes),
        kinds=_counted(node.kind for node in repro.nodes),
        edges=len(repro.edges),
        span_ns=repro.span_ns,
        side_by_side_ns=loss.side_by_side_ns,
        solo_ns=known_number(loss.solo_ns),
        lost_ns=known_number(loss.lost_ns),
        coverage=loss.coverage,
        stand_ins=_counted(node.kernel.body for node in repro.nodes if node.kernel),
        notes=repro.notes,
        rows=[
            results.ReproRow(
                node=i,
                name=node.name,
                kind=node.kind,
                stand_in=node.kernel.body if node.kernel else None,
                registers=node.kernel.registers if node.kernel else None,
                static_smem=node.kernel.static_smem if node.kernel else None,
                start_ns=node.start_ns,
                duration_ns=node.duration_ns,
                solo_ns=known_number(node.solo_ns),
            )
            for i, node in enumerate(repro.nodes)
        ],
    )


def verify_answer(expected: Expected, measured: Results, found: Verified) -> results.ReproVerify:
    """How a run compares with the trace."""
    return results.ReproVerify(
        tracekit=tracekit.__version__,
        command="reproverify",
        traces=[],
        warnings=[],
        gpu=expected.launch.gpu.name,
        measured_gpu=measured.gpu,
        share=rounded(found.share),
        reproduces=found.reproduces,
        side_by_side_ns=found.loss.side_by_side_ns,
        measured_side_by_side_ns=found.measured.side_by_side_ns,
        lost_ns=known_number(found.loss.lost_ns),
        measured_lost_ns=known_number(found.measured.lost_ns),
        graph_over_serial=measured.graph_over_serial,
        differences=found.differences,
        nodes=[
            results.ReproNodeCheck(
                node=node.node,
                name=node.name,
                solo_ns=known_number(node.solo_ns),
                measured_solo_ns=number(node.measured_solo_ns),
                stretch=rounded(node.stretch),
                measured_stretch=None if isnan(node.measured_stretch) else round(node.measured_stretch, 6),
            )
            for node in found.nodes
        ],
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())
