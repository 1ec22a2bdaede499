# goclaw needs Python 3.11 or newer and make; everything else goes into .venv.
# Another Python: make PYTHON=/path/to/python3.12 run

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PYTHON ?=
SEED ?= 1
UPGRADE ?=
ARGS ?=

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)
BIN := .venv/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --quiet --quiet --disable-pip-version-check
PYTEST := $(PY) -m pytest

# A user's own pip settings must not send packages past the environment.
export PIP_USER := 0
export PIP_REQUIRE_VIRTUALENV := 0
# Modules are compiled once and not by every process: the tests start many.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: .venv/run.stamp ## install what goclaw needs and start it (ARGS="config show" passes arguments)
	@trap : INT; $(BIN)/goclaw $(ARGS) || { code=$$?; test $$code -eq 130 || exit $$code; }

.PHONY: test
test: .venv/dev.stamp ## run the tests
	@$(PYTEST) -q --numprocesses 3 $(ARGS)

.PHONY: check
check: .venv/dev.stamp ## formatting, lint, types, import rules, dependencies, then the tests
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(BIN)/lint-imports --no-logo
	@$(PY) -m deptry .
	@$(MAKE) test

.PHONY: format
format: .venv/dev.stamp ## format the code and fix what the linter can fix
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

.PHONY: bench
bench: .venv/dev.stamp ## measure the scheduler and the stores
	@$(PY) -m bench $(ARGS)

.PHONY: simulate
simulate: .venv/dev.stamp ## replay one simulated history (SEED=7)
	@$(PY) -m tests.simulation $(SEED)

.PHONY: faults
faults: .venv/dev.stamp ## run the tests that break things on purpose (minutes)
	@$(PYTEST) -q -m faults $(ARGS)

.PHONY: soak
soak: .venv/dev.stamp ## run the tests that look for leaks over a long time
	@$(PYTEST) -q -m soak $(ARGS)

# Versions that still fit are kept; UPGRADE=1 takes the newest ones.
# The run lock follows the dev lock, so that tests see what users get.
COMPILE = UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip compile pyproject.toml --quiet --python $(PY) \
	--no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: lock
lock: .venv/dev.stamp ## pin every package anew in requirements/ (UPGRADE=1 for the newest versions)
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --group build --group dev --output-file requirements/dev.lock
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --group build --constraint requirements/dev.lock \
		--output-file requirements/run.lock
	@echo "requirements/run.lock and requirements/dev.lock are up to date."

.PHONY: clean
clean: ## remove .venv, caches and build output
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# A stamp is written as the last step of an install, so an interrupted one is done again.
.venv/run.stamp: requirements/run.lock pyproject.toml .venv/made
	@echo "Installing goclaw into .venv ..." >&2
	@rm -f $@
	@$(PIP) install --require-hashes -r requirements/run.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: requirements/dev.lock pyproject.toml .venv/made
	@echo "Installing goclaw and its development tools into .venv ..." >&2
	@rm -f $@
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch .venv/run.stamp $@

# The environment holds absolute paths: it is made again when the directory moved or its Python is gone.
ifneq ($(shell $(PY) -c 'print(open(".venv/made").read())' 2>/dev/null),$(CURDIR))
.venv/made: FORCE
endif

.venv/made:
	@set -e; found=; \
	for candidate in $(CANDIDATES); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found=$$candidate; break; \
		fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "goclaw needs Python 3.11 or newer; found none. Looked for: $(CANDIDATES)" >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	rm -rf .venv; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null || ! "$$found" -m venv .venv; then \
		rm -rf .venv; \
		echo "$$found cannot make a virtual environment." >&2; \
		echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	fi; \
	printf '%s' "$(CURDIR)" > $@

.PHONY: FORCE
FORCE:
