# SPDX-License-Identifier: Apache-2.0
"""Zephyr's fakes on the host behave as Zephyr's documentation states and as a test requests."""

from __future__ import annotations

import errno

import pytest
from needs import require_cc, require_module

from ferrule.errors import FerruleError
from ferrule.testing import Adapter, CData, MisuseError, ZephyrFakes, build_adapter

pytestmark = pytest.mark.cc
BUSY, AGAIN, PERM, INVAL = -errno.EBUSY, -errno.EAGAIN, -errno.EPERM, -errno.EINVAL


@pytest.fixture(scope="module")
def built() -> Adapter[ZephyrFakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("zephyr")


@pytest.fixture
def zephyr(built: Adapter[ZephyrFakes]) -> Adapter[ZephyrFakes]:
    built.fakes.reset()
    return built


@pytest.fixture
def mutex(zephyr: Adapter[ZephyrFakes]) -> CData:
    made = zephyr.ffi.new("struct k_mutex *")
    assert zephyr.lib.k_mutex_init(made) == 0
    return made


def ms(zephyr: Adapter[ZephyrFakes], value: int) -> CData:
    return zephyr.ffi.new("k_timeout_t *", {"ticks": value * 1000})[0]


def forever(zephyr: Adapter[ZephyrFakes]) -> CData:
    return zephyr.ffi.new("k_timeout_t *", {"ticks": -1})[0]


def test_a_mutex_is_recursive_and_has_an_owner(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    lib = zephyr.lib
    assert [lib.k_mutex_lock(mutex, ms(zephyr, 0)) for _ in range(2)] == [0, 0]
    with zephyr.fakes.as_thread(2):
        assert lib.k_mutex_unlock(mutex) == PERM
        assert lib.k_mutex_lock(mutex, ms(zephyr, 0)) == BUSY
    assert [lib.k_mutex_unlock(mutex) for _ in range(3)] == [0, 0, INVAL]
    assert zephyr.fakes.trace == "new lock lock unlock=-1 lock=-16 unlock unlock unlock=-22"


def test_waiting_ends_when_the_time_is_over(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 0))
    before = zephyr.fakes.now_us
    with zephyr.fakes.as_thread(2):
        assert zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 3_600_000)) == AGAIN
    assert zephyr.fakes.now_us - before == pytest.approx(3_600_000_000, abs=5)


def test_a_deadlock_is_told(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 0))
    with (
        zephyr.fakes.as_thread(2),
        pytest.raises(MisuseError, match=r"nobody can move.*2 waits in k_mutex_lock"),
    ):
        zephyr.lib.k_mutex_lock(mutex, forever(zephyr))


