# SPDX-License-Identifier: Apache-2.0
# make demo: train a small model and run it on an emulated board.
# make lint: run the linters.
# make test: run the tests that take under 0.15 seconds, and one test of each slow family.
# make test-rest: run the other tests, except the nightly ones.
# make test-all: run the tests of both.
# make nightly: run all tests, with all rows of every matrix and all faults of every campaign.
# PYTEST_OPTIONS adds options for pytest to these four, such as `-n 0` or a folder.
# make docs: build the documentation as a site, in build/docs.
# make tools: install at once what all of these need; each target also installs what it lacks.
# make locked: install the same at the versions and hashes of .ci/requirements.txt, if they are for this Python.
# make mutants: put faults into the sources, which the tests must notice (SEED, NUMBER, OPTIONS, JOBS; 0 is one job per core).

# make scoreboard: run the cases of third parties' test suites (docs/how-ferrule-is-tested.md).
# make fuzz: try damaged inputs on everything that reads untrusted input (SEED, INPUTS, JOBS); it goes on where it stopped.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SEED ?= 1
NUMBER ?= 100
INPUTS ?= 1000000
JOBS ?= 0
# One worker per core. Each starts with a contiguous part of the tests, so that fixtures shared within a file are made once.
# Modules are compiled once, even where the environment says otherwise: the tests start Python hundreds of times.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --dist worksteal
# The extras for the linters and tests.
DEV = run,demo,oracle,quantize,dev,gpu,hdf5,onnx,data,cluster,tables,rdl,ethos-u
export PIP_DISABLE_PIP_VERSION_CHECK = 1

demo: $(VENV)/demo
	$(BIN)/python examples/digits/demo.py

test: $(VENV)/dev
	$(PYTEST) -m "not nightly and (not slow or sentinel)" $(PYTEST_OPTIONS)

test-rest: $(VENV)/dev
	$(PYTEST) -m "not nightly and slow and not sentinel" $(PYTEST_OPTIONS)

test-all: $(VENV)/dev
	$(PYTEST) -m "not nightly" $(PYTEST_OPTIONS)

nightly: $(VENV)/dev
	FERRULE_EXHAUSTIVE=1 $(PYTEST) $(PYTEST_OPTIONS)

lint: lint-python lint-c

lint-python: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-c: $(VENV)/dev
	git ls-files '*.c' '*.h' | xargs $(BIN)/clang-format --dry-run -Werror
	cppcheck --std=c11 --enable=warning,portability,performance --inline-suppr --quiet --error-exitcode=1 -UFERRULE_PORT_H -UFERRULE_CORE_HEADER \
	    --suppress=missingIncludeSystem -Iinclude -Isrc_c/kernels/include -Isdk/ferrule/architectures/cortex_m/startup/include \
	    -Isdk/ferrule/emulation/unicorn/src -Isdk/ferrule/architectures/cortex_m/engine \
	    -Iplatforms/bare_metal/include -Iplatforms/cmsis/include -Iplatforms/cmsis/drivers -Isdk/ferrule/testing/fakes/cmsis \
	    -Iplatforms/freertos/include -Isdk/ferrule/testing/fakes/freertos \
	    -Iplatforms/threadx/include -Isdk/ferrule/testing/fakes/threadx \
	    -Iplatforms/zephyr/include -Isdk/ferrule/testing/fakes/zephyr -DCONFIG_FERRULE_UART_RX_BYTES=64 \
	    -DCONFIG_FERRULE_UART_TX_BYTES=64 src_c platforms/bare_metal platforms/cmsis platforms/freertos platforms/threadx \
	    platforms/zephyr sdk/ferrule/emulation/unicorn/src sdk/ferrule/architectures sdk/ferrule/backends/ethos_u/native

docs: $(VENV)/docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs --doctree-dir build/docs-trees . build/docs
	@echo build/docs/index.html

dev: $(VENV)/dev

tools: $(VENV)/tools

locked: $(VENV)/locked

mutants: $(VENV)/dev
	PYTHONPATH=tests/support $(BIN)/python tests/mutants.py --seed $(SEED) --number $(NUMBER) --jobs $(JOBS) $(OPTIONS)

fuzz: $(VENV)/dev
	$(BIN)/python tests/fuzz.py --seed $(SEED) --number $(INPUTS) --jobs $(JOBS)

scoreboard: $(VENV)/dev
	$(BIN)/python tests/scoreboard.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[run,demo]'
	@touch $@

$(VENV)/dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[$(DEV)]'
	@touch $@

# What `make tools` installs, at the versions and hashes of the lock, which is for one Python: see .ci/lock.py.
$(VENV)/locked: pyproject.toml .ci/requirements.txt | $(VENV)/bin/python
	$(BIN)/python .ci/lock.py --covers
	$(BIN)/pip install --quiet --require-hashes --only-binary :all: -r .ci/requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(VENV)/demo $(VENV)/dev $(VENV)/docs $(VENV)/tools $@

# One installation after the other would resolve the dependencies and build the package each time.
$(VENV)/tools: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[$(DEV),docs,testing]'
	@touch $(VENV)/demo $(VENV)/dev $(VENV)/docs $@

$(VENV)/docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[docs,testing]'
	@touch $@

clean:
	rm -rf $(VENV) build

.PHONY: demo test test-rest test-all nightly lint lint-python lint-c mutants scoreboard docs tools locked dev clean
