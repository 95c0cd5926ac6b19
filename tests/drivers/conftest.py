# SPDX-License-Identifier: Apache-2.0
"""The drivers of src_c/drivers, compiled for the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from coverage_gate import counted
from needs import require_cc, require_module

from ferrule.resources import root
from ferrule.testing import Adapter, Fakes, build_driver

BuildUart = Callable[[str], Adapter[Fakes]]


@pytest.fixture(scope="session")
def build_uart() -> BuildUart:
    """A function that compiles a UART's driver, given its name."""
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()

    def function(name: str) -> Adapter[Fakes]:
        source, header = root() / "src_c" / "drivers" / f"{name}.c", f"ferrule/drivers/{name}.h"
        return counted(build_driver, sources=[source], headers=[header])

    return function


@pytest.fixture(scope="module")
def built(build_uart: BuildUart, request: pytest.FixtureRequest) -> Adapter[Fakes]:
    """The driver that a file of tests names."""
    return build_uart(request.module.DRIVER)


@pytest.fixture
def driver(built: Adapter[Fakes]) -> Adapter[Fakes]:
    """That driver without any history."""
    built.reset()
    return built
