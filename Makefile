# The words that people and CI share. A fresh machine needs Python 3.11 or newer, and make.
#
# Everything is installed into .venv from the lock files, by hash. `make demo` needs what Cadenza
# itself needs and no more; the other targets install the tools for development too.

PY := .venv/bin/python
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
# Compiled once here, in parallel, so that the first command starts as fast as the second. Some
# libraries ship templates that are no Python; those errors do not matter.
COMPILE := env -u PYTHONDONTWRITEBYTECODE $(PY) -m compileall -qq -j 0 .venv/lib || true

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo check services up test test-all bench lock

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: .venv/dev.stamp  ## Make .venv with Cadenza and the tools for development

demo: .venv/runtime.stamp  ## Run a small team of agents, without a model or a key
	@$(PY) -m examples.demo

check: .venv/dev.stamp  ## Lint, formatting, types, and the arrows between the packages
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

services: .venv/dev.stamp  ## Fetch Kafka and Jaeger for the tests; the first time takes minutes
	@$(PY) -m tests.gear.fetch

up: services  ## Start Kafka and Jaeger on their usual ports, until Ctrl-C
	@$(PY) -m tests.gear.serve

# Without a service its tests are skipped; with CI=true they fail.
FETCH := $(PY) -m tests.gear.fetch --where-possible

test: .venv/dev.stamp  ## Run the tests, without the long forms
	@$(FETCH)
	$(PY) -m pytest -n 2 -m "not heavy"

test-all: .venv/dev.stamp  ## Run all tests
	@$(FETCH)
	$(PY) -m pytest -n 2

bench: .venv/dev.stamp  ## Run the benchmarks
	@set -e; for file in benchmarks/[!_]*.py; do \
		test -e "$$file" || { echo "there are no benchmarks yet"; continue; }; \
		echo "== $$file"; $(PY) -m "benchmarks.$$(basename "$$file" .py)"; \
	done

lock: .venv/dev.stamp  ## Pin the dependencies of pyproject.toml again, with hashes
	@uv=$$(PATH="$(CURDIR)/.venv/bin:$$PATH" command -v uv) || { \
		echo "uv is needed to pin dependencies; install it with: $(PY) -m pip install uv" >&2; \
		exit 1; }; \
	compile="$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes"; \
	compile="$$compile --no-header --no-emit-index-url --no-strip-extras"; set -ex; \
	$$compile pyproject.toml -o requirements.lock; \
	$$compile pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock

# A name on PATH may be a version manager's stub for an interpreter that is not there, so each is
# tried; PYTHON=… names the only one to try.
PYTHON ?= python3.11 python3 python3.12 python3.13 python3.14 python

.venv/bin/python:
	@for python in $(PYTHON); do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		echo "Making .venv with $$("$$python" --version)"; \
		"$$python" -m venv --clear .venv && exit 0; \
		echo "$$python cannot make virtual environments; on Debian and Ubuntu install" \
			"python3-venv" >&2; exit 1; \
	done; \
	echo "No Python 3.11 or newer among: $(PYTHON). Install one, or name it:" \
		"make setup PYTHON=/path/to/python3" >&2; exit 1

.venv/runtime.stamp: requirements.lock | .venv/bin/python
	@echo "Installing what Cadenza needs, pinned by requirements.lock; this takes a minute"
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(COMPILE)
	@touch $@

.venv/dev.stamp: requirements-dev.lock pyproject.toml | .venv/bin/python
	@echo "Installing Cadenza and its tools, pinned by requirements-dev.lock; this takes a minute"
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@touch .venv/runtime.stamp $@
