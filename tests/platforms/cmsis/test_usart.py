# SPDX-License-Identifier: Apache-2.0
"""The USART transport of the CMSIS adapter, on the strict driver of the fakes."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule.link.protocol import Status
from ferrule.testing.adapter import Adapter
from ferrule.testing.platforms import CmsisFakes

pytestmark = pytest.mark.cc

Machine = Adapter[CmsisFakes]
RING = 16
STEPS = ("Initialize", "PowerControl", "Control", "Control", "Control", "Receive")
CODES = {
    -1: Status.DEVICE,
    -2: Status.BUSY,
    -3: Status.TIMEOUT,
    -4: Status.UNSUPPORTED,
    -5: Status.ARGUMENT,
}
MODE, TX, RX, ABORT_SEND, ABORT_RECEIVE = 0x01, 0x15, 0x16, 0x18, 0x19
RECEIVE_COMPLETE, OVERFLOW, BREAK, FRAMING, PARITY = 1 << 1, 1 << 5, 1 << 7, 1 << 8, 1 << 9


def started(machine: Machine, number: int = 0) -> Any:  # noqa: ANN401 cffi is not typed
    usart = machine.lib.bench_usart(number)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK
    assert machine.lib.ferrule_cmsis_usart_start(usart) == Status.OK
    machine.fakes.forget_calls()
    return usart


def write(machine: Machine, usart: Any, data: bytes, timeout_ms: int = 100) -> int:  # noqa: ANN401
    return int(machine.lib.bench_write(usart, machine.ffi.new("uint8_t[]", data), len(data), timeout_ms))


def read(machine: Machine, usart: Any, count: int, timeout_ms: int = 100) -> tuple[int, bytes]:  # noqa: ANN401
    data = machine.ffi.new("uint8_t[]", max(count, 1))
    received = machine.ffi.new("uint32_t *")
    status = machine.lib.bench_read(usart, data, count, timeout_ms, received)
    return int(status), bytes(data[0 : received[0]])


def driver_calls(machine: Machine) -> list[tuple[str, ...]]:
    names = {*STEPS, "Uninitialize", "Send"}
    return [
        (call.name, *(str(value) for value in call.arguments)) for call in machine.fakes.calls if call.name in names
    ]


def test_a_strict_driver_is_satisfied(machine: Machine) -> None:
    usart = machine.lib.bench_usart(0)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK
    machine.fakes.forget_calls()
    assert machine.lib.ferrule_cmsis_usart_start(usart) == Status.OK
    assert driver_calls(machine) == [
        ("Initialize", "1"),
        ("PowerControl", "2"),
        ("Control", str(MODE), "115200"),
        ("Control", str(TX), "1"),
        ("Control", str(RX), "1"),
        ("Receive", "1"),
    ]
    machine.fakes.forget_calls()
    assert machine.lib.ferrule_cmsis_usart_stop(usart) == Status.OK
    assert driver_calls(machine) == [
        ("Control", str(ABORT_RECEIVE), "0"),
        ("Control", str(TX), "0"),
        ("Control", str(RX), "0"),
        ("PowerControl", "0"),
        ("Uninitialize",),
    ]
    assert machine.lib.ferrule_cmsis_usart_release(usart) == Status.OK


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_start_that_fails_is_undone(machine: Machine, step: int, code: int) -> None:
    usart = machine.lib.bench_usart(0)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK
    machine.fakes.forget_calls()
    name = STEPS[step]
    machine.fakes.fail(name, result=code, nth=STEPS[: step + 1].count(name))
    assert machine.lib.ferrule_cmsis_usart_start(usart) == CODES[code]
    calls = [call[0] for call in driver_calls(machine)]
    undone = ["PowerControl", "Uninitialize"] if step > 0 else []
    assert calls == [*STEPS[: step + 1], *undone]
    assert write(machine, usart, b"x") == Status.STATE
    assert machine.lib.ferrule_cmsis_usart_start(usart) == Status.OK  # the next attempt works


@pytest.mark.parametrize("code", range(-6, -14, -1))
def test_a_mode_that_the_driver_lacks(machine: Machine, code: int) -> None:
    usart = machine.lib.bench_usart(0)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK
    machine.fakes.fail("Control", result=code)
    assert machine.lib.ferrule_cmsis_usart_start(usart) == Status.UNSUPPORTED


@pytest.mark.parametrize(("name", "nth"), [("Control", 1), ("Control", 2), ("Control", 3), ("PowerControl", 1)])
def test_a_stop_that_fails_goes_on(machine: Machine, name: str, nth: int) -> None:
    usart = started(machine)
    machine.fakes.fail(name, result=-3, nth=nth)
    assert machine.lib.ferrule_cmsis_usart_stop(usart) == Status.TIMEOUT
    calls = [call[0] for call in driver_calls(machine)]
    # a driver that still has power is not uninitialised
    assert calls == ["Control"] * 3 + ["PowerControl"] + ["Uninitialize"] * (name == "Control")
    assert machine.lib.ferrule_cmsis_usart_start(usart) == Status.OK


def test_the_first_error_of_a_stop_is_told(machine: Machine) -> None:
    usart = started(machine)
    machine.fakes.fail("Control", result=-2, nth=2)
    machine.fakes.fail("Uninitialize", result=-3)
    assert machine.lib.ferrule_cmsis_usart_stop(usart) == Status.BUSY


def test_init_refuses(machine: Machine) -> None:
    lib, ffi = machine.lib, machine.ffi
    usart = ffi.new("struct ferrule_cmsis_usart *", lib.bench_usart(0)[0])
    assert lib.ferrule_cmsis_usart_init(ffi.NULL) == Status.ARGUMENT
    usart.driver = ffi.NULL
    assert lib.ferrule_cmsis_usart_init(usart) == Status.ARGUMENT
    usart.driver = machine.fakes.access(0)
    usart.on_event = ffi.NULL
    assert lib.ferrule_cmsis_usart_init(usart) == Status.ARGUMENT


@pytest.mark.parametrize(
    "member",
    [
        *("GetVersion", "GetCapabilities", "Initialize", "Uninitialize", "PowerControl"),
        *("Send", "Receive", "Control", "GetStatus"),
    ],
)
def test_init_refuses_a_driver_that_lacks_a_function(machine: Machine, member: str) -> None:
    lib, ffi = machine.lib, machine.ffi
    usart = ffi.new("struct ferrule_cmsis_usart *", lib.bench_usart(0)[0])
    driver = ffi.new("ARM_DRIVER_USART *", machine.fakes.access(0)[0])
    setattr(driver, member, ffi.NULL)
    usart.driver = driver
    assert lib.ferrule_cmsis_usart_init(usart) == Status.ARGUMENT


def test_init_looks_at_what_the_driver_is(machine: Machine) -> None:
    usart = machine.lib.bench_usart(0)
    machine.fakes.set_usart(0, api=0x300)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.UNSUPPORTED
    machine.fakes.set_usart(0, asynchronous=False)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.UNSUPPORTED
    machine.fakes.set_usart(0, api=0x203)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK


def test_init_without_flags_left(kernel: Machine) -> None:
    kernel.fakes.fail("osEventFlagsNew", result=0)
    assert kernel.lib.ferrule_cmsis_usart_init(kernel.lib.bench_usart(0)) == Status.MEMORY


def test_init_without_a_clock(bare: Machine) -> None:
    usart = bare.ffi.new("struct ferrule_cmsis_usart *", bare.lib.bench_usart(0)[0])
    usart.now_ms = bare.ffi.NULL
    assert bare.lib.ferrule_cmsis_usart_init(usart) == Status.ARGUMENT


# ---- as a device's transport


def bind(machine: Machine, dev: Any, usart: Any, driver: Any) -> int:  # noqa: ANN401
    return int(machine.lib.ferrule_device_bind_usart(dev, usart, driver, machine.ffi.NULL))


def test_a_device_behind_a_usart(machine: Machine) -> None:
    lib, ffi = machine.lib, machine.ffi
    dev, usart = ffi.new("struct ferrule_device *"), lib.bench_usart(0)
    assert bind(machine, dev, usart, machine.driver()) == Status.HANDLE
    assert lib.ferrule_device_init(dev) == Status.OK
    assert bind(machine, dev, ffi.NULL, machine.driver()) == Status.ARGUMENT
    assert bind(machine, dev, usart, ffi.NULL) == Status.ARGUMENT
    assert bind(machine, dev, usart, machine.driver()) == Status.OK
    assert lib.ferrule_device_activate(dev) == Status.OK
    machine.fakes.fail("GetStatus", result=1)  # it is still sending
    assert lib.ferrule_device_open(dev) == Status.UNAVAILABLE
    assert lib.ferrule_device_open(dev) == Status.OK
    assert write(machine, usart, b"hello") == Status.OK
    assert lib.ferrule_device_close(dev) == Status.OK
    assert lib.ferrule_device_deactivate(dev) == Status.OK
    assert write(machine, usart, b"hello") == Status.STATE
    assert lib.ferrule_device_destroy(dev) == Status.OK


def test_destroy_tells_that_the_flags_stay(kernel: Machine) -> None:
    dev = kernel.ffi.new("struct ferrule_device *")
    assert kernel.lib.ferrule_device_init(dev) == Status.OK
    assert bind(kernel, dev, kernel.lib.bench_usart(0), kernel.driver()) == Status.OK
    kernel.fakes.fail("osEventFlagsDelete", result=-3)
    assert kernel.lib.ferrule_device_destroy(dev) == Status.BUSY
    assert len(kernel.fakes.calls_of("osMutexDelete")) == 1


def test_a_bind_that_fails_leaves_nothing_behind(kernel: Machine) -> None:
    dev = kernel.ffi.new("struct ferrule_device *")
    assert kernel.lib.ferrule_device_init(dev) == Status.OK
    kernel.fakes.forget_calls()
    assert bind(kernel, dev, kernel.lib.bench_usart(0), kernel.ffi.NULL) == Status.ARGUMENT
    assert len(kernel.fakes.calls_of("osEventFlagsNew")) == len(kernel.fakes.calls_of("osEventFlagsDelete")) == 1


# ---- bytes


def test_each_usart_has_a_callback_of_its_own(machine: Machine) -> None:
    first, second = started(machine, 0), started(machine, 1)
    machine.fakes.usart(0).send(b"first")
    machine.fakes.usart(1).send(b"second")
    assert read(machine, first, 5) == (Status.OK, b"first")
    assert read(machine, second, 6) == (Status.OK, b"second")


def test_an_answer_that_comes_before_it_is_read(machine: Machine) -> None:
    usart = started(machine)
    far = machine.fakes.usart(0)
    far.answer_with(bytes.upper)
    assert write(machine, usart, b"abc") == Status.OK
    machine.fakes.advance_ms(50)  # long before the read
    assert read(machine, usart, 3) == (Status.OK, b"ABC")
    assert far.received == b"abc"


def test_a_read_waits_for_the_rest(machine: Machine) -> None:
    usart = started(machine)
    far = machine.fakes.usart(0)
    far.send(b"ab")
    far.send(b"c", after_ms=40)
    assert read(machine, usart, 3) == (Status.OK, b"abc")
    assert 40_000 <= machine.fakes.now_us < 45_000


@pytest.mark.parametrize("timeout_ms", [0, 1, 30])
def test_a_read_ends_with_its_time(machine: Machine, timeout_ms: int) -> None:
    usart = started(machine)
    machine.fakes.usart(0).send(b"ab")
    begin = machine.fakes.now_us
    assert read(machine, usart, 3, timeout_ms) == (Status.TIMEOUT, b"ab")
    assert machine.fakes.now_us - begin < (timeout_ms + 2) * 1000
    machine.fakes.usart(0).send(b"c")  # late bytes are not lost
    assert read(machine, usart, 1) == (Status.OK, b"c")


def test_a_read_of_nothing(machine: Machine) -> None:
    usart = started(machine)
    null = machine.ffi.NULL
    received = machine.ffi.new("uint32_t *")
    assert machine.lib.bench_read(usart, null, 0, 100, received) == Status.OK
    assert machine.lib.bench_read(usart, null, 1, 100, received) == Status.ARGUMENT
    assert machine.lib.bench_read(usart, machine.ffi.new("uint8_t *"), 1, 100, null) == Status.ARGUMENT
    assert machine.lib.bench_write(usart, null, 0, 100) == Status.OK
    assert machine.lib.bench_write(usart, null, 1, 100) == Status.ARGUMENT


def test_before_the_start_there_is_nothing(machine: Machine) -> None:
    usart = machine.lib.bench_usart(0)
    assert machine.lib.ferrule_cmsis_usart_init(usart) == Status.OK
    assert read(machine, usart, 1) == (Status.STATE, b"")
    assert write(machine, usart, b"x") == Status.STATE


def test_a_write_ends_with_its_time_and_lets_go_of_the_buffer(machine: Machine) -> None:
    usart = started(machine)
    assert write(machine, usart, bytes(200), 5) == Status.TIMEOUT  # takes 17 ms
    assert driver_calls(machine)[-1] == ("Control", str(ABORT_SEND), "0")
    assert write(machine, usart, b"x") == Status.OK


def test_a_write_that_is_not_begun(machine: Machine) -> None:
    usart = started(machine)
    machine.fakes.fail("Send", result=-2)
    assert write(machine, usart, b"x") == Status.BUSY
    assert write(machine, usart, b"x") == Status.OK


def test_waiting_that_fails_aborts(kernel: Machine) -> None:
    usart = started(kernel)
    kernel.fakes.fail("osEventFlagsWait", result=0xFFFFFFFC)
    assert write(kernel, usart, b"x") == Status.HANDLE
    assert driver_calls(kernel)[-1] == ("Control", str(ABORT_SEND), "0")
    kernel.fakes.fail("osEventFlagsWait", result=0xFFFFFFFC)
    assert read(kernel, usart, 1) == (Status.HANDLE, b"")


def test_a_full_ring_stops_the_receiver(machine: Machine) -> None:
    usart = started(machine)
    for byte in range(RING):
        machine.fakes.usart(0).send(bytes([byte]))
    assert len(machine.fakes.calls_of("Receive")) == RING - 1  # not called after the last byte
    assert read(machine, usart, 4) == (Status.OK, bytes(range(4)))
    machine.fakes.usart(0).send(b"x")
    assert read(machine, usart, RING - 3) == (Status.OK, bytes(range(4, RING)) + b"x")


@pytest.mark.parametrize("error", [OVERFLOW, BREAK, FRAMING, PARITY, OVERFLOW | RECEIVE_COMPLETE])
def test_a_loss_is_told_once_after_what_came_before(machine: Machine, error: int) -> None:
    usart = started(machine)
    far = machine.fakes.usart(0)
    far.send(b"ab")
    machine.fakes.signal(0, error)
    far.send(b"c")  # its position in the data is unknown
    assert read(machine, usart, 3) == (Status.DEVICE, b"ab")
    far.send(b"d")
    assert read(machine, usart, 1) == (Status.OK, b"d")


def test_a_loss_ends_a_read_that_waits(machine: Machine) -> None:
    usart = started(machine)
    machine.fakes.at_ms(3, lambda: machine.fakes.signal(0, OVERFLOW))
    assert read(machine, usart, 1) == (Status.DEVICE, b"")
    assert machine.fakes.now_us < 10_000


def test_a_receiver_that_does_not_start_again(machine: Machine) -> None:
    usart = started(machine)
    machine.fakes.fail("Receive", result=-1, times=2)
    machine.fakes.usart(0).send(b"a")
    assert read(machine, usart, 2) == (Status.DEVICE, b"a")  # one more attempt fails, too
    machine.fakes.usart(0).send(b"b", after_ms=1)
    assert read(machine, usart, 1) == (Status.OK, b"b")


def test_other_events_are_nothing(machine: Machine) -> None:
    usart = started(machine)
    machine.fakes.signal(0, 1 << 3)  # ARM_USART_EVENT_TX_COMPLETE
    assert read(machine, usart, 1, 0) == (Status.TIMEOUT, b"")
    assert machine.fakes.calls_of("Receive") == []


def test_many_bytes_are_one_signal(kernel: Machine) -> None:
    usart = started(kernel)
    for _ in range(3):
        kernel.fakes.usart(0).send(b"abcd")
    assert len(kernel.fakes.calls_of("osEventFlagsSet")) == 1  # kernels have small queues for signals from interrupts
    assert read(kernel, usart, 12) == (Status.OK, b"abcd" * 3)
    kernel.fakes.signal(0, OVERFLOW)
    assert len(kernel.fakes.calls_of("osEventFlagsSet")) == 2


def test_a_byte_whose_signal_failed_is_followed_by_another_signal(kernel: Machine) -> None:
    usart = started(kernel)
    kernel.fakes.fail("osEventFlagsSet", result=-3 & 0xFFFF_FFFF)  # the kernel's queue is full
    kernel.fakes.usart(0).send(b"ab")
    assert len(kernel.fakes.calls_of("osEventFlagsSet")) == 2
    assert read(kernel, usart, 2) == (Status.OK, b"ab")


# ---- as the link's UART


def test_the_link_reads_and_writes_bytes(machine: Machine) -> None:
    usart, lib = started(machine), machine.lib
    assert lib.ferrule_cmsis_usart_read_byte(usart) == -1
    machine.fakes.usart(0).send(b"a\xff")
    assert [lib.ferrule_cmsis_usart_read_byte(usart) for _ in range(3)] == [0x61, 0xFF, -1]
    lib.ferrule_cmsis_usart_write_byte(usart, 0x80)
    assert machine.fakes.usart(0).received == b""  # the second far end does not have earlier bytes
    far = machine.fakes.usart(0)
    lib.ferrule_cmsis_usart_write_byte(usart, 0x81)
    assert far.received == b"\x81"


def test_the_link_goes_on_after_a_loss(machine: Machine) -> None:
    usart, lib = started(machine), machine.lib
    machine.fakes.signal(0, OVERFLOW)
    assert lib.ferrule_cmsis_usart_read_byte(usart) == -1
    machine.fakes.usart(0).send(b"x")
    assert lib.ferrule_cmsis_usart_read_byte(usart) == 0x78


def test_the_link_starts_the_receiver_again(machine: Machine) -> None:
    usart, lib = started(machine), machine.lib
    machine.fakes.fail("Receive", result=-1)
    machine.fakes.usart(0).send(b"a")
    assert [lib.ferrule_cmsis_usart_read_byte(usart) for _ in range(2)] == [0x61, -1]
    machine.fakes.usart(0).send(b"b")
    assert lib.ferrule_cmsis_usart_read_byte(usart) == 0x62


def test_the_link_lets_others_run(kernel: Machine) -> None:
    usart, lib = started(kernel), kernel.lib
    kernel.fakes.usart(0).send(b"a", after_ms=20)
    lib.ferrule_cmsis_usart_wait(usart, 0xFFFFFFFF)
    assert 20_000 <= kernel.fakes.now_us < 21_000
    lib.ferrule_cmsis_usart_wait(usart, 1000)  # a byte is available already
    assert kernel.fakes.now_us < 21_000
    assert lib.ferrule_cmsis_usart_read_byte(usart) == 0x61
    lib.ferrule_cmsis_usart_wait(usart, 10)  # the earlier signal may still be set
    lib.ferrule_cmsis_usart_wait(usart, 10)
    begin = kernel.fakes.now_us
    assert begin >= 30_000
    kernel.fakes.usart(0).send(b"b", after_ms=5)
    lib.ferrule_cmsis_usart_wait(usart, 1000)  # the second byte is signalled like the first
    assert kernel.fakes.now_us - begin < 10_000


def test_without_a_kernel_the_link_asks_on(bare: Machine) -> None:
    usart = started(bare)
    bare.lib.ferrule_cmsis_usart_wait(usart, 1000)
    bare.fakes.usart(0).send(b"a")
    bare.lib.ferrule_cmsis_usart_wait(usart, 1000)
    assert bare.fakes.now_us < 100_000


# ---- the counter


def test_the_kernels_timer_counts(kernel: Machine) -> None:
    counter, lib = kernel.ffi.new("struct ferrule_counter *"), kernel.lib
    kernel.fakes.fail("osKernelGetSysTimerCount", result=0xFFFFFFF0, times=1)
    lib.ferrule_counter_start(counter)
    assert counter.source == 2
    kernel.fakes.fail("osKernelGetSysTimerCount", result=0x10, times=1)
    assert lib.ferrule_counter_read(counter) == 0x20  # the timer wrapped
    kernel.fakes.fail("osKernelGetSysTimerCount", result=0x30, times=1)
    assert lib.ferrule_counter_read(counter) == 0x40
    lib.ferrule_counter_reset(counter)
    assert lib.ferrule_counter_read(counter) < 10


def test_a_kernel_without_a_timer(kernel: Machine) -> None:
    counter, lib = kernel.ffi.new("struct ferrule_counter *"), kernel.lib
    kernel.fakes.fail("osKernelGetSysTimerFreq", result=0)
    lib.ferrule_counter_start(counter)
    assert counter.source == 0
    assert lib.ferrule_counter_read(counter) == 0
