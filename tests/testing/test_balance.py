# SPDX-License-Identifier: Apache-2.0
"""The balance of the kit: what the C under test has taken and not given back is found and named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import require_cc, require_module

from ferrule.testing import Adapter, BalanceError, CData, CmsisFakes, Fakes, ZephyrFakes, build_adapter, build_driver

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent / "c"
OK = 0


@pytest.fixture(scope="module")
def zephyr_build() -> Adapter[ZephyrFakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("zephyr")


@pytest.fixture
def zephyr(zephyr_build: Adapter[ZephyrFakes]) -> Adapter[ZephyrFakes]:
    zephyr_build.reset()
    return zephyr_build


@pytest.fixture(scope="module")
def cmsis_build() -> Adapter[CmsisFakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("cmsis")


@pytest.fixture
def cmsis(cmsis_build: Adapter[CmsisFakes]) -> Adapter[CmsisFakes]:
    cmsis_build.reset()
    return cmsis_build


def bound(adapter: Adapter[Fakes]) -> CData:
    """A handle that is bound to a driver of name "npu"; on Zephyr its device is npu0."""
    handle, driver = adapter.new("struct ferrule_device *"), adapter.driver(name="npu")
    adapter.keep(handle)
    assert adapter.lib.ferrule_device_init(handle) == OK
    if isinstance(adapter.fakes, ZephyrFakes):
        device = adapter.fakes.device("npu0")
        assert adapter.lib.ferrule_device_bind(handle, device, driver, adapter.ffi.NULL) == OK
    else:
        assert adapter.lib.ferrule_device_bind(handle, driver, adapter.ffi.NULL) == OK
    return handle


def test_devices(zephyr: Adapter[ZephyrFakes]) -> None:
    lib, fakes, handle = zephyr.lib, zephyr.fakes, bound(zephyr)
    named = f"the device handle {int(zephyr.ffi.cast('uintptr_t', handle)):#x} of the driver 'npu' is"
    power = "npu0 is powered: pm_device_runtime_get() was called 1 times more often than pm_device_runtime_put()"
    assert fakes.left == []
    lib.ferrule_device_activate(handle)
    assert fakes.left == [power, f"{named} activated, 1 times"]
    with fakes.as_thread(3):
        lib.ferrule_device_open(handle)
        lib.ferrule_device_activate(handle)
    powered, activated, locked, opened = fakes.left
    assert (opened, activated) == (f"{named} open, by thread 3", f"{named} activated, 2 times")
    assert powered == power
    assert re.fullmatch(r"the k_mutex 0x\w+ is locked 1 times, by thread 3", locked)
    with pytest.raises(BalanceError, match=rf"not given back everything: npu0 is powered.*; {named} open"):
        fakes.check_balance()
    with fakes.as_thread(3):
        lib.ferrule_device_close(handle)
        lib.ferrule_device_deactivate(handle)
    assert fakes.left == [power, f"{named} activated, 1 times"]
    lib.ferrule_device_deactivate(handle)
    fakes.check_balance()
    assert lib.ferrule_device_destroy(handle) == OK


def test_failures_of_the_device_api_are_no_imbalance(zephyr: Adapter[ZephyrFakes]) -> None:
    lib, fakes, handle = zephyr.lib, zephyr.fakes, bound(zephyr)
    for call in (lib.ferrule_device_open, lib.ferrule_device_close, lib.ferrule_device_deactivate):
        assert call(handle) != OK
        assert call(zephyr.ffi.NULL) != OK
        assert call(zephyr.new("struct ferrule_device *")) != OK
    fakes.fail("pm_device_runtime_get", result=-5)
    assert lib.ferrule_device_activate(handle) != OK
    assert fakes.left == []
    assert lib.ferrule_device_activate(handle) == OK
    fakes.fail("pm_device_runtime_put", result=-5)
    assert lib.ferrule_device_deactivate(handle) != OK  # it is inactive, but has its power still
    assert [text.split(":")[0] for text in fakes.left] == ["npu0 is powered"]


def test_storage_that_is_used_again(zephyr: Adapter[ZephyrFakes]) -> None:
    handle = bound(zephyr)
    zephyr.lib.ferrule_device_activate(handle)
    zephyr.ffi.buffer(handle)[:] = bytes(zephyr.ffi.sizeof("struct ferrule_device"))
    assert zephyr.lib.ferrule_device_init(handle) == OK
    assert "is activated, 1 times, although its storage was initialised again" in zephyr.fakes.left[1]


def locks_twice(zephyr: Adapter[ZephyrFakes]) -> Callable[[], object]:
    mutex = zephyr.new("struct k_mutex *")
    zephyr.keep(mutex)
    zephyr.lib.k_mutex_init(mutex)
    for _ in range(2):
        zephyr.lib.k_mutex_lock(mutex, zephyr.new("k_timeout_t *")[0])
    return lambda: [zephyr.lib.k_mutex_unlock(mutex) for _ in range(2)]


def masks(zephyr: Adapter[ZephyrFakes]) -> Callable[[], object]:
    key = zephyr.lib.irq_lock()
    return lambda: zephyr.lib.irq_unlock(key)


def spins(zephyr: Adapter[ZephyrFakes]) -> Callable[[], object]:
    lock = zephyr.new("struct k_spinlock *")
    zephyr.keep(lock)
    key = zephyr.lib.k_spin_lock(lock)
    return lambda: zephyr.lib.k_spin_unlock(lock, key)


def mutex(cmsis: Adapter[CmsisFakes]) -> Callable[[], object]:
    made = cmsis.lib.osMutexNew(cmsis.ffi.NULL)
    cmsis.lib.osMutexAcquire(made, 0)
    return lambda: cmsis.lib.osMutexRelease(made)


def deleted(cmsis: Adapter[CmsisFakes]) -> Callable[[], object]:
    made = cmsis.lib.osMutexNew(cmsis.ffi.NULL)
    cmsis.lib.osMutexAcquire(made, 0)
    return lambda: cmsis.lib.osMutexDelete(made)


def kernel(cmsis: Adapter[CmsisFakes]) -> Callable[[], object]:
    cmsis.lib.osKernelLock()
    return cmsis.lib.osKernelUnlock


def initialised(cmsis: Adapter[CmsisFakes]) -> Callable[[], object]:
    usart = cmsis.fakes.access(2)
    usart.Initialize(cmsis.ffi.NULL)
    return usart.Uninitialize


def powered(cmsis: Adapter[CmsisFakes]) -> Callable[[], object]:
    usart = cmsis.fakes.access(2)
    usart.Initialize(cmsis.ffi.NULL)
    usart.PowerControl(cmsis.lib.ARM_POWER_FULL)
    return lambda: (usart.PowerControl(cmsis.lib.ARM_POWER_OFF), usart.Uninitialize())


@pytest.mark.parametrize(
    ("platform", "take", "named"),
    [
        ("zephyr", locks_twice, r"the k_mutex 0x\w+ is locked 2 times, by thread 1"),
        ("zephyr", masks, "interrupts are masked, by thread 1"),
        ("zephyr", spins, "interrupts are masked, by thread 1"),
        ("cmsis", mutex, r"the mutex 0x\w+ is locked 1 times, by thread 1"),
        ("cmsis", deleted, r"the mutex 0x\w+ is locked 1 times, by thread 1"),
        ("cmsis", kernel, "the kernel is locked, by thread 1"),
        ("cmsis", initialised, "USART2 is initialised"),
        ("cmsis", powered, "USART2 is powered"),
    ],
)
def test_kernels_and_drivers(
    request: pytest.FixtureRequest, platform: str, take: Callable[[Adapter[Any]], Callable[[], object]], named: str
) -> None:
    adapter = request.getfixturevalue(platform)
    give = take(adapter)
    assert re.fullmatch(named, *adapter.fakes.left)
    give()
    adapter.fakes.check_balance()
    take(adapter)
    adapter.reset()  # a test begins with nothing held
    adapter.fakes.check_balance()


def test_threads_that_end_while_they_mask_interrupts() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    driver = build_driver(sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER])
    masked = driver.lib.ferrule_port_critical_enter()
    assert driver.fakes.left == ["interrupts are masked, by thread 1"]
    driver.lib.ferrule_port_critical_exit(masked)
    assert driver.fakes.left == []
    driver.fakes.run(driver.lib.ferrule_port_critical_enter)
    assert driver.fakes.left == ["interrupts are masked, by thread 11"]
