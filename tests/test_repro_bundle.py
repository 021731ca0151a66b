"""What ``tracekit repro`` writes: the files, the same bytes again, and nothing that tells of a person or a place."""

import csv
import json
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Run
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from nsys_export import Export
from output_reading import csv_rows
from repro_building import IN_ORDER, UNIT, plant

from tracekit.report.json import json_schema
from tracekit.repro.building import architecture
from tracekit.repro.tables import literal

SAMPLES = Path(__file__).parents[1] / "sample_traces"
ON, OFF = SAMPLES / "gbx-graphs-on.sqlite", SAMPLES / "gbx-graphs-off.sqlite"

FILES = [
    "CMakeLists.txt", "EXPECTED.md", "README.md", "build.sh", "env.json", "expected.json", "graph.inc", "repro.cu",
    "run.sh", "summary.csv",
]  # fmt: skip
SECRETS = ["alice", "galaxybox", "s3cr3t", "hf_abcdefgh12345678", "/srv/", "10.1.2.3"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_bundle_has_all_files_in_a_folder_and_in_an_archive(call: Run, tmp_path: Path) -> None:
    ran = call("repro", ON, "--baseline", OFF, "-o", tmp_path / "slow", "--format", "json")
    Draft202012Validator(json_schema()).validate(ran.answer)
    assert ran.answer["files"] == FILES == sorted(files_of(tmp_path / "slow"))
    with tarfile.open(tmp_path / "slow.tar.gz") as archive:
        packed = {member.name: member for member in archive.getmembers()}
        assert list(packed) == [f"slow/{name}" for name in FILES]
        assert {member.mtime for member in packed.values()} == {0}
        assert {(member.uid, member.gid, member.uname, member.gname) for member in packed.values()} == {(0, 0, "", "")}
        archive.extractall(tmp_path / "unpacked")
    assert files_of(tmp_path / "unpacked" / "slow") == files_of(tmp_path / "slow")
    for script in ("build.sh", "run.sh"):
        assert (tmp_path / "unpacked" / "slow" / script).stat().st_mode & 0o111
        subprocess.run(["sh", "-n", tmp_path / "slow" / script], check=True)
    assert "-arch=${1:-sm_121}" in (tmp_path / "slow" / "build.sh").read_text()
    assert (ran.answer["launch"], ran.answer["nodes"], ran.answer["edges"]) == (30, 25, 29)


def test_the_same_input_gives_the_same_bytes_also_with_its_rows_shuffled(call: Run, tmp_path: Path) -> None:
    planted = plant(tmp_path)
    shuffled = tmp_path / "again"
    shuffled.mkdir()
    copy = shuffled / "other-name.sqlite"
    with closing(sqlite3.connect(planted.trace)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        with target:
            target.execute(f"CREATE TABLE turned AS SELECT * FROM {table} ORDER BY start DESC")
            target.execute(f"DELETE FROM {table}")
            target.execute(f"INSERT INTO {table} SELECT * FROM turned")
            target.execute("DROP TABLE turned")
    archives = []
    for trace, folder in ((planted.trace, tmp_path / "one"), (planted.trace, tmp_path / "two"), (copy, shuffled)):
        folder.mkdir(exist_ok=True)
        assert call("repro", trace, "--dot", planted.dump, "-o", folder / "b").code == 0
        archives.append((folder / "b.tar.gz").read_bytes())
    assert archives[0] == archives[1] == archives[2]


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """A trace that holds secrets wherever a trace can."""
    export = Export()
    export.gpu(0, "NVIDIA GB10 of alice@galaxybox")
    for launch in range(2):
        at, node = 10_000 * launch + 1000, UNIT
        correlation = export.launch(at - 100, at - 50, "cudaGraphLaunch_v10000")
        for name in (
            "void gemm<1>(int)",
            "/srv/alice/kernel.cu",
            "s3cr3t_alice_kernel",
            'x"; system("id"); //',
            "k\n#error",
        ):
            export.kernel(at, at + 900, stream=7, name=name, short=name, mangled="", node=node, correlation=correlation)
            node += 1
            at += 600
        export.range(10_000 * launch + 500, 10_000 * launch + 9000, "prefill for alice@galaxybox", domain="tracekit")
    export.memcpy(30_000, 31_000, bytes=5)
    trace = export.write(tmp_path / "alice-galaxybox.sqlite")
    with closing(sqlite3.connect(trace)) as connection, connection:
        settings = {"Hostname": "galaxybox", "NvDriverVersion": "s3cr3t", "X_USER": "alice", "Y": "/home/alice/x"}
        connection.execute(
            "CREATE TABLE IF NOT EXISTS TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name, nameEnum, value)"
        )
        for name, value in settings.items():
            connection.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES (?, ?)", (name, value))
    return trace


def test_nothing_in_a_bundle_tells_of_a_person_or_a_place(call: Run, telling: Path, tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    ran = call("repro", telling, "--phase", "prefill for alice@galaxybox", "-o", target, "--with-traces")
    assert ran.code == 0, ran.err
    issue = call("repro", telling, "--phase", "prefill for alice@galaxybox", "--issue")
    everything = {**files_of(target), "issue": issue.out.encode()}
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        everything |= {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]
    for name, content in everything.items():
        for secret in [*SECRETS, str(tmp_path), tmp_path.name]:
            assert secret.encode() not in content.lower(), (name, secret)
    assert {"traces/graph.sqlite"} == {name for name in files_of(target) if name.startswith("traces")}


def test_names_from_a_trace_stay_inside_of_their_literals(call: Run, telling: Path, tmp_path: Path) -> None:
    assert call("repro", telling, "-o", tmp_path / "bundle").code == 0
    table = (tmp_path / "bundle" / "graph.inc").read_text()
    assert '"x_; system(_id_); //"' in table
    assert "\n#error" not in table
    assert literal('a"b\\c?d\ne\x7f\u00e9') == '"a_b_c_d_e__"'


def test_facts_of_a_run_are_from_an_allow_list(call: Run, tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    ran = call("repro", folder, "-o", tmp_path / "bundle", "--format", "json")
    assert [Path(trace["path"]).name for trace in ran.answer["traces"]] == ["on-1.sqlite", "off-1.sqlite"]
    facts = json.loads((tmp_path / "bundle" / "env.json").read_text())
    assert facts["packages"] == {"mlx": "0.32.4"}
    assert facts["environment"] == {"MLX_USE_CUDA_GRAPHS": "1", "CUDA_VISIBLE_DEVICES": "0"}
    assert (facts["driver"], facts["cuda"], facts["framework"]) == ("580.95.05", "13.0", "MLX")
    assert facts["command"] == "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --nvtx-capture=... WORKLOAD"
    everything = b"".join(files_of(tmp_path / "bundle").values()).lower()
    assert all(secret.encode() not in everything for secret in SECRETS)


def run_folder(parent: Path) -> Path:
    """A run with secrets in its manifest."""
    folder = parent / "run"
    folder.mkdir()
    for trace, name in ((OFF, "off-1"), (ON, "on-1")):
        (folder / f"{name}.sqlite").write_bytes(trace.read_bytes())
    manifest = {
        "version": 1, "name": "alice", "state": "complete", "started": "2026-01-01T00:00:00Z",
        "command": ["python", "/srv/alice.py"],
        "annotate": "auto", "framework": "MLX", "packages": {"mlx": "0.32.4", "alice": "1.0", "torch": "s3cr3t"},
        "machine": {"driver": "580.95.05", "cuda": "13.0"},
        "nsys": {
            "version": "2026.2.1",
            "arguments": [
                "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--nvtx-capture=for alice's s3cr3t@tracekit",
                "--output=/srv/alice/x", "--env-var=TOKEN=hf_abcdefgh12345678",
            ],
        },
        "environment": {
            "MLX_SAVE_CUDA_GRAPHS_DOT_FILE": "/srv/alice/g", "CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "s3cr3t",
        },
        "arms": [
            {"name": "off", "role": "off", "environment": {"MLX_USE_CUDA_GRAPHS": "0"}, "arguments": []},
            {"name": "on", "role": "on", "environment": {"MLX_USE_CUDA_GRAPHS": "1"}, "arguments": ["/srv/alice"]},
        ],
        "blocks": [
            {"arm": "off", "block": 1, "trace": "off-1.sqlite"}, {"arm": "on", "block": 1, "trace": "on-1.sqlite"},
        ],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def test_a_runs_report_goes_along_unless_it_tells_of_a_place(call: Run, tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    (folder / "report.html").write_text("<p>kernels</p>")
    assert call("repro", folder, "-o", tmp_path / "one").code == 0
    assert (tmp_path / "one" / "report.html").read_text() == "<p>kernels</p>"
    (folder / "report.html").write_text(f"<p>{folder}/on-1.sqlite</p>")
    answer = call("repro", folder, "-o", tmp_path / "two", "--format", "json").answer
    assert not (tmp_path / "two" / "report.html").exists()
    assert [each["code"] for each in answer["warnings"]] == ["report_left_out"]


def test_what_exists_is_replaced_only_when_forced_and_only_if_it_is_a_repro(call: Run, tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    assert call("repro", ON, "-o", target).code == 0
    before = files_of(target)
    again = call("repro", OFF, "-o", target)
    assert (again.code, "--force" in again.err, files_of(target)) == (2, True, before)
    (target / "left-over").write_text("x")
    assert call("repro", ON, "-o", target, "--force").code == 0
    assert files_of(target) == before
    mine = tmp_path / "mine"
    mine.mkdir()
    assert call("repro", ON, "-o", mine, "--force").code == 2
    assert call("repro", ON, "-o", tmp_path / "absent" / "x").code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "bundle.tar.gz", "mine"]


def test_an_issue_is_printed_with_the_observed_table_and_nothing_is_written(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = call("repro", ON, "--baseline", OFF, "--issue")
    assert (ran.code, list(tmp_path.iterdir())) == (0, [])
    assert ran.out.startswith("# CUDA graph runs 61.4 ms slower than the same nodes one after another")
    assert "| `qmm_sm80` | 4352x1x1 | 128x1x1 | 21 |" in ran.out
    assert "No GPU has run this bundle yet" in ran.out


def test_the_readme_says_what_is_slow_how_to_run_it_and_that_no_gpu_has_confirmed_it(call: Run, tmp_path: Path) -> None:
    assert call("repro", ON, "--baseline", OFF, "-o", tmp_path / "bundle").code == 0
    text = (tmp_path / "bundle" / "README.md").read_text()
    for said in (
        "61.4 ms more in the graph", "Of 24 launches of this graph 24 lost time", "./build.sh && ./run.sh",
        "nvidia-bug-report.log.gz",
        "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node", "compute capability 12.1", "nsys: 2026.2.1.210",
        "No GPU has run this bundle yet", "edges are inferred",
    ):  # fmt: skip
        assert said in text, said
    expected = (tmp_path / "bundle" / "EXPECTED.md").read_text()
    assert "exit code 10" in expected and "61.4 ms" in expected


def test_the_summary_has_a_row_for_every_node(call: Run, tmp_path: Path) -> None:
    planted = plant(tmp_path)
    out = call("repro", planted.trace, "--dot", planted.dump, "-o", tmp_path / "bundle", "--format", "csv").out
    rows = list(csv.DictReader((tmp_path / "bundle" / "summary.csv").open()))
    assert [row["name"] for row in rows] == IN_ORDER == [row["name"] for row in csv_rows(out)]
    assert (rows[0]["grid"], rows[0]["cluster"], rows[0]["registers"]) == ("48x1x1", "2x1x1", "128")


@pytest.mark.parametrize(
    ("capability", "arch"), [("12.1", "sm_121"), ("9.0", "sm_90"), (None, "native"), ("12; rm -rf /", "native")]
)
def test_the_architecture_is_the_traced_gpus(capability: str | None, arch: str) -> None:
    assert architecture(capability) == arch


@pytest.mark.parametrize(
    "options",
    [["--launch", "3", "--worst"], ["--launch", "3", "--phase", "decode"], ["--launch", "999"], ["--phase", "x"]],
)
def test_a_choice_that_cannot_be_made_is_wrong_usage(options: list[str], call: Run, tmp_path: Path) -> None:
    ran = call("repro", ON, "-o", tmp_path / "b", *options)
    assert (ran.code, len(ran.err.splitlines()), list(tmp_path.iterdir())) == (2, 1, [])
