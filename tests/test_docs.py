"""What the documents say is what the code does."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from tracekit.cli import app
from tracekit.report.json import json_schema, shipped_schema

ROOT = Path(__file__).parents[1]


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## `tracekit (\w+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_command_reference_lists_exactly_the_options_that_exist() -> None:
    command = typer.main.get_command(app)
    documented = _sections((ROOT / "docs" / "cli.md").read_text())
    commands = command.commands  # type: ignore[attr-defined]
    assert set(documented) == set(commands)
    for name, each in commands.items():
        existing = {option for parameter in each.params for option in parameter.opts if option.startswith("--")}
        existing.add("--help")
        listed = set(re.findall(r"^\* `(?:-\w, )?(--[a-z-]+)", documented[name], flags=re.MULTILINE))
        assert listed == existing, name
        assert re.sub(r"\s+", " ", each.help.strip().split("\n\n")[0]) in re.sub(r"\s+", " ", documented[name])


def test_shipped_schema_is_made_from_the_result_types() -> None:
    assert shipped_schema() == json.loads(json.dumps(json_schema()))


def _console_blocks() -> list[tuple[str, str]]:
    text = (ROOT / "README.md").read_text()
    return re.findall(r"```console\n\$ (tracekit [^\n]+)\n```\n+```text\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), _console_blocks())
def test_output_shown_in_the_readme_is_the_real_one(command: str, shown: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *command.split()],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "", "TRACEKIT_CACHE": str(tmp_path), "TRACEKIT_DB": str(tmp_path / "results.db")},
        check=True,
    )
    assert run.stdout.startswith(shown)


def test_the_readme_shows_output() -> None:
    assert _console_blocks()


def _imported_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(run.stdout.split())


def test_marking_a_phase_imports_nothing_heavy() -> None:
    assert not {"polars", "numpy", "typer", "rich", "msgspec", "nvtx"} & _imported_by("from tracekit import phase")


def test_help_imports_no_analysis_library() -> None:
    assert not {"polars", "numpy", "pyarrow"} & _imported_by("import tracekit.cli")


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "sample_traces" / "README.md"]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
