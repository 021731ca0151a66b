# make demo   compare the two shipped traces: the main job on sample data
# make test   run the tests
# make check  lint, types and tests
# make docs   write what is generated: JSON schema, command reference

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check lint types docs samples

demo: .venv/.installed
	$(BIN)/tracekit diff sample_traces/gbx-graphs-on.sqlite sample_traces/gbx-graphs-off.sqlite
	@echo
	$(BIN)/tracekit overlap sample_traces/gbx-graphs-on.sqlite --baseline sample_traces/gbx-graphs-off.sqlite

test: .venv/.installed-for-tests
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

check: lint types test

lint: .venv/.installed-for-tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.installed-for-tests
	$(BIN)/mypy

docs: .venv/.installed-for-tests
	$(BIN)/python scripts/make_schema.py
	$(BIN)/typer tracekit.cli utils docs --name tracekit --title "Command reference" --output docs/cli.md

samples: .venv/.installed-for-tests
	$(BIN)/python scripts/make_sample_traces.py

.venv/.created:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.installed: .venv/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-for-tests: .venv/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ .venv/.installed
