"""Exports recorded by strangers: every figure equals that of a plain sweep, and of nsys itself."""

import csv
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tracekit.analysis.diff import compare
from tracekit.analysis.results import OUTSIDE, Diff
from tracekit.analysis.summary import summarise_trace
from tracekit.analysis.wanted import Selection
from tracekit.capture.nsys import find_nsys
from tracekit.cli import app
from tracekit.trace.source import open_trace

ROOT = Path(__file__).parents[1]
TRACES = ROOT.parent / "shared" / "traces"
FILES = sorted(path.name for path in TRACES.glob("*.sqlite"))
SAMPLES = sorted(path.name for path in (ROOT / "sample_traces").glob("*.sqlite"))

Answer = dict[str, Any]

every_file = pytest.mark.parametrize(
    "file",
    FILES or [pytest.param("", marks=pytest.mark.skip(reason="../shared/traces is not beside the repository"))],
)


@cache
def ask(command: str, file: str, *options: str) -> Answer:
    """The JSON answer of a command about a real trace."""
    arguments = [command, str(TRACES / file), "--format", "json", "--no-cache", *options]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found: Answer = json.loads(done.stdout)
    return found


def expected(file: str) -> Answer:
    found: Answer = json.loads((TRACES / "expected.json").read_text())[file]
    return found


@every_file
def test_kernels_by_name(file: str) -> None:
    answer, truth = ask("summary", file, "--by", "name"), expected(file)
    line = answer["traces"][0]
    assert line["kernel_rows"] == truth["kernel_rows"]
    assert line["graph_kernel_rows"] == truth.get("graph_kernel_rows", 0)
    figures = ("count", "median_ns", "total_ns", "min_ns", "max_ns")
    found = {row["name"]: {name: row[name] for name in figures} for row in answer["kernels"]}
    assert len(found) == len(answer["kernels"])
    assert found == truth.get("kernels", {})


@every_file
@pytest.mark.parametrize("command", ["summary", "overlap"])
def test_time_of_each_device(file: str, command: str) -> None:
    truth = expected(file).get("devices", {})
    lines = {str(line["device"]): line for line in ask(command, file)["devices"] if line["kernel_rows"]}
    assert lines.keys() == truth.keys()
    for device, device_truth in truth.items():
        line = lines[device]
        assert line["max_depth"] == device_truth["max_concurrency"]
        for figure in ("kernel_rows", "busy_ns", "overlapped_ns", "summed_ns"):
            assert line[figure] == device_truth[figure]
        assert line["span_ns"] >= device_truth["last_end_ns"] - device_truth["first_start_ns"]


@every_file
def test_time_without_copies_spans_from_the_first_kernel_to_the_last(file: str) -> None:
    truth = expected(file).get("devices", {})
    for line in ask("summary", file)["devices"]:
        if line["kernel_rows"] and not line["copy_ns"]:
            device = truth[str(line["device"])]
            assert line["span_ns"] == device["last_end_ns"] - device["first_start_ns"]


