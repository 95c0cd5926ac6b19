# SPDX-License-Identifier: Apache-2.0
"""The CMSIS adapter: binding, power, locks, status codes. Each call of CMSIS that can fail is made to fail once."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from ferrule.link.protocol import Status
from ferrule.testing.adapter import Adapter
from ferrule.testing.platforms import CmsisFakes

pytestmark = pytest.mark.cc

Machine = Adapter[CmsisFakes]
BUSY, BROKEN = 1, 2
OS_KERNEL_INACTIVE = 0
OS_ERROR, OS_TIMEOUT, OS_RESOURCE, OS_PARAMETER, OS_MEMORY, OS_ISR, OS_CLASS = range(-1, -8, -1)
DRIVER_CODES = {
    0: Status.OK,
    -1: Status.DEVICE,
    -2: Status.BUSY,
    -3: Status.TIMEOUT,
    -4: Status.UNSUPPORTED,
    -5: Status.ARGUMENT,
    -6: Status.DEVICE,
    -7: Status.DEVICE,
    7: Status.DEVICE,
}
KERNEL_CODES = {
    0: Status.OK,
    OS_ERROR: Status.FAILED,
    OS_TIMEOUT: Status.TIMEOUT,
    OS_RESOURCE: Status.BUSY,
    OS_PARAMETER: Status.HANDLE,
    OS_MEMORY: Status.MEMORY,
    OS_ISR: Status.INTERRUPT,
    OS_CLASS: Status.UNAVAILABLE,
    -99: Status.FAILED,
}


def storage(machine: Machine) -> Any:  # noqa: ANN401 cffi is not typed
    return machine.ffi.new("struct ferrule_device *")


def initialised(machine: Machine) -> Any:  # noqa: ANN401
    dev = storage(machine)
    assert machine.lib.ferrule_device_init(dev) == Status.OK
    return dev


def bind(machine: Machine, dev: Any, access: Any = None, driver: Any = None) -> int:  # noqa: ANN401
    null = machine.ffi.NULL
    machine.lib.bench_set_api(0x100)
    given = machine.lib.bench_accelerator() if access is None else access
    return int(machine.lib.ferrule_device_bind_accelerator(dev, given, driver or machine.driver(), null))


def bound(machine: Machine) -> Any:  # noqa: ANN401
    dev = initialised(machine)
    assert bind(machine, dev) == Status.OK
    machine.fakes.forget_calls()
    return dev


def names(machine: Machine) -> list[str]:
    """Return the calls of the accelerator's access struct, except GetStatus."""
    calls = [call for call in machine.fakes.calls if call.name.startswith("acc_") and call.name != "acc_GetStatus"]
    return [f"{call.name[4:]}{call.arguments[0] if call.name == 'acc_PowerControl' else ''}" for call in calls]


