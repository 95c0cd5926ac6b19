# SPDX-License-Identifier: Apache-2.0
"""The CMSIS adapter on the host's fakes: with a kernel, with a kernel that allocates no memory, and without a kernel.

It also provides the CMSIS-Driver of the CMSDK UART, on models of two such UARTs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cmsdk_uart import Bench
from coverage_gate import counted
from needs import require_cc, require_module

from ferrule import resources
from ferrule.testing.adapter import Adapter, build_adapter, build_driver
from ferrule.testing.compilation import FAKES
from ferrule.testing.fakes import Fakes
from ferrule.testing.platforms import CmsisFakes

FOLDER = Path(__file__).parent
DRIVERS = resources.root() / "platforms" / "cmsis" / "drivers"
Machine = Adapter[CmsisFakes]
KINDS: dict[str, dict[str, int]] = {
    "kernel": {"FERRULE_CMSIS_RTOS2": 1},
    "static": {"FERRULE_CMSIS_RTOS2": 1, "FERRULE_CMSIS_MUTEX_BYTES": 28, "FERRULE_CMSIS_EVENT_FLAGS_BYTES": 16},
    "bare": {"FERRULE_CMSIS_RTOS2": 0},
}
"""Macros by the kind of system below the adapter."""


@cache
def compiled(kind: str) -> Machine:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    return counted(
        build_adapter,
        "cmsis",
        sources=[FOLDER / "bench.c"],
        headers=["bench.h", "ferrule/counter.h"],
        include_dirs=[FOLDER],
        defines={"FERRULE_CMSIS_RING_BYTES": 16, **KINDS[kind]},
    )


@cache
def compiled_driver() -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    return counted(
        build_driver,
        sources=[DRIVERS / "usart_cmsdk.c", FOLDER / "cmsdk_bench.c"],
        headers=["cmsdk_bench.h"],
        include_dirs=[DRIVERS, FOLDER, FOLDER / "rte", FAKES / "cmsis"],
    )


def fresh(kind: str) -> Iterator[Machine]:
    machine = compiled(kind)
    machine.fakes.reset()
    yield machine
    machine.fakes.check()


@pytest.fixture(params=list(KINDS))
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The adapter of each kind in turn."""
    yield from fresh(str(request.param))


@pytest.fixture(params=["kernel", "static"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The adapters that use a kernel, in turn."""
    yield from fresh(str(request.param))


@pytest.fixture
def bare() -> Iterator[Machine]:
    """The adapter without a kernel."""
    yield from fresh("bare")


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Both driver instances, switched off."""
    made = Bench(compiled_driver())
    yield made
    made.machine.fakes.check()
