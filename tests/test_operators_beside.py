"""Which operator ran beside which: overlap and diff with kernels told apart by framework operator."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Run
from field_notation import MS, codes, shown
from nsys_export import Export

from tracekit.analysis.diff import compare
from tracekit.analysis.results import Diff, Overlap, Summary
from tracekit.analysis.side_by_side import overlaps_of
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.trace.source import open_trace

GRAPH_LAUNCH = "cudaGraphLaunch_v10000"


def overlap_by_operator(export: Export, folder: Path, baseline: Export | None = None) -> Overlap:
    with ExitStack() as stack:
        paths = [each.write(folder / f"{i}.sqlite") for i, each in enumerate((export, baseline)) if each is not None]
        traces = [stack.enter_context(open_trace(path, cached=False)) for path in paths]
        return overlaps_of(traces[0], traces[1] if baseline else None, Selection(by="operator"))


def diff_by_operator(a: Export, b: Export, folder: Path) -> Diff:
    with ExitStack() as stack:
        paths = [each.write(folder / f"{name}.sqlite") for name, each in (("a", a), ("b", b))]
        traces = [stack.enter_context(open_trace(path, cached=False)) for path in paths]
        return compare(traces, by="operator")


def beside(answer: Overlap) -> set[frozenset[str | None]]:
    """The operators of each pair of kernels that ran side by side."""
    return {frozenset((pair.a.name, pair.b.name)) for pair in answer.kernel_pairs}


def counts(answer: Diff) -> dict[str | None, tuple[int, int]]:
    return {row.name: (row.count_a, row.count_b) for row in answer.kernels}


def two_at_once(export: Export, at: int, nodes: tuple[int, int], *, names: tuple[str, str] = ("k", "k")) -> None:
    """A graph launch of two kernels side by side."""
    correlation = export.launch(at, at + 50, GRAPH_LAUNCH)
    for stream, (node, name) in enumerate(zip(nodes, names, strict=True)):
        export.kernel(at + 100, at + 300, 7 + stream, name, correlation=correlation, node=node)


def replayed_layers() -> Export:
    """Nodes created in two layers' ranges, cloned twice, listed with and without their original, replayed at once."""
    export = Export()
    for index, layer in enumerate(("layer0", "layer1")):
        export.range(100 + 50 * index, 120 + 50 * index, layer)
        first = 1 + index
        export.graph_node(110 + 50 * index, first)
        for clone in (10 + first, 20 + first):
            export.graph_node(300 + clone, clone)
            export.graph_node(300 + clone, clone, clone - 10)
    for launch in range(6):
        two_at_once(export, 1000 + 1000 * launch, (21, 22))
    return export


def test_replayed_nodes_lead_to_the_ranges_their_originals_were_created_in(tmp_path: Path) -> None:
    answer = overlap_by_operator(replayed_layers(), tmp_path)
    assert beside(answer) == {frozenset({"layer0", "layer1"})}
    (row,) = answer.sets
    assert ([kernel.name for kernel in row.members], row.pair, row.episodes) == (["layer0", "layer1"], True, 6)
    assert {(row.victim.name, row.companions[0].name, row.instances) for row in answer.contention} == {
        ("layer0", "layer1", 6),
        ("layer1", "layer0", 6),
    }
    assert counts(diff_by_operator(replayed_layers(), replayed_layers(), tmp_path)) == {
        "layer0": (6, 6),
        "layer1": (6, 6),
    }


def updated() -> Export:
    """An executable built for A and C side by side, then updated to run B and D with the same nodes."""
    export = Export()
    clones = (9 << 32, 9 << 32 | 1)
    for index, operators in enumerate(("AC", "BD")):
        at = 10_000 * index
        for place, operator in enumerate(operators):
            export.range(at + 200 * place, at + 200 * place + 100, f"Matmul{operator}::eval_gpu")
            export.graph_node(at + 200 * place + 50, (index + 1) << 32 | place)
        if index == 0:
            for place, clone in enumerate(clones):
                export.graph_node(1500 + place, clone)
                export.graph_node(1500 + place, clone, 1 << 32 | place)
        else:
            export.api(at + 1500, at + 1600, "cudaGraphExecUpdate_v10020", 70)
        two_at_once(export, at + 2000, clones, names=("left", "right"))
    return export


