"""``tracekit bench`` on the command line, for real on MLX's CPU backend: structure and correctness, never speed."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped, unused-ignore]
import msgspec
import pytest
from bench_building import answer, row, told
from conftest import Run
from nsys_export import Export
from phase_building import OWN

from tracekit.analysis.results.bench import Cell
from tracekit.bench.naming import phase_name
from tracekit.kept_benches import keep_bench, read_bench
from tracekit.report import table
from tracekit.report.json import shipped_schema
from tracekit.report.svg import bench_figure
from tracekit.report.views.bench import document
from tracekit.trace.source import open_trace

needs_mlx = pytest.mark.usefixtures("mlx")

SMALL = ["--k", 64, "--n", 128, "--dtype", "f32", "--rounds", 6, "--chain-length", 8, "--batch", 8]
SMALL += ["--cache-size", 0.05, "--bandwidth", 100]
SHAPES = {
    "matmul": [], "qmm": [], "gather_qmm": ["--experts", 4, "--top-k", 2], "rms_norm": [],
    "sdpa": ["--heads", 4, "--kv-heads", 2, "--head-dim", 32, "--context", 16], "copy": [],
}  # fmt: skip

OPERATION = """
import mlx.core as mx
from tracekit.bench import Call, Case, link

@mx.compile
def gelu(x):
    return x * mx.sigmoid(1.702 * x)

def fused(case: Case) -> Call:
    return Call(
        weights=lambda: mx.random.normal((case.n, case.k), key=mx.random.key(case.seed)) * case.k**-0.5,
        input=lambda seed: mx.random.normal((case.m, case.k), key=mx.random.key(seed)),
        apply=lambda x, w: gelu(x @ w.T),
        feed=link,
    )

def nonsense(case):
    return 7

def failing(case):
    raise RuntimeError("no such thing")

number = 7
"""


@pytest.fixture
def mlx() -> None:
    pytest.importorskip("mlx_lm", reason="mlx_lm is not installed")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a file with operations of a user's own."""
    file = tmp_path / f"own_{abs(hash(tmp_path))}.py"
    file.write_text(OPERATION)
    monkeypatch.chdir(tmp_path)
    return str(file)


@needs_mlx
@pytest.mark.parametrize("name", SHAPES)
def test_every_operation_is_timed_by_every_method(call: Run, name: str) -> None:
    blocks = ["--block", "bare,norm-residual"]
    told = call("bench", name, "--m", "1,3", *SMALL, *SHAPES[name], *blocks, "--format", "json").answer
    jsonschema.validate(told, shipped_schema())
    cells = {(r["m"], r["block"], r["weights"], r["method"]) for r in told["rows"]}
    weights = ["hot"] if name == "copy" else ["hot", "cold"]
    assert cells == {
        (m, block, residency, method)
        for m in (1, 3)
        for block in ("bare", "norm-residual")
        for residency in weights
        for method in ("chain", "batched", "per-call")
    }
    assert {r["n"] for r in told["rows"]} == {6}
    assert all(r["bytes"] > 0 and r["build_ns"] > 0 for r in told["rows"])
    assert {r["length"] for r in told["rows"]} == {8, None}
    assert all(check["error"] <= check["allowed"] for check in told["checks"])
    exact = [check["exact_chain"] for check in told["checks"]]
    assert exact == ([True, None] if name in ("matmul", "qmm", "gather_qmm") else [None, None])
    assert told["link"] == ("pair" if name in ("matmul", "qmm", "gather_qmm") else "none")


@needs_mlx
def test_a_table_for_people(call: Run) -> None:
    shown = call("bench", "qmm", "--m", "1,2", *SMALL)
    assert (shown.code, shown.err) == (0, "")
    assert re.search(r"^operation  block  M +chain, hot +batched, hot +per-call, hot +chain, cold", shown.out, re.M)
    assert len(re.findall(r"^qmm +bare +\d +", shown.out, re.M)) == 2
    assert "chained through a pair" in shown.out
    assert "believe the chain for decoding" in shown.out
    assert "last-level cache 0 MiB (given)" in shown.out
    assert "kept as result 1: tracekit bench --compare 1 NEW" in shown.out


