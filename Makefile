# Every target makes the virtual environment by itself, quietly and once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-all lint format bench docs clean

demo: $(STAMP)
	@$(BIN)/driftquilt demo

test: lint
	@$(PYTEST) -q -m "not slow"

test-all: lint
	@$(PYTEST) -q

lint: $(STAMP)
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports > $(VENV)/lint-imports.txt || (cat $(VENV)/lint-imports.txt; false)

format: $(STAMP)
	@$(BIN)/ruff check -q --fix .
	@$(BIN)/ruff format -q .

bench: $(STAMP)
	@$(BIN)/driftquilt bench

docs: $(DOCS_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo site/index.html

clean:
	rm -rf $(VENV) demo-out bench-out site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), once; this takes some minutes ..." >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@
