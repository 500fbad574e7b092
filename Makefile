# Everything runs from .venv, which is made on first use and again when the lock changes.

PYTHON ?= python3
UV ?= 0.13.9
WORKERS ?= 2
ARGS ?=
SUDO ?=

BIN := .venv/bin
STAMP := .venv/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-postgres mutants check bench lab lab-servers lock clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## see Rota work (ARGS="FOLDER": on your own files)
	@$(BIN)/rota demo $(ARGS)

test: $(STAMP) ## run the tests (ARGS="-k lease": some of them; WORKERS=0: in one process)
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-postgres: $(STAMP) ## run only the tests that need PostgreSQL
	@$(BIN)/python -m pytest -n $(WORKERS) -m postgres $(ARGS)

mutants: $(STAMP) ## take pieces out, one by one: a test must fail (ARGS="-k settle": some of them)
	@$(BIN)/python -m tests.mutants $(ARGS)

check: $(STAMP) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src lab/src tests examples
	$(BIN)/lint-imports --cache-dir .cache/import-linter

bench: $(STAMP) ## measure (ARGS="--private": on a PostgreSQL of its own)
	@$(BIN)/rota bench $(ARGS)

lab: $(STAMP) ## run an experiment (ARGS="run parallel --quick")
	@$(BIN)/rota lab $(ARGS)

lab-servers: ## install MariaDB and Redis for the lab, on Debian (SUDO=sudo: as root)
	@command -v apt-get >/dev/null || { \
	  echo "This is not Debian: install mariadb-server and redis-server with your system's packages." >&2; \
	  exit 1; }
	@command -v mariadbd >/dev/null && command -v redis-server >/dev/null || \
	  { $(SUDO) apt-get update && $(SUDO) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	    apt-get install --yes --no-install-recommends mariadb-server redis-server; }

lock: ## write requirements.lock anew (ARGS=--upgrade: with the newest versions)
	@test -x .cache/uv-$(UV)/bin/uv || { $(PYTHON) -m venv .cache/uv-$(UV) && \
	  .cache/uv-$(UV)/bin/pip install --quiet --quiet uv==$(UV); }
	.cache/uv-$(UV)/bin/uv pip compile --quiet --universal --generate-hashes --extra dev \
	  --no-emit-package rota --custom-compile-command "make lock" $(ARGS) \
	  --output-file requirements.lock pyproject.toml

clean: ## remove what was made here, .venv too
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src lab tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Rota needs Python 3.11 or later, and '$(PYTHON)' is not:" \
	       "say which one to use, as in 'make PYTHON=python3.13 ...'." >&2; exit 1; }
	@echo "Installing into .venv (only when the lock changes) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation -e . -e ./lab
	@touch $@
