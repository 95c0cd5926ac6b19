# SPDX-License-Identifier: Apache-2.0
"""The conformance program on real kernels at three tick rates, on two engines, and mutants that it has to catch.

The tests run where the variables name trees: FREERTOS_KERNEL_PATH, CMSIS_PATH with CMSIS_RTX_PATH, THREADX_PATH, and
ZEPHYR_BASE.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from conformance import ENGINES, KERNELS, TICKS_HZ, build, run
from zephyr_tree import TEST_TIMEOUT_S

from ferrule.resources import root

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
GROUPS = (
    *("begin", "begin of another", "order", "time", "interrupts", "cancel of a wait for a device"),
    *("deadline of a wait for a device", "cancel of a wait for the lock", "deadline of a wait for the lock"),
    *("inversion", "inversion with a run", "fairness of two openers"),
    *("fairness of three openers", "fairness of two executors", "fairness of three executors"),
    *("fairness of three executors with long runs", "fairness of two openers and an executor"),
    *("fairness of priorities", "deadlock of two models", "loss", "end", "end of another"),
)
BEFORE = "before the kernel"
"""Zephyr has no such time."""
ADAPTER = root() / "platforms" / "freertos" / "src" / "freertos.c"
HELD = root() / "src_c" / "device" / "held.c"
MUTANTS = {
    "a lock that lends no priority": (
        ADAPTER,
        "dev->lock = xSemaphoreCreateMutexStatic(&dev->mutex);",
        "dev->lock = xSemaphoreCreateBinaryStatic(&dev->mutex);\n    (void)xSemaphoreGive(dev->lock);",
        "inversion.its wait in us",
    ),
    "a notification that is lost": (
        ADAPTER,
        "(void)xSemaphoreGiveFromISR(dev->notified, &woken);",
        "(void)dev;",
        "time.wait for an interrupt in us",
    ),
    "devices that are opened in each model's order": (
        HELD,
        "return (uintptr_t)held->handles[device];",
        "return held->handles[device] != NULL ? device + 1u : 0u;",
        "deadlock of two models.time-outs",
    ),
}
"""Pieces of Ferrule's C, what replaces them, and a check that has to fail."""


@pytest.fixture(scope="module")
def program_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """A function that returns the ELF for a kernel and a tick rate; each is built once."""
    return cache(lambda kernel, tick_hz: build(kernel, tick_hz, tmp_path_factory.mktemp(f"{kernel}-{tick_hz}")))


@pytest.mark.parametrize("tick_hz", TICKS_HZ)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_conforms(engine: str, kernel: str, tick_hz: int, program_of: Callable[[str, int], Path]) -> None:
    report = run(program_of(kernel, tick_hz), engine)
    assert report.is_complete, report.text
    expected = {*GROUPS, *(() if kernel == "zephyr" else (BEFORE,))}
    assert {check.group for check in report.checks} == expected
    assert [str(check) for check in report.checks if not check.is_right] == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(mutant: str, tmp_path: Path) -> None:
    original, old, new, failing = MUTANTS[mutant]
    text = original.read_text(encoding="utf-8")
    assert text.count(old) == 1
    changed = tmp_path / original.name
    changed.write_text(text.replace(old, new), encoding="utf-8")
    report = run(build("freertos", 1000, tmp_path / "build", {original: changed}))
    assert report.is_complete, report.text
    (check,) = (each for each in report.checks if f"{each.group}.{each.name}" == failing)
    assert not check.is_right