def test_an_updated_executable_runs_the_operators_of_its_last_update_side_by_side(tmp_path: Path) -> None:
    answer = overlap_by_operator(updated(), tmp_path)
    assert beside(answer) == {
        frozenset({"MatmulA::eval_gpu", "MatmulC::eval_gpu"}),
        frozenset({"MatmulB::eval_gpu", "MatmulD::eval_gpu"}),
    }
    assert counts(diff_by_operator(updated(), updated(), tmp_path)) == {
        f"Matmul{operator}::eval_gpu": (1, 1) for operator in "ABCD"
    }


def test_a_part_of_an_updated_executables_kernels_keeps_its_operators(tmp_path: Path) -> None:
    with open_trace(updated().write(tmp_path / "updated.sqlite"), cached=False) as trace:
        answer: Summary = summarise_trace(trace, Selection(by="operator", kernel="left"))
    assert {row.name for row in answer.kernels} == {"MatmulA::eval_gpu", "MatmulB::eval_gpu"}


def captured() -> Export:
    """Work captured in the ranges of two operators, in which nothing ran; its graph replayed in another range."""
    export = Export()
    export.api(1000, 1010, "cudaStreamBeginCapture_v10000", 1)
    for place, operator in enumerate(("Softmax", "Matmul")):
        at = 1100 + 200 * place
        export.range(at, at + 100, f"{operator}::eval_gpu")
        export.api(at + 10, at + 20, "cudaLaunchKernel_v7000", 2 + place)
        export.graph_node(at + 15, 1 << 32 | place)
    export.api(1600, 1610, "cudaStreamEndCapture_v10000", 9)
    export.range(2 * MS, 2 * MS + 500, "replay")
    two_at_once(export, 2 * MS, (1 << 32, 1 << 32 | 1))
    return export


def test_captured_work_runs_beside_its_like_by_the_operators_it_was_captured_in(tmp_path: Path) -> None:
    answer = overlap_by_operator(captured(), tmp_path)
    assert beside(answer) == {frozenset({"Softmax::eval_gpu", "Matmul::eval_gpu"})}
    compared = diff_by_operator(captured(), captured(), tmp_path)
    assert counts(compared) == {"Softmax::eval_gpu": (1, 1), "Matmul::eval_gpu": (1, 1)}
    assert [row.name for row in compared.phases] == ["replay"]


def test_what_cannot_be_known_is_marked_and_counted(tmp_path: Path) -> None:
    export = Export()
    export.range(100, 200, "Matmul::eval_gpu")
    export.graph_node(150, 21)
    two_at_once(export, 1000, (21, 22))
    answer = overlap_by_operator(export, tmp_path)
    assert beside(answer) == {frozenset({"Matmul::eval_gpu", "(unknown)"})}
    assert codes(answer)["operator_unknown"] == 1
    assert "1 of 2 kernels have no operator that can be known" in shown(answer)
    assert codes(diff_by_operator(export, export, tmp_path))["operator_unknown"] == 2


