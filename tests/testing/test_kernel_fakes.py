# SPDX-License-Identifier: Apache-2.0
"""The kernel below the fakes: who gets a mutex, whose priority its owner has, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from needs import require_cc, require_module

from ferrule.testing import Adapter, Fakes, MisuseError, build_adapter

pytestmark = pytest.mark.cc
LONG = 1_000_000


@pytest.fixture(scope="module")
def built() -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("freertos")


@pytest.fixture
def freertos(built: Adapter[Fakes]) -> Iterator[Adapter[Fakes]]:
    built.reset()
    yield built
    built.fakes.check()


def mutex(adapter: Adapter[Fakes]) -> Any:  # noqa: ANN401 cffi is not typed
    return adapter.lib.xSemaphoreCreateMutexStatic(adapter.new("StaticSemaphore_t *"))


def test_a_mutex_goes_to_the_highest_priority_and_lends_it(freertos: Adapter[Fakes]) -> None:
    lock, lib, fakes = mutex(freertos), freertos.lib, freertos.fakes
    order: list[str] = []
    seen: list[int] = []

    def holder() -> None:
        assert lib.xSemaphoreTake(lock, 0) == 1
        lib.vTaskDelay(20)
        seen.append(lib.uxTaskPriorityGet(freertos.ffi.NULL))
        assert lib.xSemaphoreGive(lock) == 1
        seen.append(lib.uxTaskPriorityGet(freertos.ffi.NULL))

    def waiter(name: str, delay: int) -> None:
        lib.vTaskDelay(delay)
        assert lib.xSemaphoreTake(lock, LONG) == 1
        order.append(name)
        lib.vTaskDelay(1)
        assert lib.xSemaphoreGive(lock) == 1

    for index, priority in enumerate((1, 2, 2, 3)):
        fakes.set_priority(11 + index, priority)
    fakes.run(holder, lambda: waiter("first low", 2), lambda: waiter("second low", 4), lambda: waiter("high", 6))
    assert seen == [3, 1]
    assert order == ["high", "first low", "second low"]


def before_the_kernel(adapter: Adapter[Fakes], lock: Any) -> None:  # noqa: ANN401
    empty = adapter.lib.xSemaphoreCreateBinaryStatic(adapter.new("StaticSemaphore_t *"))
    with adapter.fakes.before_the_kernel():
        assert adapter.lib.xTaskGetCurrentTaskHandle() == adapter.ffi.NULL
        assert adapter.lib.xSemaphoreTake(lock, 5) == 1
        adapter.lib.xSemaphoreTake(empty, 5)


def in_an_interrupt(adapter: Adapter[Fakes], lock: Any) -> None:  # noqa: ANN401
    with adapter.fakes.interrupt():
        adapter.lib.xSemaphoreTake(lock, 0)


def masked(adapter: Adapter[Fakes], lock: Any) -> None:  # noqa: ANN401
    del lock
    empty = adapter.lib.xSemaphoreCreateBinaryStatic(adapter.new("StaticSemaphore_t *"))
    adapter.lib.taskENTER_CRITICAL()
    adapter.lib.xSemaphoreTake(empty, 5)


CASES = {
    "before the kernel runs": before_the_kernel,
    "was called in an interrupt": in_an_interrupt,
    "while interrupts are masked": masked,
    "that the task does not have": lambda it, lock: it.lib.xSemaphoreGive(lock),
    "that the task has": lambda it, lock: [it.lib.xSemaphoreTake(lock, 5) for _ in range(2)],
    "that was not created here": lambda it, _: it.lib.xSemaphoreTake(it.new("StaticSemaphore_t *"), 0),
    "FromISR of a mutex": lambda it, lock: it.lib.xSemaphoreGiveFromISR(lock, it.new("BaseType_t *")),
}
"""Misuses, by words of their message."""


@pytest.mark.parametrize("words", CASES)
def test_what_the_real_kernel_refuses(words: str, freertos: Adapter[Fakes]) -> None:
    with pytest.raises(MisuseError, match=words):
        CASES[words](freertos, mutex(freertos))
