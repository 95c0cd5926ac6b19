# SPDX-License-Identifier: Apache-2.0
"""A device on the Zephyr fakes, and the adapter's contract as functions, one of which every mutant must fail."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from coverage_gate import counted
from needs import require_module

from ferrule.testing import Adapter, ZephyrFakes, build_adapter

OK = 0
ARGUMENT, UNSUPPORTED, MEMORY, FAILED, UNAVAILABLE, HANDLE = -1, -2, -3, -4, -5, -6
STATE, BUSY, TIMEOUT, INTERRUPT, OWNER, DEVICE, UNSTOPPABLE = -7, -8, -9, -10, -11, -12, -15


@cache
def built(*defines: str) -> Adapter[ZephyrFakes]:
    """Return the adapter for a configuration, such as "CONFIG_PM_DEVICE" or "CONFIG_X=0"."""
    require_module("cffi", "pip install 'ferrule[run]'")
    pairs = {name: value or "1" for name, _, value in (each.partition("=") for each in defines)}
    return counted(build_adapter, "zephyr", defines=pairs)


@dataclass(slots=True, kw_only=True)
class Bench:
    """The adapter with one handle and its driver."""

    adapter: Adapter[ZephyrFakes]
    handle: Any
    driver: Any

    @classmethod
    def of(cls, adapter: Adapter[ZephyrFakes]) -> Bench:
        """Return a bench on the adapter, with its fakes reset."""
        adapter.fakes.reset()
        adapter.fakes.device("npu")
        return cls(adapter=adapter, handle=adapter.ffi.new("struct ferrule_device *"), driver=adapter.driver())

    @property
    def fakes(self) -> ZephyrFakes:
        return self.adapter.fakes

    @property
    def npu(self) -> object:
        return self.fakes.device("npu")

    def call(self, name: str) -> int:
        """Call ferrule_device_<name> on the handle."""
        return int(getattr(self.adapter.lib, f"ferrule_device_{name}")(self.handle))

    def bind(self) -> int:
        return int(self.adapter.lib.ferrule_device_bind(self.handle, self.npu, self.driver, self.adapter.ffi.NULL))

    def bind_soft(self) -> int:
        return int(self.adapter.lib.ferrule_device_bind_soft(self.handle, self.driver, self.adapter.ffi.NULL))

    def bound(self) -> Bench:
        assert self.call("init") == OK
        assert self.bind() == OK
        return self

    def active(self) -> Bench:
        self.bound()
        assert self.call("activate") == OK
        return self

    def traced(self, name: str) -> tuple[int, str]:
        """Return the status of a call, and the trace of the fakes below it."""
        self.fakes.forget_calls()
        status = self.bind() if name == "bind" else self.call(name)
        return status, self.fakes.trace


def works(bench: Bench) -> None:
    """Check the calls, and their order, over a device's whole life."""
    assert bench.traced("init") == (OK, "new new")
    assert bench.traced("bind") == (OK, "ready?")
    assert bench.traced("activate") == (OK, "lock on unlock")
    assert bench.traced("open") == (OK, "lock ready?")
    assert bench.traced("close") == (OK, "unlock")
    assert bench.traced("deactivate") == (OK, "lock off unlock")
    assert bench.traced("destroy") == (OK, "")
    assert bench.fakes.power_count("npu") == 0
    assert bench.traced("init") == (OK, "new new")


def refuses_what_is_not_ready(bench: Bench) -> None:
    assert bench.call("init") == OK
    bench.fakes.not_ready("npu")
    assert bench.bind() == UNAVAILABLE
    assert bench.fakes.log == ("<err> npu is not ready",)
    assert bench.call("activate") == STATE
    bench.fakes.ready("npu")
    assert bench.bind() == OK
    assert bench.call("activate") == OK
    bench.fakes.not_ready("npu")
    assert bench.call("open") == UNAVAILABLE
    bench.fakes.ready("npu")
    assert bench.call("open") == OK


