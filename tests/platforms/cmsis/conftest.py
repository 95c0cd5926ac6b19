# SPDX-License-Identifier: Apache-2.0
"""The CMSIS adapter on the host's fakes: with a kernel, with a kernel that allocates nothing, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from needs import require_module, require_program

from ferrule.testing.adapter import Adapter, build_adapter
from ferrule.testing.platforms import CmsisFakes

FOLDER = Path(__file__).parent
Machine = Adapter[CmsisFakes]
KINDS: dict[str, dict[str, int]] = {
    "kernel": {"FERRULE_CMSIS_RTOS2": 1},
    "static": {"FERRULE_CMSIS_RTOS2": 1, "FERRULE_CMSIS_MUTEX_BYTES": 28, "FERRULE_CMSIS_EVENT_FLAGS_BYTES": 16},
    "bare": {"FERRULE_CMSIS_RTOS2": 0},
}
"""Macros by what the adapter then stands on."""


def build(defines: dict[str, int], *, coverage: bool = False) -> Machine:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_program("cc", "apt-get install gcc")
    return build_adapter(
        "cmsis",
        sources=[FOLDER / "bench.c"],
        headers=["bench.h", "ferrule/counter.h"],
        include_dirs=[FOLDER],
        defines={"FERRULE_CMSIS_RING_BYTES": 16, **defines},
        coverage=coverage,
    )


@cache
def compiled(kind: str) -> Machine:
    return build(KINDS[kind])


def fresh(kind: str) -> Iterator[Machine]:
    machine = compiled(kind)
    machine.fakes.reset()
    yield machine
    machine.fakes.check()


@pytest.fixture(params=list(KINDS))
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Each kind in turn."""
    yield from fresh(str(request.param))


@pytest.fixture(params=["kernel", "static"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Those with a kernel."""
    yield from fresh(str(request.param))


@pytest.fixture
def bare() -> Iterator[Machine]:
    """The one without."""
    yield from fresh("bare")
