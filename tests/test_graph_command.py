"""``tracekit graph`` on the command line: forms, files, drawings and what cannot be read."""

import os
import shutil
from html import unescape
from pathlib import Path

import pytest
from conftest import Run
from dot_dumps import plain_dump
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from nsys_export import Export
from output_reading import csv_rows, markdown_tables
from planted_dumps import write_dumps

from tracekit.report.json import json_schema

SAMPLES = Path(__file__).parents[1] / "sample_traces"
ON, OFF = SAMPLES / "gbx-graphs-on.sqlite", SAMPLES / "gbx-graphs-off.sqlite"
UNIT = 1 << 32


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Forty layers of twelve nodes, two of them side by side, and a head."""
    export = Export()
    at = node = 0
    for _ in range(40):
        for step in range(11):
            for branch in range(2 if step == 4 else 1):
                name = f"void ns::step{step}<{branch}>(int)"
                export.kernel(1000 + at, 1000 + at + 8, name=name, correlation=1, node=UNIT + node)
                node += 1
            at += 10
    export.kernel(1000 + at, 1000 + at + 8, name="head", correlation=1, node=UNIT + node)
    return export.write(tmp_path / "long.sqlite")


def test_every_form_lists_every_graph(call: Run) -> None:
    answer = call("graph", ON, "--format", "json").answer
    Draft202012Validator(json_schema()).validate(answer)
    assert (answer["command"], len(answer["graphs"])) == ("graph", 5)
    rows = csv_rows(call("graph", ON, "--format", "csv").out)
    assert [row["nodes"] for row in rows] == [str(graph["nodes"]) for graph in answer["graphs"]]
    tables = markdown_tables(call("graph", ON, "--format", "markdown").out)
    assert len(tables[0]) == 1 + 5
    assert "inferred from 24 replays" in call("graph", ON).out


def test_dumps_in_a_folder_give_the_edges(call: Run, tmp_path: Path) -> None:
    out = call("graph", ON, "--dot", write_dumps("gbx", tmp_path)).out
    assert "5 of 5 dumps show a graph of this trace" in out
    assert "inferred" not in out


def test_five_hundred_nodes_are_drawn_in_few_lines(long: Path, call: Run) -> None:
    out = call("graph", long).out
    drawing = out[out.index("by level") : out.index("Nodes of graph")].splitlines()
    assert len(drawing) < 20
    assert any("4, 15, ... (40x)" in line and "step4" in line for line in drawing)
    assert any(line.startswith("440 ") and "head" in line for line in drawing)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_a_drawing_has_every_node_and_is_written_whole_or_not_at_all(long: Path, call: Run, tmp_path: Path) -> None:
    svg = tmp_path / "graph.svg"
    assert call("graph", long, "--svg", svg).code == 0
    text = svg.read_text()
    assert text.count('class="node"') == 481
    assert "step4 1x1x1" in text
    again = call("graph", long, "--svg", svg)
    assert (again.code, "--force" in again.err, svg.read_text()) == (2, True, text)
    assert call("graph", ON, "--svg", svg, "--force").code == 0
    assert svg.read_text().count('class="node"') == 25


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_names_that_mean_something_to_graphviz_are_drawn_as_they_are(call: Run, tmp_path: Path) -> None:
    export = Export()
    name = 'k"]; x -> y [label="\\n{a|b}'
    export.kernel(1000, 2000, name=name, short=name, mangled="", correlation=1, node=UNIT)
    svg = tmp_path / "graph.svg"
    assert call("graph", export.write(tmp_path / "odd.sqlite"), "--svg", svg).code == 0
    assert svg.read_text().count('class="node"') == 1
    assert 'k"]; x -> y [label="\\n{a|b} 1x1x1' in unescape(svg.read_text()).replace("\xa0", " ")


def test_a_drawing_without_graphviz_says_what_to_install(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = call("graph", ON, "--svg", tmp_path / "graph.svg")
    assert (ran.code, ran.out) == (4, "")
    assert "install it" in ran.err
    assert not (tmp_path / "graph.svg").exists()


def test_graphviz_that_fails_leaves_no_drawing(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = tmp_path / "dot"
    stand_in.write_text("#!/bin/sh\nexit 3\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ran = call("graph", ON, "--svg", tmp_path / "graph.svg")
    assert (ran.code, len(ran.err.splitlines())) == (4, 1)
    assert "fails (exit code 3)" in ran.err
    assert not (tmp_path / "graph.svg").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "does not begin with 'digraph'"),
        (plain_dump(["a"], []).encode()[:60], "cut off"),
        (b"digraph g { a -> b }", "not named as cudaGraphDebugDotPrint"),
        (None, "No such file"),
    ],
)
def test_an_unusable_dump_ends_in_one_clear_line(content: bytes | None, said: str, call: Run, tmp_path: Path) -> None:
    file = tmp_path / "graph_1.dot"
    if content is not None:
        file.write_bytes(content)
    for command in (("graph", ON), ("diff", ON, OFF)):
        ran = call(*command, "--dot", file)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 1)
        assert str(file) in ran.err
        assert said in ran.err


def test_a_dump_that_changed_is_read_again(call: Run, tmp_path: Path) -> None:
    export = Export()
    for i, name in enumerate("ab"):
        export.kernel(1000 + 10 * i, 1010 + 10 * i, name=name, correlation=1, node=UNIT + i)
    trace, file = export.write(tmp_path / "trace.sqlite"), tmp_path / "graph_1.dot"
    edges = []
    for links in ([(0, 1)], []):
        file.write_text(plain_dump(["a", "b"], links))
        edges.append(call("graph", trace, "--dot", file, "--format", "json").answer["graphs"][0]["edges"])
    assert edges == [1, 0]


def test_a_trace_without_graph_nodes_is_refused_with_what_to_record(call: Run) -> None:
    ran = call("graph", OFF)
    assert (ran.code, ran.out) == (3, "")
    assert "record the run with graphs on" in ran.err