def tells_a_failure_of_power(bench: Bench) -> None:
    bench.bound()
    bench.fakes.fail("pm_device_runtime_get", result=-errno.EIO)
    assert bench.traced("activate") == (DEVICE, f"lock on={-errno.EIO} unlock")
    assert bench.call("deactivate") == STATE
    assert bench.call("activate") == OK
    assert bench.fakes.power_count("npu") == 1
    bench.fakes.fail("pm_device_runtime_put", result=-errno.ENOTSUP)
    assert bench.call("deactivate") == UNSUPPORTED
    assert bench.call("deactivate") == STATE
    assert bench.fakes.log == (
        f"<err> npu: power on: error {-errno.EIO}",
        f"<err> npu: power off: error {-errno.ENOTSUP}",
    )


def excludes_the_other_thread(bench: Bench) -> None:
    """Check that two threads run twenty inferences each without overlap, each waiting for the other."""
    bench.active()
    lib, inside, overlaps, rounds = bench.adapter.lib, [0], [0], [0]

    def work() -> None:
        for _ in range(20):
            assert lib.ferrule_device_open(bench.handle) == OK
            overlaps[0] += inside[0]
            inside[0] += 1
            lib.k_msleep(2)
            inside[0] -= 1
            rounds[0] += 1
            assert lib.ferrule_device_close(bench.handle) == OK
            lib.k_msleep(1)

    bench.fakes.run(work, work)
    assert (overlaps[0], rounds[0]) == (0, 40)


def waits_for_a_bounded_time(bench: Bench) -> None:
    """Check that the second thread times out after the configured time, and opens the device once it is free."""
    bench.active()
    lib = bench.adapter.lib
    seen: dict[str, object] = {}

    def holder() -> None:
        assert lib.ferrule_device_open(bench.handle) == OK
        lib.k_msleep(1500)
        assert lib.ferrule_device_close(bench.handle) == OK

    def waiter() -> None:
        lib.k_msleep(10)
        begin = bench.fakes.now_us
        seen["open"] = lib.ferrule_device_open(bench.handle)
        seen["waited_ms"] = (bench.fakes.now_us - begin) // 1000
        seen["close"] = lib.ferrule_device_close(bench.handle)
        seen["copy"] = lib.ferrule_device_copy_to(bench.handle, 0, bench.adapter.ffi.NULL, 0)
        seen["again"] = lib.ferrule_device_open(bench.handle)
        seen["at_last"] = lib.ferrule_device_close(bench.handle)

    bench.fakes.run(holder, waiter)
    assert seen == {
        "open": TIMEOUT,
        "waited_ms": 1000,
        "close": OWNER,
        "copy": OWNER,
        "again": OK,
        "at_last": OK,
    }


def refuses_interrupts(bench: Bench) -> None:
    bench.active()
    with bench.fakes.interrupt():
        for name in ("init", "activate", "open", "close", "deactivate", "destroy"):
            assert bench.call(name) == INTERRUPT
        assert bench.bind() == INTERRUPT
        assert bench.bind_soft() == INTERRUPT
    assert bench.call("open") == OK


def keeps_its_fields_whole(bench: Bench) -> None:
    """Check that the guard is taken and released in turn, and that no call which may wait is made under it."""
    guarded = {"k_spin_lock": 1, "k_spin_unlock": -1}
    ffi = bench.adapter.ffi
    guard = int(ffi.cast("uintptr_t", ffi.addressof(bench.handle, "guard")))
    for name in LIFE:
        bench.fakes.forget_calls()
        assert (bench.bind() if name == "bind" else bench.call(name)) == OK
        held, times = 0, 0
        for call in bench.fakes.calls:
            if call.name in guarded and call.object == guard:
                held += guarded[call.name]
                times += call.name == "k_spin_lock"
                assert held in {0, 1}
            else:
                assert not held or call.name in {"k_current_get", "k_thread_priority_get"}, call
        assert held == 0, name
        assert times >= (name != "init"), name


def waits_until_notified(bench: Bench) -> None:
    """Check that a thread of lower priority runs meanwhile, and that a notification counts once, also an early one."""
    bench.bound()
    lib, handle = bench.adapter.lib, bench.handle
    wait, notify, now = lib.ferrule_platform_wait, lib.ferrule_platform_notify, lib.ferrule_platform_now_us
    bench.fakes.at_ms(7, lambda: notify(handle))
    began = now()
    assert wait(handle, 20_000) == OK
    assert 7_000 <= now() - began < 7_100
    notify(handle)
    notify(handle)
    assert wait(handle, 20_000) == OK
    began = now()
    assert wait(handle, 20_000) == TIMEOUT
    assert 20_000 <= now() - began < 20_100
    assert {call.name for call in bench.fakes.calls} >= {"k_sem_take", "k_sem_give"}


