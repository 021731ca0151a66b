"""``tracekit run`` with a stand-in for nsys that hands out sample traces: arms, run folder, exit codes."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import stand_in_nsys
from conftest import Run
from launching import until
from run_folders import BENCH, Record, recorder

SERVER = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler as Handler
HTTPServer(("localhost", int(sys.argv[2])), Handler).serve_forever()
"""

READING = """
import sys
def unused():
    import mlx.core
print("read", sys.stdin.read())
"""

DUMPING = """
import os, sys, time
prefix = os.environ.get("MLX_SAVE_CUDA_GRAPHS_DOT_FILE")
sys.stdout.write(f"dumps to {prefix}\\n")
def unused():
    import mlx.core
for count in range(1, int(sys.argv[1]) + 1):
    if not prefix:
        break
    with open(f"{prefix}_{count}.dot", "w") as file:
        file.write("digraph dot {" + "x" * int(sys.argv[2]) + "}\\n")
    time.sleep(0.002)
"""


record = pytest.fixture(recorder)


def sample(name: str) -> bytes:
    return (stand_in_nsys.SAMPLES / f"{name}.sqlite").read_bytes()


def test_both_arms_are_recorded_in_turn_and_each_block_is_timed_without_nsys(record: Record, tmp_path: Path) -> None:
    ran = record("--graphs", "both", "--blocks", 3, "bench.py")
    assert ran.end() == 0, ran.err
    manifest = ran.manifest
    assert manifest["state"] == "complete"
    order = [(block["arm"], block["block"]) for block in manifest["blocks"]]
    assert order == [("on", 1), ("off", 1), ("off", 2), ("on", 2), ("on", 3), ("off", 3)]
    for arm, sampled in (("on", "gbx-graphs-on"), ("off", "gbx-graphs-off")):
        for block in (1, 2, 3):
            assert (ran.run_folder / f"{arm}-{block}.sqlite").read_bytes() == sample(sampled)
    assert ran.files == sorted([*(block["trace"] for block in manifest["blocks"]), "run.json"])
    runs = (tmp_path / "ran.txt").read_text().splitlines()
    assert sorted(runs) == sorted([f"{graphs} {how}" for graphs in "01" for how in ("plain", "profiled")] * 3)
    for block in manifest["blocks"]:
        assert block["profiled_wall_s"] > 0 < block["plain_wall_s"]
        assert (block["profiled_exit_code"], block["plain_exit_code"]) == (0, 0)
    ran.assert_nothing_is_left()


def test_the_arms_of_a_run_are_compared_by_diff(record: Record, run: Run) -> None:
    ran = record("--graphs", "both", "bench.py")
    assert ran.end() == 0, ran.err
    assert "tracekit diff out" in ran.err
    answer = run("diff", ran.run_folder, "--format", "json").answer
    assert {phase["name"]: phase["verdict"]["winner"] for phase in answer["phases"]} == {
        "prefill": "b",
        "decode": "a",
    }


def test_runs_are_listed_by_history(record: Record, run: Run) -> None:
    ran = record("--graphs", "both", "--blocks", 1, "--name", "mine", "bench.py")
    assert ran.end() == 0, ran.err
    database = ran.folder / "results.db"
    (entry,) = run("history", "mine", "--db", database, "--format", "json").answer["entries"]
    assert (entry["kind"], entry["arms"], entry["folder"]) == ("run", ["on", "off"], str(ran.run_folder))
    plain = {block["arm"]: block["plain_wall_s"] for block in ran.manifest["blocks"]}
    assert entry["wall_ns"] == {arm: [pytest.approx(wall * 1e9, abs=1)] for arm, wall in plain.items()}


def test_the_nsys_that_is_named_is_used(record: Record, tmp_path: Path) -> None:
    ran = record("--graphs", "on", "--nsys", "bin/nsys", "bench.py", env={"TRACEKIT_NSYS": "/bin/false"})
    assert ran.end() == 0, ran.err
    assert (ran.run_folder / "on-1.sqlite").read_bytes() == sample("gbx-graphs-on")


def test_what_the_workload_says_passes_through_and_is_kept(record: Record) -> None:
    ran = record("--graphs", "on", "bench.py", "--graphs", "off", "-m")
    assert ran.end() == 0, ran.err
    line = "ran with ['--graphs', 'off', '-m']\n"
    assert ran.out == line * 2
    assert ran.log("on-1-stdout") == ran.log("on-1-plain-stdout") == line
    assert ran.manifest["command"][-4:] == ["bench.py", "--graphs", "off", "-m"]