@needs_mlx
@pytest.mark.parametrize("mode", ["affine", "nvfp4", "mxfp4", "mxfp8"])
def test_every_format_of_weights(call: Run, mode: str) -> None:
    quick = ["--methods", "chain", "--weights", "hot", "--format", "json"]
    told = call("bench", "qmm", *SMALL, "--mode", mode, *quick).answer
    assert (told["shape"]["mode"], told["shape"]["bits"]) == (mode, 8 if mode == "mxfp8" else 4)
    (only,) = told["rows"]
    assert "unbounded" not in only["marks"]


@needs_mlx
def test_a_chain_finds_its_own_length(call: Run) -> None:
    quick = ["--methods", "chain", "--weights", "hot", "--chain-length", "auto", "--format", "json"]
    (only,) = call("bench", "rms_norm", *SMALL, *quick).answer["rows"]
    assert 16 <= only["length"] <= 2048
    assert (only["length"] & (only["length"] - 1)) == 0


@needs_mlx
def test_a_projection_instead_of_a_pair(call: Run) -> None:
    told = call("bench", "qmm", *SMALL, "--link", "projection", "--format", "json").answer
    assert told["link"] == "projection"
    # Only the weights from K to N: codes of half a byte, a scale and a bias in f32 for 64 of them.
    weights = 128 * 64 // 2 + 2 * 4 * 128
    assert {r["bytes"] for r in told["rows"]} == {weights + 4 * (64 + 128)}


@needs_mlx
def test_what_the_compiler_fuses_is_withheld(call: Run) -> None:
    told = call("bench", "copy", *SMALL, "--compile", "--methods", "chain,per-call", "--format", "json").answer
    fused, apart = told["rows"]
    assert (fused["method"], fused["marks"], fused["time_ns"], fused["n"]) == ("chain", ["merged"], None, 0)
    assert (apart["method"], apart["n"]) == ("per-call", 6)
    assert [warning["code"] for warning in told["warnings"]] == ["merged"]


@needs_mlx
def test_an_operation_of_ones_own_beside_another(call: Run, own: str) -> None:
    told = call("bench", "--op", f"{own}:fused", "--vs", "matmul", "--m", "1,2", *SMALL, "--format", "json").answer
    jsonschema.validate(told, shipped_schema())
    assert {r["candidate"] for r in told["rows"]} == {f"{own}:fused", "matmul"}
    assert {c["kind"] for c in told["contrasts"]} == {"method", "weights", "candidate"}
    assert [w["code"] for w in told["warnings"] if w["code"] == "unchecked_output"] == ["unchecked_output"]


@needs_mlx
@pytest.mark.parametrize(
    ("given", "code", "complaint"),
    [
        ([], 2, "name one operation, such as qmm"),
        (["qmm", "--op", "a:b"], 2, "name one operation"),
        (["qmm", "--m", "0"], 2, "--m 0: write whole numbers"),
        (["qmm", "--m", "one"], 2, "--m one: write whole numbers"),
        (["qmm", "--methods", "chain,chains"], 2, "--methods chains: write chain, batched, per-call"),
        (["qmm", "--tiny", "llama"], 2, "operations have none"),
        (["decode"], 2, "need a model"),
        (["decode", "--tiny", "gpt"], 2, "--tiny gpt: write one of llama, qwen3, qwen3_5"),
        (["decode", "--tiny", "llama", "--figure", "a.svg"], 2, "--figure draws"),
        (["decode", "--tiny", "llama", "--arm", "A"], 2, "write NAME:ENV=VALUE"),
        (["decode", "--tiny", "llama", "--arm", "default:A=1"], 2, "two arms are called default"),
        (["--op", "nothing"], 2, "write module:function"),
        (["--op", "no_such_module:f"], 3, "cannot be imported"),
        (["--op", "OWN:missing"], 3, "there is no function missing"),
        (["--op", "OWN:number"], 3, "there is no function number"),
        (["--op", "OWN:nonsense"], 3, "returns int, not a Call"),
        (["--op", "OWN:fused", "--block", "norm-residual"], 3, "chain through a pair"),
        (["qmm", "--vs", "qmm"], 2, "--vs qmm: is the operation itself"),
        (["qmm", "--k", "100"], 3, "qmm: cannot be run in this shape"),
        (["--op", "OWN:failing"], 3, "cannot be run in this shape (no such thing)"),
        (["--compare", "1", "2"], 2, "1: is neither a file nor the number of a kept result: there are: none"),
    ],
)
def test_wrong_usage_is_one_line(call: Run, own: str, given: list[str], code: int, complaint: str) -> None:
    end = call(
        "bench", "--k", 64, "--bandwidth", 1, "--cache-size", 0.01, *(word.replace("OWN", own) for word in given)
    )
    assert (end.code, end.out, len(end.err.splitlines())) == (code, "", 1)
    assert complaint in end.err