def polls_for_less_than_a_tick(bench: Bench) -> None:
    """Check that a wait of less than a tick ends in time, that other threads run, and that a longer one sleeps."""
    bench.bound()
    bench.fakes.set_tick(1_000)
    lib, handle, fakes = bench.adapter.lib, bench.handle, bench.fakes
    for timeout_us in (1, 300, 999):
        began = fakes.now_us
        assert lib.ferrule_platform_wait(handle, timeout_us) == TIMEOUT
        assert timeout_us <= fakes.now_us - began < timeout_us + 200
    assert {call.arguments[-1] for call in fakes.calls_of("k_sem_take")} == {0}
    assert fakes.calls_of("k_yield")
    fakes.forget_calls()
    lib.ferrule_platform_notify(handle)
    assert lib.ferrule_platform_wait(handle, 300) == OK
    assert fakes.calls_of("k_yield") == []
    fakes.forget_calls()
    assert lib.ferrule_platform_wait(handle, 1_000) == TIMEOUT
    assert [call.arguments[-1] for call in fakes.calls_of("k_sem_take")] == [1]


def ends_waits_at_most_a_tick_late(bench: Bench) -> None:
    """Check it for a device and for its lock, at all phases of a tick, and no wait ends early."""
    bench.active()
    bench.fakes.set_tick(1_000)
    lib, handle, fakes = bench.adapter.lib, bench.handle, bench.fakes
    never = bench.adapter.ffi.callback("bool(void *)", lambda _: False)
    took: list[tuple[int, int]] = []

    def measure(call: Callable[[int], int]) -> None:
        for limit_us in (1, 400, 1_000, 1_001, 2_999):
            for _ in range(4):
                lib.ferrule_fake_advance(273)
                began = fakes.now_us
                assert call(limit_us) == TIMEOUT
                took.append((limit_us, fakes.now_us - began))

    assert bench.call("open") == OK
    measure(lambda limit_us: int(lib.ferrule_device_wait(handle, never, limit_us)))
    with fakes.as_thread(2):
        measure(lambda limit_us: int(lib.ferrule_device_open_for(handle, limit_us, bench.adapter.ffi.NULL)))
    assert [pair for pair in took if not pair[0] <= pair[1] <= pair[0] + 1_100] == []
    assert bench.call("close") == OK


def counts_cycles_that_wrap(bench: Bench) -> None:
    """Check the clock between two calls, too: the longest wait is 35 minutes, and these cycles wrap every nine."""
    bench.fakes.set_tick(1_000, cycles_hz=8_000_000)
    now = bench.adapter.lib.ferrule_platform_now_us
    last = now()
    for milliseconds in (1, 530_000, 5, 2_147_483, 7):
        bench.fakes.advance_ms(milliseconds)
        passed = (now() - last) % 2**32
        assert milliseconds * 1_000 <= passed < milliseconds * 1_000 + 100
        last = now()


def lets_others_run_without_an_inherited_priority(bench: Bench) -> None:
    """Check that a thread which loses one with the lock yields: Zephyr lets it go on if no other one waits."""
    lib, handle, fakes = bench.adapter.lib, bench.bound().handle, bench.fakes
    for inherited, yields in ((7, 0), (3, 1)):
        assert lib.ferrule_platform_lock(handle, 0) == OK
        fakes.fail("k_thread_priority_get", result=inherited)
        fakes.fail("k_thread_priority_get", nth=2, result=7)
        fakes.forget_calls()
        assert lib.ferrule_platform_unlock(handle) == OK
        assert len(fakes.calls_of("k_yield")) == yields
        fakes.forget_scripts()


def knows_the_priority(bench: Bench) -> None:
    """Check that a larger number is more urgent: Zephyr's are the other way round."""
    for priority in (5, -3):
        bench.fakes.fail("k_thread_priority_get", result=priority)
        assert bench.adapter.lib.ferrule_platform_priority() == -priority


