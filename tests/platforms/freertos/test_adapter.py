# SPDX-License-Identifier: Apache-2.0
"""The adapter on the fakes, as FreeRTOS is on most cores and as ESP-IDF has it, and mutants of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_module, require_sanitizers

from ferrule.link.protocol import Status
from ferrule.resources import root
from ferrule.testing import Adapter, CData, Fakes, MisuseError, build_adapter
from ferrule.testing.compilation import FAKES
from ferrule.testing.sanitizers import run_sanitized

pytestmark = pytest.mark.cc
ADAPTER = root() / "platforms" / "freertos"
VARIANTS: dict[str, dict[str, str | int]] = {"freertos": {}, "esp-idf": {"ESP_PLATFORM": ""}}
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module", params=VARIANTS)
def built(request: pytest.FixtureRequest) -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("freertos", defines=VARIANTS[request.param])


@pytest.fixture
def adapter(built: Adapter[Fakes]) -> Iterator[Adapter[Fakes]]:
    built.reset()
    yield built
    built.fakes.check()


def bound(adapter: Adapter[Fakes]) -> CData:
    """Return a handle that is bound."""
    handle = adapter.new("struct ferrule_device *")
    assert adapter.lib.ferrule_device_init(handle) == Status.OK
    driver = adapter.driver(check=lambda _: Status.OK)
    assert adapter.lib.ferrule_device_bind(handle, driver, adapter.ffi.NULL) == Status.OK
    return handle


def opened(adapter: Adapter[Fakes]) -> CData:
    """Return a handle that is open."""
    handle = bound(adapter)
    assert adapter.lib.ferrule_device_activate(handle) == Status.OK
    assert adapter.lib.ferrule_device_open(handle) == Status.OK
    return handle


def closed(adapter: Adapter[Fakes], handle: CData) -> None:
    assert adapter.lib.ferrule_device_close(handle) == Status.OK
    assert adapter.lib.ferrule_device_deactivate(handle) == Status.OK
    assert adapter.lib.ferrule_device_destroy(handle) == Status.OK
    adapter.fakes.check_balance()


def test_a_life(adapter: Adapter[Fakes]) -> None:
    handle = opened(adapter)
    assert adapter.lib.ferrule_platform_cut(handle) == Status.UNSUPPORTED
    assert adapter.lib.ferrule_platform_power(handle, True) == Status.OK
    closed(adapter, handle)
    assert adapter.lib.ferrule_device_init(handle) == Status.OK


@pytest.mark.parametrize("name", ["xSemaphoreCreateMutexStatic", "xSemaphoreCreateBinaryStatic"])
def test_an_object_that_cannot_be_made(name: str, adapter: Adapter[Fakes]) -> None:
    adapter.fakes.fail(name, result=0)
    assert adapter.lib.ferrule_device_init(adapter.new("struct ferrule_device *")) == Status.MEMORY


def test_interrupts_open_nothing(adapter: Adapter[Fakes]) -> None:
    handle = opened(adapter)
    with adapter.fakes.interrupt():
        assert adapter.lib.ferrule_device_open(handle) == Status.INTERRUPT
    closed(adapter, handle)


def test_another_task_does_not_close(adapter: Adapter[Fakes]) -> None:
    handle = opened(adapter)
    with adapter.fakes.as_thread(2):
        assert adapter.lib.ferrule_device_close(handle) == Status.OWNER
    closed(adapter, handle)


def test_without_a_timeout_it_is_busy(adapter: Adapter[Fakes]) -> None:
    handle = bound(adapter)
    assert adapter.lib.ferrule_platform_lock(handle, 0) == Status.OK
    with adapter.fakes.as_thread(2):
        assert adapter.lib.ferrule_platform_lock(handle, 0) == Status.BUSY
        assert adapter.lib.ferrule_platform_lock(handle, 5000) == Status.TIMEOUT
    assert adapter.lib.ferrule_platform_unlock(handle) == Status.OK


def test_before_the_scheduler(adapter: Adapter[Fakes]) -> None:
    with adapter.fakes.before_the_kernel():
        handle = opened(adapter)
        assert adapter.lib.ferrule_platform_priority() == 0
        closed(adapter, handle)


def test_the_interrupt_ends_the_wait(adapter: Adapter[Fakes]) -> None:
    handle = opened(adapter)

    def interrupt() -> None:
        adapter.lib.ferrule_platform_now_us()  # any context
        adapter.lib.ferrule_device_notify(handle)

    adapter.fakes.at_ms(5, interrupt)
    begin_us = adapter.fakes.now_us
    assert adapter.lib.ferrule_platform_wait(handle, HOUR_US // 2) == Status.OK
    assert adapter.fakes.now_us - begin_us < 7000
    closed(adapter, handle)


def notified_twice(adapter: Adapter[Fakes]) -> list[int]:
    """Return the statuses of two waits after two notifications."""
    handle = bound(adapter)
    for _ in range(2):
        adapter.lib.ferrule_device_notify(handle)
    return [adapter.lib.ferrule_platform_wait(handle, 2000) for _ in range(2)]


def test_a_second_notification_counts_once(adapter: Adapter[Fakes]) -> None:
    assert notified_twice(adapter) == [Status.OK, Status.TIMEOUT]


def ticks_of_a_wait(adapter: Adapter[Fakes]) -> int:
    handle = bound(adapter)
    adapter.fakes.forget_calls()
    assert adapter.lib.ferrule_platform_wait(handle, 1001) == Status.TIMEOUT
    (call,) = adapter.fakes.calls_of("xSemaphoreTake")
    return int(call.arguments[-1])


def test_a_wait_is_rounded_up_to_ticks_and_one_more(adapter: Adapter[Fakes]) -> None:
    """1001 microseconds can be less than two ticks, because the first tick may come at once."""
    assert ticks_of_a_wait(adapter) == 3


def test_the_clock_is_that_of_the_ticks(adapter: Adapter[Fakes]) -> None:
    first = adapter.lib.ferrule_platform_now_us()
    adapter.fakes.advance_ms(250)
    assert 249_000 <= adapter.lib.ferrule_platform_now_us() - first <= 251_000


def mutant(folder: Path, file: str, old: str, new: str, variant: str = "freertos") -> Adapter[Fakes]:
    """Return the adapter with a piece of it replaced."""
    shutil.copytree(ADAPTER, folder / "freertos")
    path = folder / "freertos" / "src" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    return build_adapter(folder / "freertos", fakes="freertos", defines=VARIANTS[variant])


def test_a_wait_that_is_rounded_down_is_noticed(tmp_path: Path) -> None:
    old = "ferrule_tick_count(microseconds, phase_us(),"
    hasty = mutant(tmp_path, "freertos.c", old, "ferrule_tick_count(microseconds, 0u * phase_us(),")
    assert ticks_of_a_wait(hasty) < 3


def test_a_wait_that_always_ends_is_noticed(tmp_path: Path) -> None:
    old = "xSemaphoreTake(dev->notified, ticks_of(timeout_us)) == pdTRUE"
    sleepless = mutant(tmp_path, "freertos.c", old, "dev != NULL || ticks_of(timeout_us) > 0u")
    assert notified_twice(sleepless) == [Status.OK, Status.OK]


def test_the_wrong_critical_section_is_noticed(tmp_path: Path) -> None:
    """ESP-IDF has others in an interrupt."""
    old = "portENTER_CRITICAL_ISR(&spinlock);"
    wrong = mutant(tmp_path, "freertos_ports.h", old, "portENTER_CRITICAL(&spinlock);", "esp-idf")
    with pytest.raises(MisuseError, match="portENTER_CRITICAL in an interrupt"), wrong.fakes.interrupt():
        wrong.lib.ferrule_platform_now_us()


def test_a_function_of_the_programs_tells_interrupts(tmp_path: Path) -> None:
    """For ports that cannot."""
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    source = tmp_path / "board.c"
    source.write_text(
        "#include <stdbool.h>\nbool board_in_interrupt(void);\nbool board_in_interrupt(void)\n{\n    return true;\n}\n"
    )
    defines: dict[str, str | int] = {"FERRULE_FREERTOS_IN_INTERRUPT": "board_in_interrupt"}
    adapter = build_adapter("freertos", sources=[source], defines=defines)
    assert adapter.lib.ferrule_platform_in_interrupt()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("configSUPPORT_STATIC_ALLOCATION 1", "configSUPPORT_STATIC_ALLOCATION 0"), "Ferrule allocates nothing"),
        (("configUSE_MUTEXES               1", "configUSE_MUTEXES               0"), "a device is locked by a mutex"),
        (("#define portCHECK_IF_IN_ISR()", "#define OTHER()"), "name a function of yours that returns whether an int"),
    ],
)
def test_a_kernel_that_lacks_something_is_refused(changes: tuple[str, str], message: str, tmp_path: Path) -> None:
    shutil.copytree(FAKES / "freertos", tmp_path / "kernel")
    header = tmp_path / "kernel" / "FreeRTOS.h"
    text = header.read_text(encoding="utf-8")
    assert text.count(changes[0]) == 1
    header.write_text(text.replace(*changes), encoding="utf-8")
    folders = (tmp_path / "kernel", ADAPTER / "include", root() / "include", FAKES / "host")
    argv = [*require_cc(), "-fsyntax-only", *(f"-I{each}" for each in folders), str(ADAPTER / "src" / "freertos.c")]
    done = ran(argv, timeout=60)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.nightly
def test_sanitizers_find_nothing() -> None:
    require_sanitizers("address", "undefined")
    assert " passed" in run_sanitized([__file__, "-k", "not noticed and not refused and not sanitizers"])
