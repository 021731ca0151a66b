"""Predictions of phase times: planted answers, one definition of serial, and what cannot be predicted."""

from pathlib import Path

import pytest
from conftest import Run
from nsys_export import Export
from phase_building import OWN
from planted_dumps import write_dumps
from sample_models import MODELS
from sample_plan import Graph, Train

from tracekit.analysis.diff import compare
from tracekit.analysis.results import Diff, WhatIf
from tracekit.graph.dumps import dump_files, read_dumps
from tracekit.trace.source import open_trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
MS = 1_000_000
UNIT = 1 << 32
NODE_GAP = 1200


def asked(names: list[str], *questions: str, dumps: Path | None = None) -> Diff:
    traces = [open_trace(SAMPLES / f"{name}.sqlite", cached=False) for name in names]
    try:
        return compare(traces, questions=questions, dumps=read_dumps(dump_files([str(dumps)])) if dumps else [])
    finally:
        for trace in traces:
            trace.close()


def of(answer: Diff, arm: str, phase: str, question: str) -> WhatIf:
    (found,) = (each for each in answer.what_if if (each.arm, each.phase, each.option) == (arm, phase, question))
    return found


@pytest.mark.parametrize("model", ["gbx", "moe", "stock"])
def test_serial_is_the_prediction_of_the_phase_and_is_held_against_the_measured_arm(model: str) -> None:
    answer = asked([f"{model}-graphs-{arm}" for arm in ("on", "off", "serial")], "serial")
    for phase in answer.phases:
        if phase.arm == "b":
            found = of(answer, "a", phase.name, "serial")
            assert (found.predicted_ns, (found.low_ns, found.high_ns)) == (
                phase.what_if_serial_ns_a,
                phase.what_if_serial_interval_a,
            )
            assert found.measured_arm == "c"
            assert found.error == pytest.approx(0, abs=0.01)
    assert {each.arm for each in answer.what_if} == {"a", "c"}
    assert of(answer, "c", "decode", "serial").measured_arm is None


def test_no_overlap_of_every_kernel_is_serial() -> None:
    answer = asked(["gbx-graphs-on", "gbx-graphs-off"], "serial", "no-overlap-of .")
    for phase in ("prefill", "decode"):
        serial, isolated = (of(answer, "a", phase, question) for question in ("serial", "no-overlap-of ."))
        assert isolated.predicted_ns == pytest.approx(serial.predicted_ns, rel=1e-9)
        assert (isolated.low_ns, isolated.high_ns) == pytest.approx((serial.low_ns, serial.high_ns), rel=1e-9)


def critical(graph: Graph) -> int:
    """The longest path of a planted graph at solo speed, a pause on each edge, the plan's groups in turn."""
    paths = []
    for group in graph:
        long = max(kernel.solo_ns for kernel in group.kernels)
        short = (group.short.solo_ns + NODE_GAP) * group.count - NODE_GAP if isinstance(group, Train) else 0
        paths.append(max(long, short))
    return sum(paths) + NODE_GAP * (len(graph) - 1)


@pytest.mark.parametrize("with_dumps", [False, True])
def test_the_critical_path_of_planted_graphs_is_that_of_the_plan(with_dumps: bool, tmp_path: Path) -> None:
    dumps = write_dumps("gbx", tmp_path) if with_dumps else None
    answer = asked(["gbx-graphs-on", "gbx-graphs-off"], "critical-path", dumps=dumps)
    found = of(answer, "a", "prefill", "critical-path")
    planted = sum(map(critical, MODELS["gbx"].prefill))
    assert found.predicted_ns == pytest.approx(planted, rel=0.01)
    assert ("edges of dumps" in found.basis, "inferred" in found.basis) == (with_dumps, not with_dumps)
    assert found.low_ns is not None
    assert found.high_ns is not None
    assert found.low_ns <= (found.predicted_ns or 0) <= found.high_ns


Rows = list[tuple[str, int, int, int]]
"""Nodes of a launch: kernel, start, end, stream."""

LAYER: Rows = [("a", 0, 100, 7), ("p", 100, 300, 7), ("x", 100, 300, 8), ("y", 310, 400, 7), ("z", 310, 410, 8)]
SOLO = {"a": 100, "p": 80, "x": 70, "y": 50, "z": 60}


def steps(rows: Rows, *, graphs: bool, count: int = 8, skip: str = "") -> Export:
    """The same step again and again, each a range with the launches inside."""
    export = Export()
    for step in range(count):
        at = MS + step * 10_000
        export.range(at, at + 900, "step", domain=OWN)
        if graphs:
            correlation = export.launch(at + 10, at + 20, "cudaGraphLaunch_v10000")
        for node, (name, start, end, stream) in enumerate(rows):
            if name in skip:
                continue
            if not graphs:
                correlation = export.launch(at + 10 + node, at + 11 + node)
            export.kernel(
                at + 100 + start,
                at + 100 + end,
                stream,
                name,
                correlation=correlation,
                node=UNIT + node if graphs else None,
            )
    return export