def test_from_init_to_destroy(machine: Machine) -> None:
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert names(machine) == ["Initialize", "PowerControl2"]
    assert lib.ferrule_device_open(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.STATE
    assert lib.ferrule_device_close(dev) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK
    assert names(machine) == ["Initialize", "PowerControl2", "PowerControl0", "Uninitialize"]
    assert lib.ferrule_device_destroy(dev) == Status.OK
    assert lib.ferrule_device_init(dev) == Status.OK  # the storage can be used again


def test_a_device_without_a_driver_of_cmsis_is_ready(machine: Machine) -> None:
    dev, lib = initialised(machine), machine.lib
    assert lib.ferrule_device_bind(dev, machine.driver(), machine.ffi.NULL) == Status.OK
    for call in ("activate", "open", "close", "deactivate", "destroy"):
        assert getattr(lib, f"ferrule_device_{call}")(dev) == Status.OK
    assert names(machine) == []


def test_init_copes_with_any_storage(machine: Machine) -> None:
    dev = storage(machine)
    machine.ffi.buffer(dev)[:] = b"\xa5" * machine.ffi.sizeof(dev[0])
    assert machine.lib.ferrule_device_init(dev) == Status.OK
    assert machine.lib.ferrule_device_destroy(dev) == Status.OK


def test_bind_refuses(machine: Machine) -> None:
    lib, ffi = machine.lib, machine.ffi
    dev, null = initialised(machine), ffi.NULL
    assert bind(machine, null) == Status.ARGUMENT
    assert bind(machine, storage(machine)) == Status.HANDLE
    assert bind(machine, dev, access=ffi.NULL) == Status.ARGUMENT
    assert lib.ferrule_device_bind_accelerator(dev, lib.bench_accelerator(), null, null) == Status.ARGUMENT
    with machine.fakes.interrupt():
        assert bind(machine, dev) == Status.INTERRUPT
    assert bind(machine, dev) == Status.OK  # the handle is not stuck
    assert bind(machine, dev) == Status.STATE


@pytest.mark.parametrize("member", ["GetVersion", "Initialize", "Uninitialize", "PowerControl", "GetStatus"])
def test_bind_refuses_an_access_struct_that_lacks_a_function(machine: Machine, member: str) -> None:
    access = machine.ffi.new("struct ferrule_cmsis_accelerator *", machine.lib.bench_accelerator()[0])
    setattr(access, member, machine.ffi.NULL)
    assert bind(machine, initialised(machine), access=access) == Status.ARGUMENT


@pytest.mark.parametrize(("api", "status"), [(0x100, 0), (0x1FF, 0), (0x200, -2), (0x00FF, -2)])
def test_bind_looks_at_the_major_version(machine: Machine, api: int, status: int) -> None:
    dev, lib = initialised(machine), machine.lib
    lib.bench_set_api(api)
    found = lib.ferrule_device_bind_accelerator(dev, lib.bench_accelerator(), machine.driver(), machine.ffi.NULL)
    assert found == status


@pytest.mark.parametrize("code", [code for code in DRIVER_CODES if code])
def test_power_that_fails_is_undone(machine: Machine, code: int) -> None:
    dev, lib = bound(machine), machine.lib
    machine.fakes.fail("acc_Initialize", result=code)
    assert lib.ferrule_device_activate(dev) == DRIVER_CODES[code]
    assert names(machine) == ["Initialize"]
    machine.fakes.forget_calls()
    machine.fakes.fail("acc_PowerControl", result=code)
    assert lib.ferrule_device_activate(dev) == DRIVER_CODES[code]
    assert names(machine) == ["Initialize", "PowerControl2", "PowerControl0", "Uninitialize"]
    assert lib.ferrule_device_open(dev) == Status.STATE
    assert lib.ferrule_device_activate(dev) == Status.OK  # the next attempt works
    assert lib.ferrule_device_open(dev) == Status.OK


@pytest.mark.parametrize("name", ["acc_PowerControl", "acc_Uninitialize"])
def test_power_off_that_fails_is_told(machine: Machine, name: str) -> None:
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    machine.fakes.forget_calls()
    machine.fakes.fail(name, result=-3)
    assert lib.ferrule_device_deactivate(dev) == Status.TIMEOUT
    # a device that still has power is not uninitialised
    assert names(machine) == ["PowerControl0"] + ["Uninitialize"] * (name == "acc_Uninitialize")
    assert lib.ferrule_device_activate(dev) == Status.OK


@pytest.mark.parametrize("status", [BUSY, BROKEN, BUSY | BROKEN])
def test_a_busy_or_broken_accelerator_does_not_open(machine: Machine, status: int) -> None:
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    machine.fakes.fail("acc_GetStatus", result=status)
    assert lib.ferrule_device_open(dev) == Status.UNAVAILABLE
    assert lib.ferrule_device_open(dev) == Status.OK


def test_nothing_is_allowed_in_an_interrupt(machine: Machine) -> None:
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    fresh = storage(machine)
    with machine.fakes.interrupt():
        assert lib.ferrule_device_init(fresh) == Status.INTERRUPT
        for call in ("activate", "open", "close", "deactivate", "destroy"):
            assert getattr(lib, f"ferrule_device_{call}")(dev) == Status.INTERRUPT


def test_a_copied_handle_is_none(machine: Machine) -> None:
    dev, lib = bound(machine), machine.lib
    copy = machine.ffi.new("struct ferrule_device *", dev[0])
    assert lib.ferrule_device_activate(copy) == Status.HANDLE
    assert lib.ferrule_device_activate(dev) == Status.OK
    copy = machine.ffi.new("struct ferrule_device *", dev[0])
    assert lib.ferrule_device_open(copy) == Status.HANDLE


def test_codes_of_drivers(machine: Machine) -> None:
    assert {code: machine.lib.ferrule_cmsis_driver_status(code) for code in DRIVER_CODES} == DRIVER_CODES


# ---- with a kernel


def test_codes_of_the_kernel(kernel: Machine) -> None:
    assert {code: kernel.lib.ferrule_cmsis_kernel_status(code) for code in KERNEL_CODES} == KERNEL_CODES


@pytest.mark.parametrize(
    ("ms", "frequency", "ticks"),
    [(0, 1000, 0), (1, 1000, 1), (1, 100, 1), (11, 100, 2), (1000, 32768, 32768), (0xFFFFFFFF, 10000, 0xFFFFFFFE)],
)
def test_milliseconds_as_ticks(kernel: Machine, ms: int, frequency: int, ticks: int) -> None:
    kernel.fakes.fail("osKernelGetTickFreq", result=frequency)
    assert kernel.lib.ferrule_cmsis_ticks(ms) == ticks


def test_init_without_a_mutex_left(kernel: Machine) -> None:
    dev = storage(kernel)
    kernel.fakes.fail("osMutexNew", result=0)
    assert kernel.lib.ferrule_device_init(dev) == Status.MEMORY
    assert kernel.lib.ferrule_device_activate(dev) == Status.HANDLE
    assert kernel.lib.ferrule_device_init(dev) == Status.OK


def test_the_mutex_is_recursive_and_inherits_priority(kernel: Machine) -> None:
    initialised(kernel)
    (call,) = kernel.fakes.calls_of("osMutexNew")
    assert call.arguments == (kernel.lib.osMutexRecursive | kernel.lib.osMutexPrioInherit,)


def test_destroy_tells_what_the_kernel_says(kernel: Machine) -> None:
    dev = bound(kernel)
    kernel.fakes.fail("osMutexDelete", result=OS_RESOURCE)
    assert kernel.lib.ferrule_device_destroy(dev) == Status.BUSY
    assert kernel.lib.ferrule_device_destroy(dev) == Status.HANDLE  # the handle is destroyed all the same


@pytest.mark.parametrize("code", [code for code in KERNEL_CODES if code])
def test_open_tells_why_it_was_not_locked(kernel: Machine, code: int) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    kernel.fakes.fail("osMutexAcquire", result=code)
    assert lib.ferrule_device_open(dev) == KERNEL_CODES[code]
    assert lib.ferrule_device_close(dev) == Status.STATE
    assert lib.ferrule_device_open(dev) == Status.OK


def test_close_tells_why_it_was_not_unlocked(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK
    kernel.fakes.fail("osMutexRelease", result=OS_RESOURCE)
    assert lib.ferrule_device_close(dev) == Status.BUSY
    assert lib.ferrule_device_open(dev) == Status.OK  # works, since it is the same thread and the mutex is recursive


def test_before_the_kernel_runs_there_is_one_thread(kernel: Machine) -> None:
    """The fake refuses what RTX5 refuses: to lock and to unlock."""
    lib = kernel.lib
    with kernel.fakes.before_the_kernel():
        dev = bound(kernel)
        assert lib.osMutexAcquire(dev.lock, 0) == lib.osMutexRelease(dev.lock) == OS_ERROR
        assert lib.osKernelLock() == lib.osDelay(1) == lib.osThreadYield() == OS_ERROR
        for call in ("activate", "open", "close", "open", "close", "deactivate", "destroy"):
            assert getattr(lib, f"ferrule_device_{call}")(dev) == Status.OK


def test_before_the_kernel_runs_a_wait_counts_its_looks(kernel: Machine) -> None:
    """No time passes then; a time-out is a number of looks, so it ends."""
    dev, lib = bound(kernel), kernel.lib
    looks: list[int] = []
    is_over = kernel.ffi.callback("bool(void *)", lambda _context: bool(looks.append(1)))
    with kernel.fakes.before_the_kernel():
        assert lib.ferrule_device_activate(dev) == Status.OK
        assert lib.ferrule_device_open(dev) == Status.OK
        assert lib.ferrule_device_wait(dev, is_over, 100) == Status.TIMEOUT
        assert 50 < len(looks) <= 101
        assert lib.ferrule_platform_wait(dev, 1_000_000) == Status.OK  # at once
        assert lib.ferrule_device_close(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK


def test_what_is_open_when_the_kernel_starts_stays_open(kernel: Machine) -> None:
    """The code that opened it is no thread, and can no longer close it."""
    dev, lib = bound(kernel), kernel.lib
    with kernel.fakes.before_the_kernel():
        assert lib.ferrule_device_activate(dev) == Status.OK
        assert lib.ferrule_device_open(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.BUSY
    assert lib.ferrule_device_close(dev) == Status.OWNER


def test_a_kernel_that_cannot_be_locked_is_not_unlocked(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    kernel.fakes.fail("osKernelLock", result=OS_ERROR)
    assert lib.ferrule_device_close(dev) == Status.STATE
    assert kernel.fakes.calls_of("osKernelUnlock") == []


def test_the_kernel_stays_locked_where_it_was(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.osKernelLock() == 0
    assert lib.ferrule_device_open(dev) == Status.OK
    assert lib.ferrule_device_close(dev) == Status.OK
    assert len(kernel.fakes.calls_of("osKernelLock")) == len(kernel.fakes.calls_of("osKernelUnlock")) + 1
    assert lib.osKernelUnlock() == 1


def test_who_has_locked_the_kernel_does_not_wait(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK
    with kernel.fakes.as_thread(2):
        assert lib.osKernelLock() == 0
        assert lib.ferrule_device_open(dev) == Status.BUSY
        assert lib.osKernelUnlock() == 1


def test_two_threads_take_turns(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    inside: list[int] = []
    seen: list[int] = []

    def work() -> None:
        for _ in range(20):
            assert lib.ferrule_device_open(dev) == Status.OK
            inside.append(1)
            seen.append(len(inside))
            lib.osDelay(2)
            inside.pop()
            assert lib.ferrule_device_close(dev) == Status.OK

    kernel.fakes.run(work, work)
    assert len(seen) == 40
    assert set(seen) == {1}


def test_waiting_ends(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK

    def holder() -> None:
        assert lib.ferrule_device_open(dev) == Status.OK
        lib.osDelay(5000)
        assert lib.ferrule_device_close(dev) == Status.OK

    def other() -> tuple[int, int]:
        lib.osDelay(1)
        begin = kernel.fakes.now_us
        return int(lib.ferrule_device_open(dev)), kernel.fakes.now_us - begin

    _, answer = kernel.fakes.run(holder, other)
    assert isinstance(answer, tuple)
    status, waited_us = answer
    assert status == Status.TIMEOUT
    assert 1_000_000 <= waited_us < 1_010_000


def test_a_wait_ends_with_a_notification(machine: Machine) -> None:
    """With a kernel, another thread runs meanwhile; without, the core sleeps."""
    dev, fakes, lib = bound(machine), machine.fakes, machine.lib
    fakes.at_ms(7, lambda: lib.ferrule_platform_notify(dev))
    began = lib.ferrule_platform_now_us()
    assert lib.ferrule_platform_wait(dev, 20_000) == Status.OK
    assert 7_000 <= lib.ferrule_platform_now_us() - began <= 8_000
    assert {call.name for call in fakes.calls} & {"osEventFlagsWait", "ferrule_port_sleep"}


def test_a_wait_ends_at_its_deadline(machine: Machine) -> None:
    """A wait is never too short, although the first tick may come at once."""
    dev, fakes, wait = bound(machine), machine.fakes, machine.lib.ferrule_platform_wait
    for timeout_us in (1_000, 1_001, 1_999, 2_000, 20_000):
        for _ in range(7):
            fakes.advance_ms(0.3)
            began = fakes.now_us
            assert wait(dev, timeout_us) == Status.TIMEOUT
            assert timeout_us <= fakes.now_us - began < timeout_us + 1_020


@pytest.mark.parametrize(("timeout_us", "ticks"), [(1_000, 2), (1_001, 3), (2_000, 3)])
def test_without_a_fine_timer_a_wait_takes_one_tick_more(kernel: Machine, timeout_us: int, ticks: int) -> None:
    """It is not known how long ago the last tick was."""
    dev, fakes = bound(kernel), kernel.fakes
    fakes.fail("osKernelGetSysTimerFreq", result=0, times=None)
    kernel.lib.ferrule_platform_wait(dev, timeout_us)
    assert fakes.calls_of("osEventFlagsWait")[0].arguments[-1] == ticks


def test_less_than_a_tick_is_polled(kernel: Machine) -> None:
    """Threads of the same priority run meanwhile."""
    dev, fakes, lib = bound(kernel), kernel.fakes, kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK
    for timeout_us in (1, 300, 999):
        fakes.forget_calls()
        assert lib.ferrule_platform_wait(dev, timeout_us) == Status.OK
        assert fakes.calls_of("osEventFlagsWait")[0].arguments[-1] == 0
        assert len(fakes.calls_of("osThreadYield")) == 1
        never = kernel.ffi.callback("bool(void *)", lambda _context: False)
        began = fakes.now_us
        assert lib.ferrule_device_wait(dev, never, timeout_us) == Status.TIMEOUT
        assert timeout_us <= fakes.now_us - began < timeout_us + 250
    lib.ferrule_platform_notify(dev)
    fakes.forget_calls()
    assert lib.ferrule_platform_wait(dev, 300) == Status.OK
    assert fakes.calls_of("osThreadYield") == []
    lib.ferrule_platform_notify(dev)  # it was heard, so the next one is, too
    assert len(fakes.calls_of("osEventFlagsSet")) == 1


def test_less_than_a_tick_is_waited_for_without_a_fine_timer(kernel: Machine) -> None:
    dev, fakes = bound(kernel), kernel.fakes
    fakes.fail("osKernelGetSysTimerFreq", result=0, times=None)
    assert kernel.lib.ferrule_platform_wait(dev, 1) == Status.TIMEOUT
    assert fakes.calls_of("osEventFlagsWait")[0].arguments[-1] == 2


def test_the_clock_is_as_fine_as_the_kernel_s_timer(kernel: Machine) -> None:
    fakes, now = kernel.fakes, kernel.lib.ferrule_platform_now_us
    begin, real = now(), fakes.now_us
    for _ in range(20):
        fakes.advance_ms(0.37)
        assert abs((now() - begin) - (fakes.now_us - real)) < 20


def test_time_goes_on_at_a_rate_that_the_timer_does_not_divide(kernel: Machine) -> None:
    """Then the timer does not tell how long ago the last tick was, and time is that of the ticks."""
    fakes, now = kernel.fakes, kernel.lib.ferrule_platform_now_us
    fakes.fail("osKernelGetTickFreq", result=1_024, times=None)
    seen = []
    for ticks in (1_024, 2_048, 3_072):
        fakes.fail("osKernelGetTickCount", result=ticks, times=2)
        seen.append(now())
    assert [later - before for before, later in pairwise(seen)] == [1_000_000, 1_000_000]


def test_the_clock_counts_its_readings_before_the_kernel(kernel: Machine) -> None:
    now = kernel.lib.ferrule_platform_now_us
    with kernel.fakes.before_the_kernel():
        begin = now()
        assert [now() - begin for _ in range(3)] == [1, 2, 3]


def test_the_priority_is_that_of_the_thread(kernel: Machine) -> None:
    kernel.fakes.fail("osThreadGetPriority", result=40)
    assert kernel.lib.ferrule_platform_priority() == 40
    with kernel.fakes.before_the_kernel():
        assert kernel.lib.ferrule_platform_priority() == 0
    kernel.fakes.fail("osKernelGetState", result=OS_KERNEL_INACTIVE)
    assert kernel.lib.ferrule_platform_priority() == 0


@pytest.mark.parametrize("sliced", [(), (2,), (0, 1), (0, 1, 2)])
def test_equal_threads_have_equal_turns(kernel: Machine, sliced: tuple[int, ...]) -> None:
    """The fake's mutex goes to whoever takes it first, which is the thread that has just released it.

    Some of the threads wait in slices, as executors do, and each turn takes longer than a slice.
    """
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    order: list[int] = []

    def work(me: int) -> None:
        stop = kernel.ffi.new("struct ferrule_stop *") if me in sliced else kernel.ffi.NULL
        while len(order) < 60:
            assert lib.ferrule_device_open_for(dev, 0xFFFF_FFFF, stop) == Status.OK
            order.append(me)
            lib.osDelay(15)
            assert lib.ferrule_device_close(dev) == Status.OK

    kernel.fakes.run(*(partial(work, me) for me in range(3)))
    turns = [0, 0, 0]
    for number, me in enumerate(order, start=1):
        turns[me] += 1
        assert number <= 3 or max(turns) - min(turns) <= 1, order[:number]


def test_a_time_out_never_becomes_endless(kernel: Machine) -> None:
    """osWaitForever is the largest number of ticks."""
    dev = bound(kernel)
    kernel.fakes.fail("osKernelGetTickFreq", result=2_000_000)
    kernel.fakes.fail("osMutexAcquire", result=OS_TIMEOUT)
    assert kernel.lib.ferrule_platform_lock(dev, 0xFFFF_FFFF) == Status.TIMEOUT
    assert kernel.fakes.calls_of("osMutexAcquire")[0].arguments[-1] == 0xFFFF_FFFE


def test_a_try_does_not_wait(kernel: Machine) -> None:
    dev = bound(kernel)
    assert kernel.lib.ferrule_platform_lock(dev, 0) == Status.OK
    assert kernel.fakes.calls_of("osMutexAcquire")[0].arguments == (0,)
    with kernel.fakes.as_thread(2):
        assert kernel.lib.ferrule_platform_lock(dev, 0) == Status.BUSY


def test_early_notifications_count_once(machine: Machine) -> None:
    dev, lib = bound(machine), machine.lib
    for _ in range(2):
        with machine.fakes.interrupt():
            lib.ferrule_platform_notify(dev)
            lib.ferrule_platform_notify(dev)
        assert lib.ferrule_platform_wait(dev, 20_000) == Status.OK
        assert lib.ferrule_platform_wait(dev, 20_000) == Status.TIMEOUT


def test_a_storm_of_interrupts_is_one_signal(kernel: Machine) -> None:
    """RTX5 stops if its queue for interrupts overflows."""
    dev = bound(kernel)
    with kernel.fakes.interrupt():
        for _ in range(100):
            kernel.lib.ferrule_platform_notify(dev)
    assert len(kernel.fakes.calls_of("osEventFlagsSet")) == 1


def test_a_signal_that_failed_is_sent_again(kernel: Machine) -> None:
    """A full queue of the kernel makes one notification late, and not all that come after it."""
    dev, lib = bound(kernel), kernel.lib
    kernel.fakes.fail("osEventFlagsSet", result=OS_RESOURCE & 0xFFFF_FFFF)
    with kernel.fakes.interrupt():
        lib.ferrule_platform_notify(dev)
        lib.ferrule_platform_notify(dev)
        lib.ferrule_platform_notify(dev)
    assert len(kernel.fakes.calls_of("osEventFlagsSet")) == 2
    assert lib.ferrule_platform_wait(dev, 20_000) == Status.OK


def test_a_signal_that_failed_and_comes_no_more_is_missed_for_a_bounded_time(kernel: Machine) -> None:
    """The thread looks at the device every 100 ms, so that it need not wait for its limit."""
    lib, fakes = kernel.lib, kernel.fakes
    dev = initialised(kernel)
    assert bind(kernel, dev, driver=kernel.driver(poll_us=lambda _context: 0xFFFF_FFFF)) == Status.OK
    for call in (lib.ferrule_device_activate, lib.ferrule_device_open):
        assert call(dev) == Status.OK
    over = []

    def finish() -> None:
        over.append(True)
        lib.ferrule_platform_notify(dev)

    is_over = kernel.ffi.callback("bool(void *)", lambda _context: bool(over))
    fakes.fail("osEventFlagsSet", result=OS_RESOURCE & 0xFFFF_FFFF)
    fakes.at_ms(30, finish)
    began = fakes.now_us
    assert lib.ferrule_device_wait(dev, is_over, 1_000_000) == Status.OK
    assert 100_000 <= fakes.now_us - began < 102_000
    assert len(fakes.calls_of("osEventFlagsSet")) == 1


def test_an_error_of_the_kernel_ends_a_wait(kernel: Machine) -> None:
    dev = bound(kernel)
    kernel.fakes.fail("osEventFlagsWait", result=OS_PARAMETER & 0xFFFF_FFFF)
    assert kernel.lib.ferrule_platform_wait(dev, 20_000) == Status.HANDLE


@pytest.mark.parametrize("rate", [1_000, 1_024, 32_768])
def test_time_goes_on_when_the_count_of_ticks_wraps(kernel: Machine, rate: int) -> None:
    fakes, now = kernel.fakes, kernel.lib.ferrule_platform_now_us
    fakes.fail("osKernelGetTickFreq", result=rate, times=None)
    fakes.fail("osKernelGetSysTimerFreq", result=0, times=None)
    seen = []
    for ticks in (0xFFFF_FFFF, rate - 1, 2 * rate - 1):
        fakes.fail("osKernelGetTickCount", result=ticks)
        seen.append(now())
    assert [(later - before) % (1 << 32) for before, later in pairwise(seen)] == [1_000_000, 1_000_000]


def test_power_is_cut_by_the_driver(machine: Machine) -> None:
    """Afterwards, it can be switched on again, and off."""
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    machine.fakes.forget_calls()
    assert lib.ferrule_platform_cut(dev) == Status.OK
    assert names(machine) == ["PowerControl0", "Uninitialize"]
    assert lib.ferrule_platform_power(dev, True) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK
    other = initialised(machine)
    assert lib.ferrule_device_bind(other, machine.driver(), machine.ffi.NULL) == Status.OK
    assert lib.ferrule_platform_cut(other) == Status.UNSUPPORTED


def test_a_device_that_was_cut_is_off_once(machine: Machine) -> None:
    """PowerControl and Uninitialize are called by the cut, and not by the last deactivation after it."""
    dev, lib = initialised(machine), machine.lib
    assert bind(machine, dev, driver=machine.driver(is_passive=False)) == Status.OK
    for call in (lib.ferrule_device_activate, lib.ferrule_device_open):
        assert call(dev) == Status.OK
    machine.fakes.forget_calls()
    assert lib.ferrule_device_abort(dev) == Status.OK
    assert lib.ferrule_device_close(dev) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK
    assert names(machine) == ["PowerControl0", "Uninitialize"]
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK


def test_a_cut_must_be_confirmed(machine: Machine) -> None:
    """PowerControl may say that it has succeeded; the accelerator must not be busy any more."""
    dev, lib = bound(machine), machine.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    machine.fakes.fail("acc_GetStatus", result=1)
    assert lib.ferrule_platform_cut(dev) == Status.DEVICE
    machine.fakes.fail("acc_PowerControl", result=-1)
    assert lib.ferrule_platform_cut(dev) == Status.DEVICE
    assert lib.ferrule_platform_cut(dev) == Status.OK
    assert lib.ferrule_platform_power(dev, True) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK


def test_a_device_with_dma_needs_what_stops_it(machine: Machine) -> None:
    """A CMSIS-Driver can switch its accelerator off; other devices need a driver that reads whether they stopped."""
    lib, null = machine.lib, machine.ffi.NULL
    unread = machine.driver(is_passive=False, abort=lambda _: Status.OK)
    dev = initialised(machine)
    assert lib.ferrule_device_bind_accelerator(dev, lib.bench_accelerator(), null, null) == Status.ARGUMENT
    assert lib.ferrule_device_bind(dev, unread, null) == Status.UNSTOPPABLE
    assert bind(machine, dev, driver=unread) == Status.OK


def test_init_without_event_flags_keeps_no_mutex(kernel: Machine) -> None:
    kernel.fakes.fail("osEventFlagsNew", result=0)
    assert kernel.lib.ferrule_device_init(storage(kernel)) == Status.MEMORY
    assert len(kernel.fakes.calls_of("osMutexDelete")) == 1


def test_only_the_owner_closes(kernel: Machine) -> None:
    dev, lib = bound(kernel), kernel.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK
    with kernel.fakes.as_thread(2):
        assert lib.ferrule_device_close(dev) == Status.OWNER
    assert lib.ferrule_device_close(dev) == Status.OK


# ---- without a kernel


def test_without_a_kernel_all_are_equal(bare: Machine) -> None:
    bare.lib.ferrule_platform_yield()
    assert bare.lib.ferrule_platform_priority() == 0


def test_without_a_kernel_nobody_waits(bare: Machine) -> None:
    dev, lib = bound(bare), bare.lib
    assert lib.ferrule_device_activate(dev) == Status.OK
    assert lib.ferrule_device_open(dev) == Status.OK
    with bare.fakes.as_thread(2):  # another cooperative task
        assert lib.ferrule_device_open(dev) == Status.BUSY
        assert lib.ferrule_device_close(dev) == Status.OWNER
    assert lib.ferrule_device_close(dev) == Status.OK