def test_modules_are_named_with_the_operator(tmp_path: Path) -> None:
    export = Export()
    for at, module, operator in (
        (1000, "model.layers.0.mlp", "Matmul::eval_gpu"),
        (2000, "model.layers.1.mlp", "Matmul::eval_gpu"),
        (3000, "model.norm", None),
    ):
        export.range(at, at + 500, module, domain="tracekit.modules")
        if operator:
            export.range(at + 10, at + 400, operator)
        export.kernel(10_000 + at, 15_000 + at, at // 1000, correlation=export.launch(at + 100, at + 110))
    names = {kernel.name for row in overlap_by_operator(export, tmp_path).sets for kernel in row.members}
    assert names == {"Matmul::eval_gpu in model.layers.0.mlp", "Matmul::eval_gpu in model.layers.1.mlp", "model.norm"}


OPERATORS = (("A", 1000, 7, "k"), ("B", 3000, 7, "k"), ("C", 5000, 8, "other"))
"""Operator, how long its kernel takes, stream and kernel: one kernel takes three times as long under B."""


def eagerly() -> Export:
    """Every operator's kernel alone."""
    export = Export()
    for step in range(8):
        at = MS + 100_000 * step
        export.range(at, at + 90_000, "step", domain="tracekit")
        for place, (operator, length, stream, name) in enumerate(OPERATORS):
            export.range(at + 100 * place, at + 100 * place + 50, f"{operator}::eval_gpu")
            correlation = export.launch(at + 100 * place + 10, at + 100 * place + 20)
            begin = at + 10_000 * (place + 1)
            export.kernel(begin, begin + length, stream, name, correlation=correlation)
    return export


def in_a_graph() -> Export:
    """The same as nodes of one graph: A's alone, B's and C's side by side, none of them slower for it."""
    export = Export()
    for place, (operator, *_) in enumerate(OPERATORS):
        export.range(1000 + 100 * place, 1050 + 100 * place, f"{operator}::eval_gpu")
        export.graph_node(1010 + 100 * place, 1 << 32 | place)
    for step in range(8):
        at = MS + 100_000 * step
        export.range(at, at + 90_000, "step", domain="tracekit")
        correlation = export.launch(at + 10, at + 60, GRAPH_LAUNCH)
        for place, (_, length, stream, name) in enumerate(OPERATORS):
            begin = at + (10_000 if place == 0 else 20_000)
            node = 1 << 32 | place
            export.kernel(begin, begin + length, stream, name, correlation=correlation, node=node)
    return export


def test_solo_durations_are_of_the_kernel_under_the_same_operator(tmp_path: Path) -> None:
    """By kernel alone, the usual duration is neither operator's."""
    answer = overlap_by_operator(in_a_graph(), tmp_path, eagerly())
    compared = diff_by_operator(eagerly(), in_a_graph(), tmp_path)
    for rows in (answer.contention, compared.contention):
        assert {row.victim.name: row.stretch for row in rows if row.companions} == {
            "B::eval_gpu": 1.0,
            "C::eval_gpu": 1.0,
        }
    assert [row.gain_ns for row in compared.overlaps] == [3000]
    assert {row.name: (row.solo_ns, row.stretch_b) for row in compared.kernels} == {
        "A::eval_gpu": (1000, 1.0),
        "B::eval_gpu": (3000, 1.0),
        "C::eval_gpu": (5000, 1.0),
    }


def test_phases_and_verdict_do_not_depend_on_what_kernels_are_told_apart_by(tmp_path: Path, run: Run) -> None:
    paths = [export.write(tmp_path / f"{i}.sqlite") for i, export in enumerate((eagerly(), in_a_graph()))]
    by_launch, by_operator = (
        run("diff", *paths, "--by", by, "--format", "json").answer for by in ("launch", "operator")
    )
    assert by_launch["phases"] == by_operator["phases"]
    assert by_launch["verdict"] == by_operator["verdict"]
    assert (by_launch["by"], by_operator["by"]) == ("launch", "operator")
    assert {row["name"] for row in by_operator["kernels"]} == {"A::eval_gpu", "B::eval_gpu", "C::eval_gpu"}


@pytest.mark.parametrize("by", ["launch", "name", "short"])
def test_operators_of_a_set_are_named_whatever_kernels_are_told_apart_by(tmp_path: Path, run: Run, by: str) -> None:
    paths = [export.write(tmp_path / f"{i}.sqlite") for i, export in enumerate((eagerly(), in_a_graph()))]
    (row,) = run("diff", *paths, "--by", by, "--format", "json").answer["overlaps"]
    assert row["operators"] == ["A::eval_gpu", "B::eval_gpu", "C::eval_gpu"]
    assert (row["pair"], row["episodes"], row["gain_ns"]) == (True, 1, 3000)
