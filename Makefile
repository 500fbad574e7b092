# Everything runs from .venv, which is made on first use and again when the lock changes.

PYTHON ?= python3
UV ?= 0.13.9
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# Many tests wait for something; few do of those that run on other Pythons, where gathering them costs more.
WORKERS ?= $(shell expr 2 '*' $(PROCESSORS))
ARGS ?=
SUDO ?=

BIN := .venv/bin
STAMP := .venv/.installed
UV_BIN := .cache/uv-$(UV)/bin/uv
# The peers of benchmarks/peers: those in Python, and where there is npm, those in Node.js.
PEERS_VENV := .cache/peers/venv
PEERS_NODE := benchmarks/peers/node_modules
PEERS := $(PEERS_VENV)/.installed $(if $(shell command -v npm),$(PEERS_NODE)/.installed)
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes; without bytecode each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-postgres test-large test-pythons mutants swarm schema format check bench browser peers peers-servers lab lab-servers docs dist licences lock clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## see Rota work (ARGS="FOLDER": on your own files)
	@$(BIN)/rota demo $(ARGS)

test: $(STAMP) ## run the tests (ARGS="-k lease": some of them; WORKERS=0: in one process)
	@$(PYTEST) $(ARGS)

test-postgres: $(STAMP) ## run only the tests that need PostgreSQL
	@$(PYTEST) -m postgres $(ARGS)

test-large: $(STAMP) ## run what `make test` leaves out, and what may depend on PostgreSQL's version
	@ROTA_TEST_LARGE=1 $(PYTEST) -m "large or oldest" $(ARGS)

test-pythons: $(STAMP) $(UV_BIN) ## run a part of the tests on the other Pythons that are here
	@UV=$(UV_BIN) .ci/pythons -n $(PROCESSORS) --dist worksteal $(ARGS)

schema: $(STAMP) ## show where schema.sql and the migrations differ
	@$(BIN)/python -m tests.store.schema

mutants: $(STAMP) ## take pieces out, one by one: a test must fail (ARGS="-k settle": some of them)
	@$(BIN)/python -m tests.mutants $(ARGS)

swarm: $(STAMP) ## let workers and producers meet faults (ARGS="--seconds 600 --seed 7"; "--mutant all")
	@$(BIN)/python -m tests.swarm $(ARGS)

format: $(STAMP) ## write all code in its format, and mend what lint can mend by itself
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

check: $(STAMP) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src lab/src tests examples website $(wildcard benchmarks)
	$(BIN)/lint-imports --cache-dir .cache/import-linter

bench: $(STAMP) ## measure (ARGS="--private": on a PostgreSQL of its own)
	@$(BIN)/rota bench $(ARGS)

peers: $(STAMP) $(PEERS) ## measure Rota beside other job queues (ARGS="--rounds 1 --peers rota,graphile")
	@$(BIN)/python -m benchmarks.peers $(ARGS)

peers-servers: ## install PostgreSQL with PgQ, and Redis, for that, on Debian (SUDO=sudo: as root)
	@command -v apt-get >/dev/null || { \
	  echo "This is not Debian: install PgQ and redis-server with your system's packages." >&2; exit 1; }
	@$(SUDO) apt-get update && \
	  version=$$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$$/\1/p') && \
	  $(SUDO) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install --yes \
	    --no-install-recommends "postgresql-$$version" "postgresql-$$version-pgq3" redis-server

lab: $(STAMP) ## run an experiment (ARGS="run parallel --quick")
	@$(BIN)/rota lab $(ARGS)

lab-servers: ## install MariaDB, Redis, NATS and RabbitMQ for the lab and relays, on Debian (SUDO=sudo: as root)
	@command -v apt-get >/dev/null || { \
	  echo "This is not Debian: install the servers of MariaDB, Redis, NATS and RabbitMQ with your system's packages." >&2; \
	  exit 1; }
	@command -v mariadbd >/dev/null && command -v redis-server >/dev/null && \
	  command -v nats-server >/dev/null && command -v rabbitmq-server >/dev/null || \
	  { $(SUDO) apt-get update && $(SUDO) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	    apt-get install --yes --no-install-recommends \
	    mariadb-server redis-server nats-server rabbitmq-server; }

browser: ## install Chromium and its driver for the dashboard's tests, on Debian (SUDO=sudo: as root)
	@command -v apt-get >/dev/null || { \
	  echo "This is not Debian: install Chromium and chromedriver with your system's packages." >&2; \
	  exit 1; }
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { $(SUDO) apt-get update && $(SUDO) env DEBIAN_FRONTEND=noninteractive \
	    apt-get install --yes --no-install-recommends chromium chromium-driver; }

docs: $(STAMP) ## build the documentation's site, in build/site
	@$(BIN)/python -m website $(ARGS)

dist: $(STAMP) ## build wheels and sdists of Rota and of the lab, in dist/
	rm -rf dist
	$(BIN)/hatchling build --directory $(CURDIR)/dist
	cd lab && ../$(BIN)/hatchling build --directory $(CURDIR)/dist

licences: $(STAMP) ## list the licences of all dependencies; fails for one that is not on the list
	@$(BIN)/python -m tests.package.licences

lock: $(UV_BIN) ## write requirements.lock anew (ARGS=--upgrade: with the newest versions)
	$(UV_BIN) pip compile --quiet --universal --generate-hashes --extra dev \
	  --no-emit-package rota --custom-compile-command "make lock" $(ARGS) \
	  --output-file requirements.lock pyproject.toml
	cd benchmarks/peers && $(CURDIR)/$(UV_BIN) pip compile --quiet --universal --generate-hashes \
	  --custom-compile-command "make lock" --python-version 3.11 $(ARGS) \
	  --output-file requirements.txt requirements.in

clean: ## remove what was made here, .venv too
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	rm -rf $(PEERS_NODE)
	find src lab tests $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV_BIN):
	@$(PYTHON) -m venv .cache/uv-$(UV)
	@.cache/uv-$(UV)/bin/pip install --quiet --quiet uv==$(UV)

$(PEERS_VENV)/.installed: benchmarks/peers/requirements.txt
	@echo "Installing the peers in Python (only when their list changes) ..."
	@rm -rf $(PEERS_VENV) && $(PYTHON) -m venv $(PEERS_VENV)
	@$(PEERS_VENV)/bin/python -m pip install --quiet --quiet --require-hashes -r $<
	@touch $@

$(PEERS_NODE)/.installed: benchmarks/peers/package-lock.json
	@echo "Installing the peers in Node.js (only when their list changes) ..."
	@cd benchmarks/peers && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(STAMP): requirements.lock pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Rota needs Python 3.11 or later, and '$(PYTHON)' is not:" \
	       "say which one to use, as in 'make PYTHON=python3.13 ...'." >&2; exit 1; }
	@echo "Installing into .venv (only when the lock changes) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation -e . -e ./lab
	@touch $@
