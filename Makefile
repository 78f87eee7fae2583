# Every target makes the virtual environment by itself, quietly and once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo-installed
DOCS_STAMP := $(VENV)/.docs-installed
MLFLOW_VENV := .venv-mlflow
AUDIT_VENV := .venv-audit
MLFLOW_STAMP := $(MLFLOW_VENV)/.installed
ORCHESTRATORS_VENV := .venv-orchestrators
ORCHESTRATORS_STAMP := $(ORCHESTRATORS_VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
CHECK := $(addprefix tests/,core search learners quilt data cli/test_select.py test_contracts.py test_public_api.py)

.PHONY: demo check test test-all test-mlflow test-orchestrators lint format bench docs audit clean

demo: $(DEMO_STAMP)
	@$(BIN)/driftquilt demo

# The inner loop: under 90 seconds on two cores.
check: lint
	@$(PYTEST) -q -m "not slow and not costly" $(CHECK)

test: lint
	@$(PYTEST) -q -m "not slow"

test-all: lint
	@$(PYTEST) -q

test-mlflow: $(MLFLOW_STAMP)
	@$(MLFLOW_VENV)/bin/python -m pytest -q tests/integrations/mlflow

test-orchestrators: $(ORCHESTRATORS_STAMP)
	@$(ORCHESTRATORS_VENV)/bin/python -m pytest -q tests/integrations/orchestrators

lint: $(STAMP)
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports > $(VENV)/lint-imports.txt || (cat $(VENV)/lint-imports.txt; false)

format: $(STAMP)
	@$(BIN)/ruff check -q --fix .
	@$(BIN)/ruff format -q .

bench: $(STAMP)
	@$(BIN)/python -m benchmarks.cost

docs: $(DOCS_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo site/index.html

# Known faults of what is pinned; needs the internet.
audit: $(STAMP)
	@test -x $(AUDIT_VENV)/bin/pip-audit || ($(PYTHON) -m venv $(AUDIT_VENV) && \
		$(AUDIT_VENV)/bin/python -m pip install -qq --disable-pip-version-check pip-audit)
	@for pins in constraints.txt constraints-mlflow.txt constraints-orchestrators.txt; do \
		$(AUDIT_VENV)/bin/pip-audit --requirement $$pins --no-deps --disable-pip --strict || exit 1; \
	done

clean:
	rm -rf $(VENV) $(MLFLOW_VENV) $(ORCHESTRATORS_VENV) $(AUDIT_VENV) demo-out bench-out site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), once; this takes some minutes ..." >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# What a look takes; the tests install the rest.
$(DEMO_STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), once; this takes a minute ..." >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[report]'
	@touch $@

# MLflow refuses some of the versions that constraints.txt pins, so it lives apart.
$(MLFLOW_STAMP): pyproject.toml constraints-mlflow.txt
	@test -x $(MLFLOW_VENV)/bin/python || $(PYTHON) -m venv $(MLFLOW_VENV)
	@echo "Installing into $(MLFLOW_VENV), once; this takes some minutes ..." >&2
	@$(MLFLOW_VENV)/bin/python -m pip install -qq --disable-pip-version-check -c constraints-mlflow.txt \
		-e '.[mlflow]' hypothesis pandas pytest pytest-timeout
	@touch $@

# Airflow, Prefect and Dagster agree with each other, but not with all that constraints.txt pins.
$(ORCHESTRATORS_STAMP): pyproject.toml constraints-orchestrators.txt
	@test -x $(ORCHESTRATORS_VENV)/bin/python || $(PYTHON) -m venv $(ORCHESTRATORS_VENV)
	@echo "Installing into $(ORCHESTRATORS_VENV), once; this takes some minutes ..." >&2
	@$(ORCHESTRATORS_VENV)/bin/python -m pip install -qq --disable-pip-version-check \
		-c constraints-orchestrators.txt -e . apache-airflow prefect dagster \
		hypothesis pandas pytest pytest-timeout
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@