def test_every_run_reads_the_same_file_from_its_beginning(record: Record, tmp_path: Path) -> None:
    (tmp_path / "prompt").write_text("skipped\nonce upon a time\n")
    with (tmp_path / "prompt").open() as prompt:
        os.lseek(prompt.fileno(), 8, os.SEEK_SET)
        ran = record("--graphs", "both", "--blocks", 1, "bench.py", script=READING, stdin=prompt)
        assert ran.end() == 0, ran.err
    assert ran.out == "read once upon a time\n\n" * 4


def test_no_run_reads_a_pipe_that_the_next_one_would_find_empty(record: Record) -> None:
    ran = record("--graphs", "on", "bench.py", script=READING, stdin=subprocess.PIPE)
    assert ran.process.stdin
    ran.process.stdin.write("once upon a time")
    assert ran.end() == 0, ran.err
    assert ran.out == "read \n" * 2


def test_the_next_command_can_be_pasted(record: Record) -> None:
    ran = record("--graphs", "both", "--quick", "-o", "it's here", "bench.py")
    assert ran.end() == 0, ran.err
    (line,) = [line for line in ran.err.splitlines() if line.startswith("next: ")]
    assert shlex.split(line) == ["next:", "tracekit", "diff", "it's here"]


def test_several_arms_have_five_blocks_and_one_arm_has_one(record: Record) -> None:
    ran = record("--graphs", "serial", "bench.py")
    assert ran.end() == 0, ran.err
    assert ran.files == ["run.json", "serial-1.sqlite"]
    assert (ran.run_folder / "serial-1.sqlite").read_bytes() == sample("gbx-graphs-serial")
    assert "has no effect on stock MLX" in ran.err
    assert "tracekit summary out/serial-1.sqlite" in ran.err


def test_two_blocks_are_said_to_be_a_tendency(record: Record) -> None:
    ran = record("--graphs", "on", "--arm", "ops0:MLX_MAX_OPS_PER_BUFFER=0", "--quick", "bench.py")
    assert ran.end() == 0, ran.err
    assert [block["arm"] for block in ran.manifest["blocks"]] == ["on", "ops0", "ops0", "on"]
    assert "no verdict" in ran.err
    assert "few-blocks" in ran.codes


def test_a_trace_that_is_not_what_its_arm_is_called_is_told(record: Record) -> None:
    ran = record("--graphs", "both", "--blocks", 1, "bench.py", env={"STAND_IN": "always-on"})
    assert ran.end() == 0, ran.err
    by_arm = {block["arm"]: [finding["code"] for finding in block["findings"]] for block in ran.manifest["blocks"]}
    assert ("mislabelled" in by_arm["on"], "mislabelled" in by_arm["off"]) == (False, True)
    assert "graphs were not off" in ran.err


def test_graphs_of_a_workload_that_launches_none_are_told(record: Record) -> None:
    ran = record("--graphs", "on", "--framework", "llama.cpp", "bench.py", env={"MLX_USE_CUDA_GRAPHS": "0"})
    assert ran.end() == 0, ran.err
    assert "mislabelled" in ran.codes


def test_a_failing_workload_ends_the_run_with_its_code_and_its_trace(record: Record) -> None:
    ran = record("--graphs", "both", "bench.py", script=BENCH + "\nsys.exit(7)")
    assert ran.end() == 7
    assert ran.files == ["on-1.sqlite", "run.json"]
    manifest = ran.manifest
    assert manifest["state"] == "failed"
    assert "exit code 7" in manifest["reason"]
    assert [block["profiled_exit_code"] for block in manifest["blocks"]] == [7]


def test_a_profiler_that_changes_the_run_is_told(record: Record) -> None:
    slow = BENCH + "\ntime.sleep(0.8 if 'PROFILED' in os.environ else 0.1)"
    ran = record("--graphs", "on", "bench.py", script=slow)
    assert ran.end() == 0, ran.err
    assert "overlap is indicative only" in ran.err
    assert "profiler-cost" in ran.codes


def test_a_profiler_that_changes_little_is_not(record: Record) -> None:
    ran = record("--graphs", "on", "bench.py", script=BENCH + "\ntime.sleep(2)")
    assert ran.end() == 0, ran.err
    assert "profiler-cost" not in ran.codes


def test_an_nsys_without_a_report_is_its_own_failure_and_the_folder_says_so(record: Record) -> None:
    ran = record("--graphs", "on", "bench.py", env={"STAND_IN": "no-report"})
    assert ran.end() == 4
    assert ran.manifest["state"] == "failed"
    assert "left no report" in ran.manifest["reason"]
    assert ran.files == ["run.json"]
    assert ran.log("on-1-stdout")
    ran.assert_nothing_is_left()