@every_file
def test_overlap_adds_up(file: str) -> None:
    answer = ask("overlap", file)
    for line in answer["devices"]:
        assert sum(int(depth) * time for depth, time in line["depth_ns"].items()) == line["summed_ns"]
        kinds = ("stream_overlap_ns", "graph_branch_overlap_ns", "same_stream_overlap_ns")
        assert sum(line[kind] for kind in kinds) == line["overlapped_ns"]
    overlapped = sum(line["overlapped_ns"] for line in answer["devices"])
    assert answer["episodes"]["wall_ns"] == overlapped
    pairs = sum(pair["overlap_ns"] for pair in answer["kernel_pairs"])
    depths = [line["depth_ns"].items() for line in answer["devices"]]
    assert pairs == sum(int(d) * (int(d) - 1) // 2 * time for times in depths for d, time in times)


@cache
def with_itself(file: str) -> tuple[Diff, int, int]:
    """The comparison of a trace with itself, and how many kernels it holds, of how much time."""
    with open_trace(TRACES / file, cached=False) as one, open_trace(TRACES / file, cached=False) as same:
        kernels = one.kernels
        return compare([one, same]), kernels.height, int((kernels["end"] - kernels["start"]).sum())


@every_file
def test_phases_and_what_is_outside_of_them_add_up_to_the_trace(file: str) -> None:
    answer, count, time = with_itself(file)
    assert sum(row.kernel_rows_a for row in answer.phases) == count
    assert sum(row.kernel_ns_a for row in answer.phases) == time


@every_file
def test_work_outside_of_phases_is_no_phase(file: str) -> None:
    outside = [row for row in with_itself(file)[0].phases if row.name == OUTSIDE]
    assert {row.verdict.winner for row in outside} <= {"undecided"}
    assert {row.time_ns_a for row in outside} <= {None}


@every_file
def test_a_trace_does_not_differ_from_itself(file: str) -> None:
    answer = with_itself(file)[0]
    assert {row.status for row in answer.kernels} <= {"same", "undecided"}
    assert {row.ratio for row in answer.kernels} <= {1.0, None}
    assert {row.verdict.winner for row in answer.phases} <= {"tie", "undecided"}
    assert answer.only_a == answer.only_b == []


@pytest.mark.parametrize("pair", [(1, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_runs_of_one_workload_give_no_findings(pair: tuple[int, int], turned: bool) -> None:
    files = [TRACES / f"streams9-gtx1650-run{run}.sqlite" for run in pair]
    if not files[0].exists():
        pytest.skip("../shared/traces is not beside the repository")
    if turned:
        files.reverse()
    with open_trace(files[0], cached=False) as one, open_trace(files[1], cached=False) as other:
        answer = compare([one, other])
    assert [row.short_name for row in answer.kernels if row.status in ("slower", "faster")] == []
    assert [row.name for row in answer.phases if row.verdict.winner in ("a", "b")] == []
    assert answer.verdict.winner in ("tie", "undecided")


def nsys_kernels(copy: Path) -> dict[str, tuple[int, ...]] | None:
    """nsys' own sums by demangled name, (count, total, median x 10, min, max); None where it gives none."""
    done = subprocess.run(
        [str(nsys()), "stats", "-q", "-r", "cuda_gpu_kern_sum", "-f", "csv", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.strip()))
    figures = ("Instances", "Total Time (ns)", "Med (ns)", "Min (ns)", "Max (ns)")
    if not rows or any(figure not in rows[0] for figure in figures):
        return None
    found = {row["Name"]: [float(row[figure]) for figure in figures] for row in rows}
    assert len(found) == len(rows)
    return {
        name: (int(count), int(total), round(median * 10), int(least), int(most))
        for name, (count, total, median, least, most) in found.items()
    }


def nsys() -> Path:
    installed = Path.home() / ".cache/tracekit-nsys/usr/bin/nsys"
    found = find_nsys() or (installed if os.access(installed, os.X_OK) else None)
    if found is None:
        pytest.skip("no nsys: name one in TRACEKIT_NSYS")
    return found


def drop_impossible_times(copy: Path) -> None:
    """nsys counts rows whose times cannot be; tracekit leaves them out, and says so."""
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute('DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE "end" < start OR start = 0')


@pytest.mark.parametrize(
    "path",
    [*(TRACES / file for file in FILES), *(ROOT / "sample_traces" / file for file in SAMPLES)],
    ids=lambda path: path.stem,
)
def test_nsys_agrees(path: Path, tmp_path: Path) -> None:
    nsys()
    with open_trace(path, cached=False) as trace:
        rows = summarise_trace(trace, Selection(by="name")).kernels
        left_out = trace.unbelievable
    if not rows:
        pytest.skip(f"{path.name} holds no kernel")
    copy = tmp_path / "copy.sqlite"
    shutil.copyfile(path, copy)
    if left_out:
        drop_impossible_times(copy)
    theirs = nsys_kernels(copy)
    if theirs is None:
        pytest.skip(f"this nsys gives no kernel summary of {path.name}")
    assert {row.name for row in rows} == theirs.keys()
    for row in rows:
        count, total, median, least, most = theirs[str(row.name)]
        assert (row.count, row.min_ns, row.max_ns) == (count, least, most)
        assert row.total_ns in (total, None)
        assert abs(row.median_ns * 10 - median) <= 1