def test_two_threads_that_wait_for_each_other_are_told(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    other = zephyr.ffi.new("struct k_mutex *")
    zephyr.lib.k_mutex_init(other)

    def take(first: CData, second: CData) -> None:
        zephyr.lib.k_mutex_lock(first, forever(zephyr))
        zephyr.lib.k_msleep(1)
        zephyr.lib.k_mutex_lock(second, forever(zephyr))

    with pytest.raises(MisuseError, match="nobody can move"):
        zephyr.fakes.run(lambda: take(mutex, other), lambda: take(other, mutex))


@pytest.mark.parametrize("repetition", range(5))
def test_threads_exclude_each_other(zephyr: Adapter[ZephyrFakes], mutex: CData, repetition: int) -> None:
    assert repetition >= 0
    inside: list[str] = []

    def work() -> None:
        for _ in range(20):
            assert zephyr.lib.k_mutex_lock(mutex, forever(zephyr)) == 0
            inside.append("in")
            zephyr.lib.k_msleep(2)
            inside.append("out")
            zephyr.lib.k_mutex_unlock(mutex)

    zephyr.fakes.run(work, work, work)
    assert inside == ["in", "out"] * 60
    assert {call.thread for call in zephyr.fakes.calls_of("k_msleep")} == {11, 12, 13}


def test_without_the_mutex_they_meet(zephyr: Adapter[ZephyrFakes]) -> None:
    inside: list[str] = []

    def work() -> None:
        inside.append("in")
        zephyr.lib.k_msleep(2)
        inside.append("out")

    zephyr.fakes.run(work, work)
    assert inside == ["in", "in", "out", "out"]


def test_a_copy_of_a_mutex_is_told(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    copy = zephyr.ffi.new("struct k_mutex *", mutex[0])
    with pytest.raises(MisuseError, match="not initialised here"):
        zephyr.lib.k_mutex_lock(copy, ms(zephyr, 0))
    with pytest.raises(MisuseError, match="null pointer"):
        zephyr.lib.k_mutex_lock(zephyr.ffi.NULL, ms(zephyr, 0))


def test_an_interrupt_must_not_lock(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    with zephyr.fakes.interrupt():
        assert zephyr.lib.k_is_in_isr()
        with pytest.raises(MisuseError, match="k_mutex_lock was called in an interrupt"):
            zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 0))
    assert not zephyr.lib.k_is_in_isr()


def test_a_call_fails_when_it_is_told_to(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    other = zephyr.ffi.new("struct k_mutex *")
    zephyr.lib.k_mutex_init(other)
    zephyr.fakes.fail("k_mutex_lock", nth=3, result=AGAIN)
    zephyr.fakes.fail("k_mutex_lock", on=other, times=None, result=BUSY)
    none = ms(zephyr, 0)
    assert [zephyr.lib.k_mutex_lock(mutex, none) for _ in range(4)] == [0, 0, AGAIN, 0]
    assert [zephyr.lib.k_mutex_lock(other, none) for _ in range(2)] == [BUSY, BUSY]
    zephyr.fakes.forget_scripts()
    assert zephyr.lib.k_mutex_lock(other, none) == 0


def test_scripts_for_what_is_not_there_are_refused(zephyr: Adapter[ZephyrFakes]) -> None:
    with pytest.raises(FerruleError, match="there is no fake function 'k_mutex_lok'") as raised:
        zephyr.fakes.fail("k_mutex_lok", result=-1)
    assert "k_mutex_lock" in str(raised.value.hint)
    with pytest.raises(FerruleError, match="counted from 1"):
        zephyr.fakes.fail("k_mutex_lock", nth=0, result=-1)


def test_an_interrupt_between_two_calls(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    sem = zephyr.ffi.new("struct k_sem *")
    zephyr.lib.k_sem_init(sem, 0, 1)
    zephyr.fakes.interrupt_after("k_mutex_lock", lambda: zephyr.lib.k_sem_give(sem))
    zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 0))
    zephyr.lib.k_mutex_unlock(mutex)
    assert zephyr.fakes.trace == "new new lock give unlock"
    assert [call.in_interrupt for call in zephyr.fakes.calls] == [False, False, False, True, False]


def test_what_fails_in_an_interrupt_fails_the_test(zephyr: Adapter[ZephyrFakes], mutex: CData) -> None:
    def handler() -> None:
        raise ValueError("in the handler")

    zephyr.fakes.interrupt_before("k_mutex_lock", handler)
    with pytest.raises(ValueError, match="in the handler"):
        zephyr.lib.k_mutex_lock(mutex, ms(zephyr, 0))


def test_an_interrupt_ends_a_wait(zephyr: Adapter[ZephyrFakes]) -> None:
    sem = zephyr.ffi.new("struct k_sem *")
    zephyr.lib.k_sem_init(sem, 0, 1)
    zephyr.fakes.at_ms(5, lambda: zephyr.lib.k_sem_give(sem))
    assert zephyr.lib.k_sem_take(sem, ms(zephyr, 100)) == 0
    assert zephyr.fakes.now_us // 1000 == 5
    assert zephyr.lib.k_sem_take(sem, ms(zephyr, 100)) == AGAIN
    assert zephyr.lib.k_sem_take(sem, ms(zephyr, 0)) == BUSY


def test_devices(zephyr: Adapter[ZephyrFakes]) -> None:
    device = zephyr.fakes.device("npu0")
    assert zephyr.ffi.string(device.name) == b"npu0"
    assert zephyr.fakes.device("npu0") == device != zephyr.fakes.device("npu1")
    assert zephyr.lib.device_is_ready(device)
    zephyr.fakes.not_ready("npu0")
    assert not zephyr.lib.device_is_ready(device)
    zephyr.fakes.ready("npu0")
    assert zephyr.lib.device_is_ready(device)
    with pytest.raises(FerruleError, match="no device 'npu7'"):
        zephyr.fakes.not_ready("npu7")
    assert zephyr.lib.pm_device_runtime_get(device) == 0
    assert zephyr.fakes.power_count("npu0") == 1
    assert zephyr.lib.pm_device_runtime_put(device) == 0
    assert zephyr.lib.pm_device_runtime_put(device) == -errno.EALREADY
    with pytest.raises(MisuseError, match="what is no device"):
        zephyr.lib.device_is_ready(zephyr.ffi.new("struct device *"))


def test_a_lock_in_an_interrupt_handler_waits_for_the_processor(zephyr: Adapter[ZephyrFakes]) -> None:
    key = zephyr.lib.irq_lock()
    zephyr.fakes.at_ms(0, lambda: zephyr.fakes.note("handler"))
    zephyr.lib.k_uptime_get()
    zephyr.lib.irq_unlock(key)
    zephyr.lib.k_uptime_get()
    assert zephyr.fakes.trace == "irq_lock irq_unlock handler"


def test_ring_buffers(zephyr: Adapter[ZephyrFakes]) -> None:
    lib, ffi = zephyr.lib, zephyr.ffi
    ring = ffi.new("struct ring_buf *")
    memory = ffi.new("uint8_t[8]")
    lib.ring_buf_init(ring, 8, memory)
    out = ffi.new("uint8_t[16]")
    pending = b""
    for count in (5, 3, 7, 8, 1, 6):
        data = bytes(range(count))
        taken = lib.ring_buf_put(ring, data, count)
        assert taken == min(count, 8 - len(pending))
        pending += data[:taken]
        assert lib.ring_buf_size_get(ring) == len(pending)
        assert lib.ring_buf_space_get(ring) == 8 - len(pending)
        got = lib.ring_buf_get(ring, out, 4)
        assert bytes(ffi.buffer(out, got)) == pending[:got]
        pending = pending[got:]
    assert not lib.ring_buf_is_empty(ring)
    lib.ring_buf_reset(ring)
    assert lib.ring_buf_is_empty(ring)
    assert lib.ring_buf_capacity_get(ring) == 8
