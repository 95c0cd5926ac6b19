# SPDX-License-Identifier: Apache-2.0
# make demo: train a small model, run it on an emulated board.   make test: the tests.   make lint: the linters.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

demo: $(VENV)/demo
	$(BIN)/python examples/digits/demo.py

test: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.c' '*.h' | xargs $(BIN)/clang-format --dry-run -Werror
	cppcheck --std=c11 --enable=warning,portability,performance --inline-suppr --quiet --error-exitcode=1 -UFERRULE_PORT_H \
	    --suppress=missingIncludeSystem -Iinclude -Isrc_c/kernels/include -Isrc_c/startup/include \
	    -Iplatforms/bare_metal/include -Iplatforms/cmsis/include -Iplatforms/cmsis/drivers -Isdk/ferrule/testing/fakes/cmsis \
	    -Iplatforms/zephyr/include -Isdk/ferrule/testing/fakes/zephyr -DCONFIG_FERRULE_UART_RX_BYTES=64 \
	    -DCONFIG_FERRULE_UART_TX_BYTES=64 src_c platforms/bare_metal platforms/cmsis platforms/zephyr

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[run,demo]'
	@touch $@

$(VENV)/dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet -e '.[run,demo,oracle,dev,gpu]'
	@touch $@

clean:
	rm -rf $(VENV) build

.PHONY: demo test lint clean
