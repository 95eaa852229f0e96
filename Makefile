# Everything runs in .venv, which is made on first use and made up to date when pyproject.toml changes.
# Paths are relative, so the folder may have any name and may be moved.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
INSTALLED := .venv/installed
PYTEST := $(VENV_PYTHON) -m pytest
# Files of tests are dealt out to so many processes, each with a Spark of its own; 0 runs all in this one.
WORKERS ?= 2
# In the order of tests/plugin.py: left to itself, xdist begins with the files of most tests, which are short ones.
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# What `make fuzz` queries: each seed makes a few tables, and so many queries over them.
FIRST := $(shell date +%s)
SEEDS ?= $(FIRST)-$(shell expr $(FIRST) + 39)
QUERIES ?= 50

# How many queries each seed of the random ones asks in the quick tier.
QUICK_QUERIES ?= 12
# The same for random MERGE statements, which take seconds each.
QUICK_MERGES ?= 2
# What `make test-rest` runs: a share, from 0 to 1, and the key that draws it.
SHARE ?= 0.1
DRAW ?= $(shell git rev-parse --short HEAD 2>/dev/null)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-rest test-all test-fast test-spark lint types doctest check bench cluster readme fuzz clean python java

help: ## list the targets
	@awk -F ': *[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## make .venv with everything the other targets need

demo: java $(INSTALLED) ## the main job on real input: TPC-DS star joins with and without pruning
	$(VENV_PYTHON) -m connectors.cli.main demo $(ARGS)

test: java $(INSTALLED) ## the quick tier: all tests without Spark, and of each Spark test function one case
	SCANPRUNE_QUERIES=$(QUICK_QUERIES) SCANPRUNE_MERGES=$(QUICK_MERGES) $(PYTEST) $(SPREAD) --tier quick $(ARGS)

test-rest: java $(INSTALLED) ## a share of the tests that `test` leaves out, drawn by DRAW
	$(PYTEST) $(SPREAD) --tier rest --share $(SHARE) --draw $(DRAW) $(ARGS)

test-all: java $(INSTALLED) ## every test: about 40 minutes on two cores
	$(PYTEST) $(SPREAD) $(ARGS)

test-fast: $(INSTALLED) ## the tests that need no Java
	$(PYTEST) $(SPREAD) -m "not spark" $(ARGS)

test-spark: java $(INSTALLED) ## the tests that need Spark
	$(PYTEST) $(SPREAD) -m spark $(ARGS)

lint: $(INSTALLED) ## style, likely faults, and arrows between layers
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	.venv/bin/lint-imports --no-cache
	$(PYTEST) -q tests/test_layers.py

types: $(INSTALLED) ## strict types
	$(VENV_PYTHON) -m mypy

doctest: $(INSTALLED) ## the examples in docstrings
	$(PYTEST) --doctest-modules pruning connectors

check: java lint types doctest test ## lint, types, doctests and the quick tier

bench: java $(INSTALLED) ## measure small sizes, in minutes; python -m benchmarks measures any
	$(VENV_PYTHON) -m benchmarks.run --quick $(ARGS)

cluster: java $(INSTALLED) ## the oracle's core on a Spark cluster over an object store, with failures; needs Go once
	$(VENV_PYTHON) -m tests.cluster $(ARGS)

fuzz: java $(INSTALLED) ## the laws with many more examples, and random queries; other ones each time
	$(PYTEST) -m "not spark" --hypothesis-profile=fuzz --timeout=3600 tests/pruning $(ARGS)
	SCANPRUNE_SEEDS=$(SEEDS) SCANPRUNE_QUERIES=$(QUERIES) SCANPRUNE_MERGES=$(QUERIES) $(PYTEST) -n $(WORKERS) \
		tests/oracle/test_random_queries.py tests/oracle/test_random_raising.py tests/oracle/test_random_merges.py $(ARGS)

readme: $(INSTALLED) ## put what the benchmarks recorded into README.md
	$(VENV_PYTHON) -m benchmarks.readme_table

clean: ## remove .venv, caches and build output; the demo's tables stay, see README.md
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist scanprune.egg-info
	rm -rf spark-warehouse metastore_db derby.log
	find pruning connectors tests benchmarks sample_data -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml | python
	@test -x $(VENV_PYTHON) && $(VENV_PYTHON) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
	@echo "Installing into .venv; the first time this takes some minutes (Spark alone is 400 MB)"
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(INSTALLED)

# The two checks come before any download. Each fails with one line.
python:
	@command -v "$(PYTHON)" >/dev/null || { echo "scanprune needs Python 3.10 or newer;" \
	  "there is no '$(PYTHON)': install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "scanprune needs Python 3.10 or newer;" \
	  "'$(PYTHON)' is `"$(PYTHON)" --version 2>&1`: install a newer one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { echo "'$(PYTHON)' cannot make virtual environments:" \
	  "install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }

java: python
	@"$(PYTHON)" -I connectors/spark/java_check.py
