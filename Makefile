# Two commands do all the set-up on a fresh machine: `make up` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Twice the cores of a small machine: half of the tests' time is waiting for leases, clocks and processes.
WORKERS ?= 4

# Tests start hundreds of Python processes: each would compile all of Horai anew where the environment forbids to keep it.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install up test check format lock tests visits requirements mutants faults steps-faults ray-tests oracles bench bench-peak bench-peers docs pictures deployment sbom release clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 16

install: $(INSTALLED)  ## .venv with horai in it and the console built, from nothing but Python >= 3.11
	@$(BIN)/python tools/console.py build

$(INSTALLED): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: Horai needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1)"; echo "hint: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(PYTHON) tools/packages.py $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

up: install  ## run everything: embedded database, API, scheduler (ARGS="--port 9000")
	@exec $(BIN)/horai up $(ARGS)

test:  ## everything CI runs; fails if the run changes the work tree
	@$(PYTHON) tools/work_tree.py $(MAKE) --no-print-directory --jobs 2 check tests

check: install  ## formatting, lint, types, import rules
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/console.py run tsc
	$(BIN)/python tools/console.py run oxlint --deny-warnings

tests: install  ## the tests (ARGS="tests/core -k cron")
	MAKEFLAGS= $(BIN)/python tools/second_look.py $(BIN)/pytest -n $(WORKERS) --dist worksteal -q $(ARGS)

visits: install  ## every page of the console in a real Chromium, against a real server, in the long form
	HORAI_LONG=1 $(BIN)/pytest -q --timeout=3600 -m visits tests/console $(ARGS)

format: install  ## lay the code out
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

requirements: install  ## requirement ids without a passing test, by the last full `make test`
	@$(BIN)/python tools/requirements.py $(ARGS)

mutants: install  ## remove the important guards one by one; each must turn a test red
	$(BIN)/python tools/mutants.py $(ARGS)

faults: install  ## the fault tests in their long form
	HORAI_LONG=1 $(BIN)/pytest -q --timeout=3600 tests/faults $(ARGS)

jetstream: install  ## the leader of a replicated NATS stream killed twenty times under load
	HORAI_LONG=1 $(BIN)/pytest -q --timeout=3600 tests/faults/test_jetstream_faults.py $(ARGS)

steps-faults: install  ## durable functions through 200 killed workers, a frozen one, lost answers and sessions, and 10,000 signals
	HORAI_LONG=1 $(BIN)/pytest -q --timeout=7200 tests/faults/test_durable_steps.py tests/features/steps/test_signals.py $(ARGS)

ray-tests: install  ## functions on a real Ray cluster, in the long form; installs Ray (70 MB) into .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[ray]'
	HORAI_LONG=1 $(BIN)/pytest -q -s --timeout=3600 tests/ray_tasks $(ARGS)

oracles: install  ## the properties of the core, and cron against an independent scanner and cronsim, in their long form
	HORAI_LONG=1 $(BIN)/pytest -q -n $(WORKERS) --timeout=3600 tests/core tests/time tests/features $(ARGS)

bench: install  ## the benchmarks, as ratios to what PostgreSQL itself can do (ARGS="drain latency --quick")
	$(BIN)/python -m benchmarks $(ARGS)

bench-peak: install  ## 55,556 fires/s for a minute as measured, and the highest rate with a p95 below 2 s
	$(BIN)/python -m benchmarks peak --times 1 --seconds 60 $(ARGS)

bench-peers: install  ## Horai beside other schedulers in one sitting, installed into benchmarks/.peers
	$(BIN)/python -m benchmarks.peers $(ARGS)

docs: install  ## the generated pages
	$(BIN)/python tools/states_doc.py
	$(BIN)/python tools/reference_doc.py
	$(BIN)/python tools/openapi_file.py
	$(BIN)/python -m tools.cells

pictures: install  ## the pictures of the documentation, of a console with the work of a shop (two minutes)
	$(BIN)/python tools/pictures.py

deployment: install  ## lint and render the Helm chart with Helm itself, which is fetched for it (70 MB)
	$(BIN)/python tools/deployment.py

sbom: install  ## the software bill of materials (CycloneDX), of the locks
	$(BIN)/python tools/sbom.py

release: install  ## dist/: sdist, wheel, bill of materials, documentation and their checksums
	$(BIN)/python tools/release.py all dist

COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock: install  ## update all dependencies: requirements-dev.lock, and requirements.lock for run time
	$(COMPILE) --upgrade --extra dev pyproject.toml -o requirements-dev.lock
	$(COMPILE) --extra embedded --extra nats --extra kafka --extra otel --extra archive -c requirements-dev.lock pyproject.toml -o requirements.lock

clean:  ## remove what `make` made
	rm -rf console/node_modules console/src/generated src/horai/console dist
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache .requirements.json