@needs_mlx
def test_results_are_kept_and_compared(call: Run, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    quick = ["--methods", "chain,batched", "--weights", "hot"]
    call("bench", "matmul", *SMALL, *quick, "--format", "json", "--output", file)
    call("bench", "matmul", *SMALL, *quick, "--m", "1,2")
    told = call("bench", "--compare", file, "2", "--format", "json").answer
    jsonschema.validate(told, shipped_schema())
    assert [r["name"] for r in told["rows"]] == [
        f"matmul M={m} {way} hot bare" for m in (1, 2) for way in ("chain", "batched")
    ]
    assert [r["old_ns"] is None for r in told["rows"]] == [False, False, True, True]
    assert told["differences"] == []
    itself = call("bench", "--compare", "2", "2", "--format", "json").answer
    assert {r["ratio"] for r in itself["rows"]} == {1.0}
    assert "matmul M=2 chain hot bare" in call("bench", "--compare", file, "2").out
    none = call("bench", "--compare", "2", "9")
    assert "there are: 2 (matmul), 1 (matmul)" in none.err


@needs_mlx
@pytest.mark.parametrize(
    ("architecture", "arms"), [("llama", ["default", "ops1"]), ("qwen3", ["default"]), ("qwen3_5", ["default"])]
)
def test_decoding_is_timed_in_every_arm(run: Run, architecture: str, arms: list[str]) -> None:
    short = ["--prompt", 8, "--tokens", 3, "--widths", "1,4", "--rounds", 1]
    own = ["--arm", "ops1:MLX_MAX_OPS_PER_BUFFER=1"] if len(arms) > 1 else []
    told = run("bench", "decode", "--tiny", architecture, *short, *own, "--format", "json").answer
    jsonschema.validate(told, shipped_schema())
    assert list(told["arms"]) == arms
    assert [(r["workload"], r["arm"], r["tokens"], r["n"]) for r in told["rows"]] == [
        (workload, arm, tokens, 3)
        for workload, tokens in (("decode step", 1), ("decode", 3), ("forward S=1", 1), ("forward S=4", 4))
        for arm in arms
    ]
    for each in told["rows"]:
        assert each["tokens_per_s"] == pytest.approx(each["tokens"] / each["time_ns"] * 1e9)
        assert each["warm_up_ns"] > 0


@needs_mlx
def test_a_prefill_is_timed_and_shown_by_arm(run: Run) -> None:
    shown = run("bench", "prefill", "--tiny", "llama", "--prompt", 32, "--rounds", 1, "--arm", "x:A=1")
    assert shown.code == 0
    assert re.search(r"^workload +default +x$", shown.out, re.M)
    assert re.search(r"^prefill +[\d.]+ m?s +[\d.]+ m?s$", shown.out, re.M)
    assert "warning: arm x: A has no effect on stock MLX" in shown.out


@needs_mlx
def test_a_model_that_cannot_be_loaded_is_one_line(run: Run) -> None:
    end = run("bench", "decode", "--model", "/no/such/model", "--rounds", 1)
    assert (end.code, len(end.err.splitlines())) == (4, 1)
    assert "arm default: the model could not be timed" in end.err


@needs_mlx
def test_a_figure_has_a_line_for_each_way(call: Run, tmp_path: Path) -> None:
    figure = tmp_path / "times.svg"
    call("bench", "copy", "--m", "1,2", *SMALL, "--figure", figure)
    drawn = ElementTree.parse(figure).getroot()
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2, 2]