def test_an_nsys_that_refuses_leaves_nothing(record: Record) -> None:
    ran = record("--graphs", "on", "--nsys-arg=--so-it-is", "bench.py", env={"STAND_IN": "refuse"})
    assert ran.end() == 4
    assert "--so-it-is" in ran.err
    assert ran.out == ""
    assert not ran.run_folder.exists()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_export_ends_the_run_after_it(record: Record, tmp_path: Path, sign: int) -> None:
    exporting = tmp_path / "exporting"
    ran = record("--graphs", "both", "bench.py", env={"STAND_IN": "slow-export", "EXPORTING": str(exporting)})
    until(exporting.exists)
    ran.process.send_signal(sign)
    assert ran.end() == 130
    assert ran.manifest["state"] == "interrupted"
    assert ran.files == ["on-1.sqlite", "run.json"]
    (block,) = ran.manifest["blocks"]
    assert block["profiled_wall_s"] > 0
    ran.assert_nothing_is_left()


def test_dumps_come_from_a_run_of_their_own(record: Record) -> None:
    ran = record("--graphs", "both", "--blocks", 1, "--dump-graphs", "bench.py", 12, 10, script=DUMPING)
    assert ran.end() == 0, ran.err
    names = [f"graphs/graph_{count}.dot" for count in range(1, 13)]
    assert ran.manifest["dumps"] == {"files": names, "stopped": False}
    assert sorted(path.name for path in (ran.run_folder / "graphs").iterdir()) == sorted(
        Path(name).name for name in names
    )
    assert ran.out.count("dumps to None") == 4
    assert len(ran.manifest["blocks"]) == 2
    ran.assert_nothing_is_left()


@pytest.mark.parametrize(("size", "most"), [(10, 200), (8 << 20, 7)])
def test_dumps_end_with_their_budget(record: Record, size: int, most: int) -> None:
    ran = record("--graphs", "on", "--dump-graphs", "bench.py", 1000, size, script=DUMPING)
    assert ran.end() == 0, ran.err
    assert ran.manifest["dumps"] == {
        "files": [f"graphs/graph_{count}.dot" for count in range(1, most + 1)],
        "stopped": True,
    }
    assert all(path.read_text().endswith("}\n") for path in (ran.run_folder / "graphs").iterdir())


def test_a_load_runs_against_a_server_which_is_then_stopped(record: Record, tmp_path: Path) -> None:
    with closing(socket.socket()) as listening:
        listening.bind(("localhost", 0))
        port = listening.getsockname()[1]
    (tmp_path / "load.py").write_text(
        f"import urllib.request as r; print(r.urlopen('http://localhost:{port}/bench.py').status)"
    )
    ran = record("--graphs", "on", "--load", "load.py", "bench.py", "--port", port, script=SERVER)
    assert ran.end() == 0, ran.err
    assert ran.log("on-1-load") == ran.log("on-1-plain-load") == "200\n"
    (block,) = ran.manifest["blocks"]
    assert block["trace"] == "on-1.sqlite"
    assert block["profiled_wall_s"] > 0 < block["plain_wall_s"]
    ran.assert_nothing_is_left()


def test_a_module_takes_all_that_follows_it(record: Record) -> None:
    ran = record("--graphs", "on", "-m", "bench", "--graphs", "off")
    assert ran.end() == 0, ran.err
    assert "ran with ['--graphs', 'off']" in ran.out
    assert ran.manifest["framework"] == "MLX"


def test_a_command_line_is_run_as_it_is(record: Record) -> None:
    ran = record("--graphs", "both", "--blocks", 1, "--", sys.executable, "bench.py", "x")
    assert ran.end() == 0, ran.err
    assert ran.manifest["command"] == [sys.executable, "bench.py", "x"]
    assert (ran.manifest["annotate"], ran.manifest["framework"]) == ("off", "MLX")


def test_nothing_secret_is_kept(record: Record) -> None:
    ran = record(
        "--graphs", "on", "--arm", "a:HF_TOKEN=planted1", "--blocks", 1, "bench.py", "--api-key", "planted2",
        env={"VLLM_API_KEY": "planted3", "SOME_PATH": "planted4", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    )  # fmt: skip
    assert ran.end() == 0, ran.err
    text = (ran.run_folder / "run.json").read_text()
    assert "planted" not in text
    assert ran.manifest["environment"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_a_kept_report_lies_beside_its_export(record: Record) -> None:
    ran = record("--graphs", "on", "--keep-rep", "bench.py")
    assert ran.end() == 0, ran.err
    assert ran.files == ["on-1.nsys-rep", "on-1.sqlite", "run.json"]
    assert ran.manifest["blocks"][0]["report"] == "on-1.nsys-rep"
