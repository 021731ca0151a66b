"""What a person is shown of a repro and of a run of it."""

from tracekit.analysis.results import Repro, ReproNodeCheck, ReproVerify
from tracekit.report.document import Document, Section
from tracekit.report.views.names import warning_lines
from tracekit.units import duration, percent, shortened

MOST_NODES = 20
"""Kernels shown to a person; every one is in the JSON."""


def document(answer: Repro) -> Document:
    """What was chosen, what it is made of, and what to do with it."""
    of_kind = ", ".join(f"{count} {kind}" for kind, count in answer.kinds.items())
    of_body = ", ".join(f"{count} {body}" for body, count in answer.stand_ins.items())
    edges = "from its DOT dump" if answer.edges_from == "dump" else "inferred"
    rows = [
        ["launch", f"{answer.launch}, one of {answer.launches} of its graph"],
        ["nodes", f"{answer.nodes}: {of_kind}"],
        ["edges", f"{answer.edges}, {edges}"],
        ["stand-ins", of_body or "none"],
        ["span", duration(answer.span_ns)],
        ["side by side", duration(answer.side_by_side_ns)],
        ["the same work alone", duration(answer.solo_ns)],
        ["lost", duration(answer.lost_ns)],
        ["launches that lost", f"{answer.slower_launches} of {answer.known_launches} whose loss is known"],
    ]
    notes = [
        f"chosen because, {answer.chosen}",
        *answer.notes,
        "no GPU has run it yet",
        f"to run it: cd {answer.folder} && ./build.sh && ./run.sh (exit code 10: reproduced)",
        f"to hand it over: {answer.archive}; its issue text: tracekit repro --issue",
    ]
    return Document(
        f"repro of {answer.traces[0].path}",
        [Section("", ["what", "this launch"], rows, text_columns=2, notes=notes)],
        warning_lines(answer.warnings),
    )


def verification(answer: ReproVerify) -> Document:
    """Whether the loss is reproduced, then what differs, then the kernels that differ most."""
    rows = [
        ["GPU", answer.gpu, answer.measured_gpu],
        ["side by side", duration(answer.side_by_side_ns), duration(answer.measured_side_by_side_ns)],
        ["lost", duration(answer.lost_ns), duration(answer.measured_lost_ns)],
    ]
    ratio = answer.graph_over_serial
    notes = [_conclusion(answer)]
    if ratio and None not in ratio:
        notes.append(f"graph / graph-serial: {ratio[0]:.3f} (95 % interval {ratio[1]:.3f} - {ratio[2]:.3f})")
    shown = sorted(answer.nodes, key=lambda node: -_gap(node))[:MOST_NODES]
    kernels = [
        [
            shortened(node.name),
            str(node.node),
            duration(node.solo_ns),
            duration(node.measured_solo_ns),
            "unknown" if node.stretch is None else f"{node.stretch:.2f}",
            "unknown" if node.measured_stretch is None else f"{node.measured_stretch:.2f}",
        ]
        for node in sorted(shown, key=lambda node: node.node)
    ]
    return Document(
        "does the repro reproduce it?",
        [
            Section("", ["", "traced", "measured"], rows, text_columns=3, notes=notes),
            Section("What differs", notes=answer.differences),
            Section(
                "Kernels that differ most",
                ["kernel", "node", "alone, traced", "alone, measured", "stretch, traced", "stretch, measured"],
                kernels,
            ),
        ],
        warning_lines(answer.warnings),
    )


def _conclusion(answer: ReproVerify) -> str:
    if answer.share is None:
        return "the traced launch lost nothing, or its loss is unknown: there is nothing to reproduce"
    if answer.reproduces:
        return f"reproduces {answer.share:.2f} of the loss"
    return f"does not reproduce: {percent(answer.share, 0)} of the loss"


def _gap(node: ReproNodeCheck) -> float:
    """How far a kernel's stretch is from the traced one, in its time alone."""
    if node.stretch is None or node.measured_stretch is None:
        return 0.0
    return abs(node.stretch - node.measured_stretch) * (node.solo_ns or 0)
