"""What ``tracekit run`` refuses, where it puts its folder, and reading its manifest back."""

import json
from pathlib import Path

import pytest
import stand_in_nsys
from conftest import Run
from run_folders import BENCH, Record, recorder

from tracekit.capture.run_folder import VERSION, RunFolder, read_manifest
from tracekit.errors import UnusableInput

record = pytest.fixture(recorder)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["bench.py"], 2, "--graphs"),
        (["--graphs", "both", "absent.py"], 3, "no such script"),
        (["--graphs", "both", ""], 3, "no such script"),
        (["--graphs", "both", "--", "no-such-program"], 2, "no such program"),
        (["--graphs", "off", "--", "true"], 2, "--framework"),
        (["--graphs", "on", "--framework", "x", "bench.py"], 2, "MLX"),
        (["--graphs", "on", "--load", "absent.py", "bench.py"], 3, "no such script"),
        (["--graphs", "on", "--nsys", "absent", "bench.py"], 2, "--nsys"),
        (["--graphs", "on", "--quick", "--blocks", "3", "bench.py"], 2, "--blocks"),
        (["--graphs", "off", "--dump-graphs", "bench.py"], 2, "--dump-graphs"),
        (["--graphs", "on", "--dump-graphs", "--load", "bench.py", "bench.py"], 2, "--load"),
        (["--graphs", "on", "--capture-phase", "x", "--capture-profiler-api", "bench.py"], 2, "choose one"),
        (["--graphs", "on"], 2, ""),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_leaves_nothing(
    record: Record, arguments: list[str], code: int, said: str
) -> None:
    ran = record(*arguments)
    assert ran.end() == code
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not ran.run_folder.exists()


def test_a_folder_with_something_in_it_is_not_touched(record: Record, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("old")
    ran = record("--graphs", "on", "bench.py")
    assert ran.end() == 2
    assert ran.files == ["mine"]


def test_a_run_has_a_folder_of_its_own_by_default(tmp_path: Path, run: Run) -> None:
    nsys = stand_in_nsys.install(tmp_path / "bin")
    (tmp_path / "bench.py").write_text(BENCH)
    ran = run("run", "--graphs", "on", "--name", "../a b", "bench.py", cwd=tmp_path, env={"TRACEKIT_NSYS": str(nsys)})
    assert ran.code == 0, ran.err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("Z-a-b")
    assert read_manifest(folder).name == "../a b"


def test_runs_that_begin_in_the_same_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len({RunFolder.create(None, "x").path for _ in range(20)}) == 20


def test_manifests_that_are_none_are_refused(tmp_path: Path) -> None:
    manifest = tmp_path / "run.json"
    for text, said in (
        (None, "cannot be read"),
        ("{", "no manifest"),
        ("[]", "no manifest"),
        ('{"version": 1}', "no manifest"),
    ):
        if text is not None:
            manifest.write_text(text)
        with pytest.raises(UnusableInput, match=said):
            read_manifest(tmp_path)
    manifest.write_text(json.dumps({"version": VERSION + 1, "arms": "of another form"}))
    with pytest.raises(UnusableInput, match="newer"):
        read_manifest(tmp_path)
