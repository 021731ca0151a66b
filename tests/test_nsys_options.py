"""nsys is never given an option that its version does not know, and what is left out is said."""

import re
import subprocess
from pathlib import Path

import pytest
from nsys_known_options import KNOWN

from tracekit.capture.nsys import find_nsys
from tracekit.capture.nsys_options import (
    Arguments,
    Settings,
    Version,
    nsys_version,
    profile_arguments,
    profile_environment,
)
from tracekit.errors import OutsideProgramFailed, WrongUsage

EVERYTHING = [
    Settings(
        osrt=True, capture_phase="prefill", delay_s=1.5, duration_s=3, kill="none", wait="primary", stop_on_exit=False
    ),
    Settings(capture_profiler_api=True),
    Settings(),
]


def arguments(version: Version, settings: Settings, output: str = "/runs/1/report") -> Arguments:
    return profile_arguments(version, settings, output=Path(output), session="tracekit-1")


def names(options: list[str]) -> list[str]:
    return [option.partition("=")[0] for option in options]


@pytest.fixture(scope="module")
def nsys() -> Path:
    found = find_nsys()
    if found is None:
        pytest.skip("there is no nsys on this machine")
    return found


@pytest.mark.parametrize("settings", EVERYTHING)
@pytest.mark.parametrize("version", KNOWN)
def test_only_options_that_a_version_lists_are_sent_to_it(version: Version, settings: Settings) -> None:
    assert set(names(arguments(version, settings).options)) <= KNOWN[version]


@pytest.mark.parametrize("settings", EVERYTHING)
@pytest.mark.parametrize("version", KNOWN)
def test_each_option_left_out_has_a_note_and_is_unknown_to_the_version(version: Version, settings: Settings) -> None:
    whole = names(arguments((2999, 1, 1), settings).options)
    sent = arguments(version, settings)
    left_out = set(whole) - set(names(sent.options))
    assert not left_out & KNOWN[version]
    assert {option for option in whole if any(f" {option}=" in note for note in sent.notes)} == left_out


@pytest.mark.parametrize("settings", EVERYTHING)
def test_what_is_sent_to_the_nsys_here_is_in_its_own_help(nsys: Path, settings: Settings) -> None:
    text = subprocess.run([nsys, "profile", "--help"], capture_output=True, text=True, check=False).stdout
    listed = set(re.findall(r"--[a-z][a-z-]+", text))
    assert set(names(arguments(nsys_version(nsys), settings).options)) <= listed


@pytest.mark.parametrize("settings", EVERYTHING)
def test_the_nsys_here_accepts_the_arguments(nsys: Path, settings: Settings, tmp_path: Path) -> None:
    options = arguments(nsys_version(nsys), settings, str(tmp_path / "report")).options
    ran = subprocess.run([nsys, "profile", *options, "/no/such/program"], capture_output=True, text=True, check=False)
    assert "Executable not found" in ran.stdout + ran.stderr


def test_a_version_between_two_known_ones_gets_what_the_earlier_one_knows() -> None:
    def known(version: Version) -> list[str]:
        return names(arguments(version, Settings()).options)

    assert known((2022, 5, 0)) == known((2022, 4, 2))
    assert known((2024, 7, 9)) == known((2023, 4, 4))
    assert known((2025, 3, 2)) == [*known((2023, 4, 4))[:4], "--cuda-event-trace", *known((2023, 4, 4))[4:]]


def test_a_plain_recording_traces_graphs_by_node_and_samples_nothing() -> None:
    assert arguments((2026, 2, 1), Settings()).options == [
        "--trace=cuda,nvtx",
        "--cuda-graph-trace=node",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-event-trace=false",
        "--discard-environment=true",
        "--show-output=false",
        "--export=none",
        "--session-new=tracekit-1",
        "--output=/runs/1/report",
    ]


def test_capturing_a_phase_leaves_the_workload_running() -> None:
    options = arguments((2023, 4, 4), Settings(capture_phase="prefill")).options
    assert {"--capture-range=nvtx", "--nvtx-capture=prefill@tracekit", "--capture-range-end=stop"} <= set(options)


def test_names_that_nsys_would_read_otherwise_are_escaped() -> None:
    options = arguments((2023, 4, 4), Settings(capture_phase="step@2"), "/runs/100%p/report").options
    assert r"--nvtx-capture=step\@2@tracekit" in options
    assert "--output=/runs/100%%p/report" in options


def test_unregistered_range_names_are_captured_too() -> None:
    assert profile_environment(Settings(capture_phase="step")) == {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}
    assert profile_environment(Settings(capture_profiler_api=True)) == {}


@pytest.mark.parametrize(
    "own", ["--sample=process-tree", "--trace=cuda,nvtx,cublas", "-t", "-tcuda", "--gpuctxsw=true"]
)
def test_what_is_passed_on_comes_last_and_replaces_ours(own: str) -> None:
    options = arguments((2023, 4, 4), Settings(passed_on=(own, "value"))).options
    assert options[-2:] == [own, "value"]
    ours = names(options[:-2])
    assert names([own])[0] not in ours
    assert ("--trace" in ours) == (not own.startswith(("-t", "--trace=")))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(capture_phase="a", capture_profiler_api=True),
        Settings(stop_on_exit=False),
        Settings(passed_on=("-o", "elsewhere")),
        Settings(passed_on=("--export=sqlite",)),
        Settings(passed_on=("--show-output=true",)),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: Settings) -> None:
    with pytest.raises(WrongUsage):
        arguments((2026, 2, 1), settings)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0", (2023, 4, 4)),
        ("NVIDIA Nsight Systems version 2020.4.3.7-10543b6", (2020, 4, 3)),
        ("NVIDIA Nsight Systems version 2026.2", (2026, 2, 0)),
    ],
)
def test_the_version_is_read_from_what_nsys_says(tmp_path: Path, said: str, version: Version) -> None:
    assert nsys_version(script(tmp_path / "nsys", f"echo '{said}'")) == version


@pytest.mark.parametrize("text", ["echo hello", "exit 3"])
def test_an_nsys_that_tells_no_version_is_told_of(tmp_path: Path, text: str) -> None:
    with pytest.raises(OutsideProgramFailed, match="--version"):
        nsys_version(script(tmp_path / "nsys", text))


def test_the_nsys_here_tells_its_version(nsys: Path) -> None:
    assert nsys_version(nsys) >= (2019, 1, 0)