def test_a_figure_is_drawn_whatever_the_rows() -> None:
    for rows in (
        [],
        [row(None)],
        [row(1.0)],
        [row(1.0, spread=2.0), row(1e-6, m=4096)],
        [row(1.0, candidate='<&"\x1b[31m')],
    ):
        drawn = ElementTree.fromstring(bench_figure(answer(rows)))
        circles = drawn.findall("{http://www.w3.org/2000/svg}circle")
        assert len(circles) == sum(each.time_ns is not None for each in rows)
        for circle in circles:
            assert 80 <= float(circle.attrib["cx"]) <= 530
            assert 40 <= float(circle.attrib["cy"]) <= 370


def test_longer_times_are_drawn_higher_and_greater_m_further_right() -> None:
    drawn = ElementTree.fromstring(bench_figure(answer([row(1.0, m=1), row(2.0, m=4), row(4.0, m=16)])))
    x, y = ([float(c.attrib[at]) for c in drawn.iter("{http://www.w3.org/2000/svg}circle")] for at in ("cx", "cy"))
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2) and x[1] > x[0]
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.2) and y[0] > y[1]


def test_a_result_comes_back_from_the_database_as_it_was(tmp_path: Path) -> None:
    db = tmp_path / "results.db"
    kept = answer([row(1.0), row(0.5, method="batched", marks=["batching-hides"])])
    assert keep_bench(kept, db) == (1, None)
    assert read_bench("1", db) == kept


def test_what_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    db = tmp_path / "results.db"
    db.write_text("not a database at all\n" * 50)
    number, trouble = keep_bench(answer([row(1.0)]), db)
    assert number is None
    assert trouble and trouble.startswith("not filed in the results database")


@pytest.mark.parametrize("text", ["", "{}", "[1]", json.dumps({"command": "bench"}), "\x00"])
def test_a_file_that_is_no_result_is_one_line(call: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "old.json"
    file.write_text(text)
    end = call("bench", "--compare", file, file)
    assert (end.code, end.out, len(end.err.splitlines())) == (3, "", 1)


def test_what_held_the_clocks_back_is_said() -> None:
    quiet = answer([row(1.0)])
    around = msgspec.structs.replace(
        quiet.surroundings,
        clocks_mhz=[[2418.0, None], [1900.0, 2000.0]],
        temperatures_c=[[48.0, 50.0], [83.0, None]],
        throttled=["sw_power_cap"],
    )
    text = table.render(document(msgspec.structs.replace(quiet, surroundings=around)))
    assert "GPU before: 2418, unknown MHz, 48, 50 degrees C" in text
    assert "GPU after: 1900, 2000 MHz, 83, unknown degrees C" in text
    assert "clocks held back by: sw_power_cap" in text
    assert "clocks held back" not in told(quiet.rows)


def recorded(cells: list[tuple[Cell, list[tuple[int, int]]]], folder: Path) -> Path:
    """A trace with one phase a cell and kernels of that phase at these times."""
    export = Export()
    at = 0
    for cell, kernels in cells:
        export.range(at, at + 1000, phase_name(cell), domain=OWN)
        for stream, (start, end) in enumerate(kernels):
            correlation = export.launch(at + 10 + stream, at + 11 + stream)
            export.kernel(at + start, at + end, correlation=correlation, stream=stream + 7)
        at += 2000
    return export.write(folder / "trace.sqlite")


def test_overlap_in_the_trace_is_shown_as_the_cause(tmp_path: Path) -> None:
    from tracekit.bench.in_trace import with_trace

    chain, batched = row(0.060, m=4), row(0.041, m=4, method="batched", marks=["batching-hides"])
    alone = row(0.1, m=4, method="per-call")
    cells: Any = [(chain, [(100, 200), (200, 300)]), (batched, [(100, 300), (150, 300)])]
    with open_trace(recorded(cells, tmp_path), cached=False) as trace:
        joined = with_trace(answer([chain, batched, alone]), trace)
    assert [r.in_trace and (r.in_trace.kernels, r.in_trace.overlapped_share) for r in joined.rows] == [
        (2, 0.0),
        (2, 0.75),
        None,
    ]
    assert [(w.code, w.count) for w in joined.warnings] == [("not_in_trace", 1)]
    assert "75 % of the batched loop's busy time has two kernels or more at once, 0 % of the chain's" in told(
        joined.rows
    )