def gives_way(bench: Bench) -> None:
    bench.adapter.lib.ferrule_platform_yield()
    assert [call.name for call in bench.fakes.calls] == ["k_yield"]


def cuts_the_power(bench: Bench) -> None:
    """Check that only a device that is off counts as stopped, and that its power stays balanced."""
    bench.active()
    lib, handle = bench.adapter.lib, bench.handle
    assert lib.ferrule_platform_cut(handle) == OK
    assert bench.fakes.power_count("npu") == 0
    assert lib.ferrule_platform_power(handle, True) == OK
    assert bench.fakes.power_count("npu") == 1
    assert lib.ferrule_platform_cut(handle) == OK
    assert lib.ferrule_platform_power(handle, True) == OK  # as the next open does
    assert bench.fakes.power_count("npu") == 1
    bench.fakes.fail("pm_device_state_get", result=-errno.ENOSYS)
    assert bench.fakes.log == ("<wrn> npu did not stop and was switched off",) * 2
    assert lib.ferrule_platform_cut(handle) == UNSUPPORTED
    assert "<err> npu did not stop and cannot be switched off" in bench.fakes.log
    assert bench.fakes.power_count("npu") == 1
    lib.pm_device_runtime_get(bench.npu)  # by another user: it stays on
    assert lib.ferrule_platform_cut(handle) == UNSUPPORTED
    assert bench.fakes.power_count("npu") == 2
    bench.fakes.fail("pm_device_runtime_put", result=-errno.EIO)
    assert lib.ferrule_platform_cut(handle) == DEVICE
    assert lib.ferrule_platform_power(handle, False) == OK
    assert bench.fakes.power_count("npu") == 1


def maps_errors(bench: Bench) -> None:
    lib = bench.adapter.lib
    assert {number: lib.ferrule_zephyr_status(-number) for number in STATUS_OF} == STATUS_OF
    assert {status: -lib.ferrule_zephyr_errno(status) for status in ERRNO_OF} == ERRNO_OF
    assert lib.ferrule_zephyr_status(0) == lib.ferrule_zephyr_status(17) == OK
    assert lib.ferrule_zephyr_errno(0) == lib.ferrule_zephyr_errno(3) == 0


LIFE = ("init", "bind", "activate", "open", "close", "deactivate", "destroy")
STATUS_OF = {
    errno.EINVAL: ARGUMENT,
    errno.ENOTSUP: UNSUPPORTED,
    errno.ENOSYS: UNSUPPORTED,
    errno.ENOMEM: MEMORY,
    errno.ECANCELED: FAILED,
    errno.EFAULT: FAILED,
    errno.ENODEV: UNAVAILABLE,
    errno.ENXIO: UNAVAILABLE,
    errno.EBADF: HANDLE,
    errno.EPROTO: STATE,
    errno.EBUSY: BUSY,
    errno.EAGAIN: TIMEOUT,
    errno.ETIMEDOUT: TIMEOUT,
    errno.EPERM: OWNER,
    errno.EIO: DEVICE,
}
ERRNO_OF = {
    ARGUMENT: errno.EINVAL,
    UNSUPPORTED: errno.ENOTSUP,
    MEMORY: errno.ENOMEM,
    FAILED: errno.ECANCELED,
    UNAVAILABLE: errno.ENODEV,
    HANDLE: errno.EBADF,
    STATE: errno.EPROTO,
    BUSY: errno.EBUSY,
    TIMEOUT: errno.ETIMEDOUT,
    INTERRUPT: errno.EWOULDBLOCK,
    OWNER: errno.EPERM,
    DEVICE: errno.EIO,
    -99: errno.ECANCELED,
}

PROMISES: tuple[Callable[[Bench], None], ...] = (
    works,
    refuses_what_is_not_ready,
    tells_a_failure_of_power,
    excludes_the_other_thread,
    waits_for_a_bounded_time,
    refuses_interrupts,
    keeps_its_fields_whole,
    waits_until_notified,
    polls_for_less_than_a_tick,
    ends_waits_at_most_a_tick_late,
    counts_cycles_that_wrap,
    lets_others_run_without_an_inherited_priority,
    knows_the_priority,
    gives_way,
    cuts_the_power,
    maps_errors,
)
