# SPDX-License-Identifier: Apache-2.0
"""CMSIS-RTOS2 and CMSIS-Driver's USART, as fakes on the host."""

from __future__ import annotations

import pytest
from needs import require_cc, require_module

from ferrule.errors import FerruleError
from ferrule.testing import Adapter, CData, CmsisFakes, MisuseError, build_adapter

pytestmark = pytest.mark.cc
OK, TIMEOUT, RESOURCE, PARAMETER, ISR = 0, -2, -3, -4, -6
ERROR, BUSY, WRONG = -1, -2, -5
FOREVER = 0xFFFF_FFFF


@pytest.fixture(scope="module")
def built() -> Adapter[CmsisFakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter("cmsis")


@pytest.fixture
def cmsis(built: Adapter[CmsisFakes]) -> Adapter[CmsisFakes]:
    built.reset()
    return built


def mutex(cmsis: Adapter[CmsisFakes], attributes: int = 0) -> CData:
    return cmsis.lib.osMutexNew(cmsis.ffi.new("osMutexAttr_t *", {"attr_bits": attributes}))


def test_a_mutex_is_recursive_on_request(cmsis: Adapter[CmsisFakes]) -> None:
    plain, recursive = mutex(cmsis), mutex(cmsis, cmsis.lib.osMutexRecursive)
    assert [cmsis.lib.osMutexAcquire(plain, 0) for _ in range(2)] == [OK, RESOURCE]
    assert [cmsis.lib.osMutexAcquire(recursive, 0) for _ in range(2)] == [OK, OK]
    assert cmsis.lib.osMutexGetOwner(recursive) == cmsis.lib.osThreadGetId()
    with cmsis.fakes.as_thread(2):
        assert cmsis.lib.osMutexRelease(plain) == RESOURCE
        assert cmsis.lib.osMutexAcquire(plain, 0) == RESOURCE
        assert cmsis.lib.osMutexAcquire(plain, 100) == TIMEOUT
    assert [cmsis.lib.osMutexRelease(recursive) for _ in range(3)] == [OK, OK, RESOURCE]
    assert cmsis.lib.osMutexDelete(plain) == OK
    assert cmsis.lib.osMutexAcquire(plain, 0) == PARAMETER
    assert cmsis.lib.osMutexAcquire(cmsis.ffi.NULL, 0) == PARAMETER


def test_interrupts_get_an_error(cmsis: Adapter[CmsisFakes]) -> None:
    held = mutex(cmsis)
    with cmsis.fakes.interrupt():
        assert cmsis.lib.osMutexAcquire(held, 0) == ISR
        assert cmsis.lib.osMutexRelease(held) == ISR
        assert cmsis.lib.osMutexDelete(held) == ISR
        assert cmsis.lib.osDelay(1) == ISR
        assert mutex(cmsis) == cmsis.ffi.NULL
        assert cmsis.lib.osKernelLock() == ISR


def test_threads_exclude_each_other(cmsis: Adapter[CmsisFakes]) -> None:
    held = mutex(cmsis)
    inside: list[str] = []

    def work() -> None:
        for _ in range(20):
            assert cmsis.lib.osMutexAcquire(held, FOREVER) == OK
            inside.append("in")
            cmsis.lib.osDelay(2)
            inside.append("out")
            cmsis.lib.osMutexRelease(held)

    cmsis.fakes.run(work, work)
    assert inside == ["in", "out"] * 40


def test_deleting_wakes_who_waits(cmsis: Adapter[CmsisFakes]) -> None:
    held = mutex(cmsis)
    cmsis.lib.osMutexAcquire(held, 0)

    def delete() -> int:
        cmsis.lib.osDelay(5)
        return int(cmsis.lib.osMutexDelete(held))

    assert cmsis.fakes.run(lambda: cmsis.lib.osMutexAcquire(held, FOREVER), delete) == [RESOURCE, OK]


def test_the_kernel_can_be_locked(cmsis: Adapter[CmsisFakes]) -> None:
    assert cmsis.lib.osKernelLock() == 0
    assert cmsis.lib.osKernelLock() == 1
    with pytest.raises(MisuseError, match="osDelay waits while the kernel is locked"):
        cmsis.lib.osDelay(1)
    assert cmsis.lib.osKernelRestoreLock(1) == 1
    assert cmsis.lib.osKernelUnlock() == 1
    assert cmsis.lib.osKernelUnlock() == 0
    assert cmsis.lib.osDelay(1) == OK


def test_semaphores(cmsis: Adapter[CmsisFakes]) -> None:
    made = cmsis.lib.osSemaphoreNew(2, 1, cmsis.ffi.NULL)
    assert cmsis.lib.osSemaphoreAcquire(made, 0) == OK
    assert cmsis.lib.osSemaphoreAcquire(made, 0) == RESOURCE
    assert cmsis.lib.osSemaphoreAcquire(made, 10) == TIMEOUT
    cmsis.fakes.at_ms(5, lambda: cmsis.lib.osSemaphoreRelease(made))
    assert cmsis.lib.osSemaphoreAcquire(made, 10) == OK
    assert [cmsis.lib.osSemaphoreRelease(made) for _ in range(3)] == [OK, OK, RESOURCE]
    assert cmsis.lib.osSemaphoreGetCount(made) == 2
    assert cmsis.lib.osSemaphoreNew(1, 2, cmsis.ffi.NULL) == cmsis.ffi.NULL
    assert cmsis.lib.osSemaphoreDelete(made) == OK


def test_event_flags(cmsis: Adapter[CmsisFakes]) -> None:
    lib = cmsis.lib
    made = lib.osEventFlagsNew(cmsis.ffi.NULL)
    assert lib.osEventFlagsWait(made, 1, lib.osFlagsWaitAny, 0) == lib.osFlagsErrorResource
    assert lib.osEventFlagsWait(made, 1, lib.osFlagsWaitAny, 7) == lib.osFlagsErrorTimeout
    cmsis.fakes.at_ms(5, lambda: lib.osEventFlagsSet(made, 6))
    assert lib.osEventFlagsWait(made, 3, lib.osFlagsWaitAny, 10) == 6
    assert lib.osEventFlagsGet(made) == 4
    assert lib.osEventFlagsWait(made, 5, lib.osFlagsWaitAll, 0) == lib.osFlagsErrorResource
    lib.osEventFlagsSet(made, 1)
    assert lib.osEventFlagsWait(made, 5, lib.osFlagsWaitAll | lib.osFlagsNoClear, 0) == 5
    assert lib.osEventFlagsClear(made, 4) == 5
    assert lib.osEventFlagsGet(made) == 1
    assert lib.osEventFlagsSet(cmsis.ffi.NULL, 1) == lib.osFlagsErrorParameter
    assert lib.osEventFlagsDelete(made) == OK


def start(cmsis: Adapter[CmsisFakes], events: list[int]) -> CData:
    """Start USART0 and return its access struct; its events are appended to `events`."""
    usart = cmsis.fakes.access(0)
    callback = cmsis.callback("void (uint32_t event)", events.append)
    assert usart.Initialize(callback) == OK
    assert usart.PowerControl(cmsis.lib.ARM_POWER_FULL) == OK
    assert usart.Control(cmsis.lib.ARM_USART_MODE_ASYNCHRONOUS, 9600) == OK
    assert usart.Control(cmsis.lib.ARM_USART_CONTROL_TX, 1) == OK
    assert usart.Control(cmsis.lib.ARM_USART_CONTROL_RX, 1) == OK
    return usart


def test_the_order_of_a_usarts_calls(cmsis: Adapter[CmsisFakes]) -> None:
    lib, usart = cmsis.lib, cmsis.fakes.access(1)
    data = cmsis.ffi.new("char[4]", b"abc")
    assert usart.PowerControl(lib.ARM_POWER_FULL) == ERROR
    assert usart.Initialize(cmsis.ffi.NULL) == OK
    assert usart.Send(data, 3) == ERROR
    assert usart.Control(lib.ARM_USART_MODE_ASYNCHRONOUS, 9600) == ERROR
    assert usart.PowerControl(lib.ARM_POWER_LOW) == -4
    assert usart.PowerControl(lib.ARM_POWER_FULL) == OK
    assert usart.Send(data, 3) == ERROR
    assert usart.Control(lib.ARM_USART_MODE_ASYNCHRONOUS | lib.ARM_USART_DATA_BITS_7, 9600) < -6
    assert usart.Control(lib.ARM_USART_MODE_IRDA, 9600) == lib.ARM_USART_ERROR_MODE
    assert usart.Control(lib.ARM_USART_MODE_ASYNCHRONOUS, 0) == lib.ARM_USART_ERROR_BAUDRATE
    assert usart.Control(lib.ARM_USART_MODE_ASYNCHRONOUS, 9600) == OK
    assert usart.Send(data, 3) == ERROR
    assert usart.Control(lib.ARM_USART_CONTROL_TX, 1) == OK
    assert usart.Send(data, 3) == OK
    assert usart.Send(data, 3) == BUSY
    assert usart.Send(cmsis.ffi.NULL, 3) == WRONG
    assert usart.PowerControl(lib.ARM_POWER_OFF) == OK
    assert usart.Uninitialize() == OK
    assert cmsis.fakes.trace.startswith("on=-1 init send=-1 ctl=-1 low=-4 on send=-1 ctl=-9 ctl=-7")


def test_a_sent_message_takes_its_time(cmsis: Adapter[CmsisFakes]) -> None:
    events: list[int] = []
    wire = cmsis.fakes.usart(0)
    usart = start(cmsis, events)
    data = cmsis.ffi.new("char[]", b"hello world!")
    assert usart.Send(data, 12) == OK
    assert usart.GetTxCount() == 0
    assert wire.received == b""
    cmsis.lib.osDelay(6)
    assert usart.GetTxCount() == 5
    assert events == []
    cmsis.lib.osDelay(7)
    assert (wire.received, events, usart.GetTxCount()) == (b"hello world!", [1], 12)


def test_a_sending_can_be_aborted(cmsis: Adapter[CmsisFakes]) -> None:
    events: list[int] = []
    wire = cmsis.fakes.usart(0)
    usart = start(cmsis, events)
    data = cmsis.ffi.new("char[]", b"hello world!")
    usart.Send(data, 12)
    cmsis.lib.osDelay(6)
    assert usart.Control(cmsis.lib.ARM_USART_ABORT_SEND, 0) == OK
    cmsis.lib.osDelay(20)
    assert (wire.received, events, usart.GetTxCount()) == (b"hello", [], 5)


def test_what_arrives(cmsis: Adapter[CmsisFakes]) -> None:
    events: list[int] = []
    wire = cmsis.fakes.usart(0)
    usart = start(cmsis, events)
    data = cmsis.ffi.new("char[8]")
    assert usart.Receive(data, 4) == OK
    assert usart.Receive(data, 4) == BUSY
    wire.send(b"ab")
    assert (usart.GetRxCount(), events) == (2, [])
    wire.send(b"cd")
    assert (cmsis.ffi.string(data), events) == (b"abcd", [2])
    wire.send(b"e")
    assert events == [2, cmsis.lib.ARM_USART_EVENT_RX_OVERFLOW]
    usart.Receive(data, 1)
    assert usart.Control(cmsis.lib.ARM_USART_ABORT_RECEIVE, 0) == OK
    wire.send(b"f", after_ms=3)
    cmsis.lib.osDelay(5)
    assert len(events) == 3
    cmsis.fakes.signal(0, cmsis.lib.ARM_USART_EVENT_RX_BREAK)
    assert events[-1] == cmsis.lib.ARM_USART_EVENT_RX_BREAK


def test_a_peer_answers(cmsis: Adapter[CmsisFakes]) -> None:
    events: list[int] = []
    wire = cmsis.fakes.usart(0)
    wire.answer_with(bytes.upper, after_ms=2)
    usart = start(cmsis, events)
    data = cmsis.ffi.new("char[8]", b"ping")
    usart.Receive(data + 4, 4)
    usart.Send(data, 4)
    cmsis.lib.osDelay(5)
    assert events == [1]
    cmsis.lib.osDelay(4)
    assert (cmsis.ffi.buffer(data)[:], events) == (b"pingPING", [1, 2])


def test_scripted_usarts(cmsis: Adapter[CmsisFakes]) -> None:
    usart = start(cmsis, [])
    cmsis.fakes.fail("Send", result=-1, on=cmsis.fakes.access(0))
    data = cmsis.ffi.new("char[8]")
    assert [usart.Send(data, 1) for _ in range(2)] == [ERROR, OK]
    with pytest.raises(FerruleError, match="USARTs 0 to 3"):
        cmsis.fakes.usart(4)