def in_a_row() -> Rows:
    rows, at = [], 0
    for name, length in SOLO.items():
        rows.append((name, at, at + length, 7))
        at += length + 20
    return rows


def predicted(folder: Path, question: str, *, skip: str = "") -> WhatIf:
    graph = steps(LAYER, graphs=True).write(folder / "graph.sqlite")
    eager = steps(in_a_row(), graphs=False, skip=skip).write(folder / "eager.sqlite")
    with open_trace(graph, cached=False) as a, open_trace(eager, cached=False) as b:
        (found,) = compare([a, b], questions=[question]).what_if
    return found


# The range begins 100 before the first kernel, the last one ends after 410. Pauses before kernels with nothing of
# their launch running: 0 (p, x) and 10 (y, z), median 5 of the four.
AS_IT_RAN = 510
GAP = 5


@pytest.mark.parametrize(
    ("question", "time"),
    [
        # p beside x took 200 for 80 + 70; y beside z ran [310, 400) for 50 + (60 - 10 that z ran alone).
        ("serial", AS_IT_RAN + (80 + 70 - 200) + (50 + 50 - 90) + 2 * GAP),
        ("no-overlap-of p", AS_IT_RAN + (80 + 70 - 200) + GAP),
        ("no-overlap-of ^[yz]$", AS_IT_RAN + (50 + 50 - 90) + GAP),
        # a, then the longer of p and x, then the longer of y and z.
        ("critical-path", AS_IT_RAN - 410 + 100 + GAP + 80 + GAP + 60),
    ],
)
def test_predictions_of_two_pairs(question: str, time: int, tmp_path: Path) -> None:
    assert predicted(tmp_path, question).predicted_ns == pytest.approx(time)


@pytest.mark.parametrize(
    ("question", "skip", "said"),
    [
        ("no-overlap-of nothing", "", "no kernel of it matches 'nothing'"),
        ("no-overlap-of p", "x", "no arm shows how long `x` takes alone"),
        ("critical-path", "xz", "no arm shows how long `x` and 1 more takes alone"),
        ("serial", "xz", "too much of its overlap is of kernels without a known solo duration"),
    ],
)
def test_what_cannot_be_predicted_says_why(question: str, skip: str, said: str, tmp_path: Path) -> None:
    found = predicted(tmp_path, question, skip=skip)
    assert (found.predicted_ns, found.low_ns, found.high_ns, found.error) == (None, None, None, None)
    assert found.basis == said


def test_kernels_that_are_not_asked_about_need_no_solo_duration(tmp_path: Path) -> None:
    assert predicted(tmp_path, "no-overlap-of p", skip="yz").predicted_ns == AS_IT_RAN - 50 + GAP


def test_launches_of_a_phase_that_ran_at_once_have_no_one_critical_path(tmp_path: Path) -> None:
    export = Export()
    for step in range(8):
        at = MS + step * 10_000
        export.range(at, at + 900, "step", domain=OWN)
        for executable in (1, 2):
            correlation = export.launch(at + 10 * executable, at + 10 * executable + 5, "cudaGraphLaunch_v10000")
            for node in range(2):
                begin = at + 100 + 100 * node + 50 * executable
                export.kernel(
                    begin,
                    begin + 40,
                    6 + executable,
                    f"k{executable}",
                    correlation=correlation,
                    node=executable * UNIT + node,
                )
    with open_trace(export.write(tmp_path / "trace.sqlite"), cached=False) as trace:
        found = compare([trace, trace], questions=["critical-path"]).what_if
    assert [each.basis for each in found] == ["graph launches of it ran at the same time"] * 2


def test_nothing_is_predicted_unless_asked() -> None:
    assert asked(["gbx-graphs-on", "gbx-graphs-off"]).what_if == []


@pytest.mark.parametrize("question", ["parallel", "no-overlap-of", "no-overlap-of (", "serial qmm", ""])
def test_a_question_that_cannot_be_asked_is_wrong_usage(question: str, call: Run) -> None:
    ran = call("diff", SAMPLES / "gbx-graphs-on.sqlite", SAMPLES / "gbx-graphs-off.sqlite", "--what-if", question)
    assert (ran.code, ran.out) == (2, "")
    assert "--what-if" in ran.err


def test_predictions_stand_in_a_table_of_their_own(call: Run) -> None:
    arms = [SAMPLES / f"gbx-graphs-{arm}.sqlite" for arm in ("on", "off", "serial")]
    out = call("diff", *arms, "--what-if", "serial", "--what-if", "no-overlap-of qmm").out
    table = out[out.index("What if") :].splitlines()
    assert any(line.split()[:3] == ["prefill", "a", "serial"] and "(c)" in line for line in table)
    assert any("no-overlap-of qmm" in line for line in table)
