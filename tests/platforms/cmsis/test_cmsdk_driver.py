# SPDX-License-Identifier: Apache-2.0
"""The CMSIS-Driver of the CMSDK UART, on a model of its registers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from cmsdk_uart import Bench, CmsdkUart
from hypothesis import given, settings
from hypothesis import strategies as st

OK, ERROR, BUSY, UNSUPPORTED, PARAMETER = 0, -1, -2, -4, -5
MODE_ERROR, BAUD_ERROR, DATA_ERROR, PARITY_ERROR, STOP_ERROR, FLOW_ERROR = -7, -8, -9, -10, -11, -12
OFF, LOW, FULL = 0, 1, 2
ASYNCHRONOUS, TX, RX, ABORT_SEND, ABORT_RECEIVE = 0x01, 0x15, 0x16, 0x18, 0x19
SENT, RECEIVED, OVERFLOW = 1, 2, 32
TX_BUSY, RX_BUSY, RX_OVERFLOW = 1, 2, 8


class Bed:
    """A driver instance with its UART, started as far as a test requires."""

    def __init__(self, bench: Bench, number: int = 0) -> None:
        self.bench = bench
        self.lib = bench.machine.lib
        self.ffi = bench.machine.ffi
        self.number = number
        self.driver = self.lib.cmsdk_driver(number)
        self.uart: CmsdkUart = bench.uart(number)
        self.events: list[int] = []
        self.on_event: Callable[[int], None] = lambda _event: None
        self._signal = bench.machine.callback("void (uint32_t)", self._note)
        self._kept: list[Any] = []

    def _note(self, event: int) -> None:
        self.events.append(event)
        self.on_event(event)

    def up(self, *, tx: bool = True, rx: bool = True) -> Bed:
        assert self.driver.Initialize(self._signal) == OK
        assert self.driver.PowerControl(FULL) == OK
        assert self.driver.Control(ASYNCHRONOUS, 115_200) == OK
        assert self.driver.Control(TX, int(tx)) == OK
        assert self.driver.Control(RX, int(rx)) == OK
        return self

    def initialise(self) -> int:
        return int(self.driver.Initialize(self._signal))

    def send(self, data: bytes) -> int:
        self._kept.append(self.ffi.new("uint8_t[]", data))
        return int(self.driver.Send(self._kept[-1], len(data)))

    def receive(self, count: int) -> Any:  # noqa: ANN401 cffi is not typed
        buffer = self.ffi.new("uint8_t[]", count)
        self._kept.append(buffer)
        assert self.driver.Receive(buffer, count) == OK
        return buffer

    def arrive(self, data: bytes) -> None:
        for byte in data:
            self.uart.receive(byte)
            self.uart.settle()

    @property
    def status(self) -> int:
        return int(self.lib.cmsdk_status(self.number))


@pytest.fixture(params=[0, 1])
def bed(request: pytest.FixtureRequest, bench: Bench) -> Bed:
    return Bed(bench, int(request.param))


def test_what_it_says_of_itself(bed: Bed) -> None:
    assert bed.lib.cmsdk_api(bed.number) == 0x204
    assert bed.lib.cmsdk_capabilities(bed.number) == 1  # asynchronous mode only
    assert bed.lib.cmsdk_modem(bed.number) == 0
    assert bed.driver.SetModemControl(0) == UNSUPPORTED


def test_it_is_strict(bed: Bed) -> None:
    driver, byte = bed.driver, bed.ffi.new("uint8_t *")
    assert driver.PowerControl(FULL) == ERROR
    assert driver.Control(ASYNCHRONOUS, 115_200) == ERROR
    assert bed.initialise() == OK
    assert driver.Control(ASYNCHRONOUS, 115_200) == ERROR
    assert driver.PowerControl(LOW) == UNSUPPORTED
    assert driver.PowerControl(FULL) == OK
    assert (driver.Send(byte, 1), driver.Receive(byte, 1)) == (ERROR, ERROR)
    assert driver.Control(TX, 1) == OK
    assert driver.Send(byte, 1) == ERROR  # no mode is set
    assert driver.Control(TX, 0) == OK
    assert driver.Control(ASYNCHRONOUS, 115_200) == OK
    assert (driver.Send(byte, 1), driver.Receive(byte, 1)) == (ERROR, ERROR)
    assert driver.Control(TX, 1) == OK
    assert driver.Control(RX, 1) == OK
    assert (driver.Send(byte, 1), driver.Receive(byte, 1)) == (OK, OK)


def test_initialize_and_power_twice_are_once(bed: Bed) -> None:
    bed.up()
    assert bed.initialise() == OK
    assert bed.driver.PowerControl(FULL) == OK
    assert bed.send(b"x") == OK  # still configured


def test_the_interrupts_leave_room_for_the_kernels(bed: Bed) -> None:
    bed.up()
    for line in bed.bench.lines[bed.number]:
        assert bed.lib.cmsdk_line(line).enabled == 1
        assert bed.lib.cmsdk_line(line).priority == 6  # on a scale of 0 to 7


@pytest.mark.parametrize(("baud", "code"), [(0, BAUD_ERROR), (10, BAUD_ERROR), (2_000_000, BAUD_ERROR), (100, OK)])
def test_speeds(bed: Bed, baud: int, code: int) -> None:
    assert bed.initialise() == OK
    assert bed.driver.PowerControl(FULL) == OK
    assert bed.driver.Control(ASYNCHRONOUS, baud) == code


def test_the_divider(bed: Bed) -> None:
    bed.up()
    assert bed.uart.divider == (25_000_000, 20_000_000)[bed.number] // 115_200


@pytest.mark.parametrize(
    ("control", "code"),
    [
        (ASYNCHRONOUS | 1 << 8, DATA_ERROR),
        (ASYNCHRONOUS | 1 << 12, PARITY_ERROR),
        (ASYNCHRONOUS | 1 << 14, STOP_ERROR),
        (ASYNCHRONOUS | 3 << 16, FLOW_ERROR),
        (0x02, MODE_ERROR),
        (0x06, MODE_ERROR),
        (0x00, UNSUPPORTED),
        (0x07, UNSUPPORTED),
        (0x17, UNSUPPORTED),
        (0x1A, UNSUPPORTED),
    ],
)
def test_what_it_lacks(bed: Bed, control: int, code: int) -> None:
    bed.up()
    assert bed.driver.Control(control, 115_200) == code


def test_bad_arguments(bed: Bed) -> None:
    bed.up()
    null, byte = bed.ffi.NULL, bed.ffi.new("uint8_t *")
    assert [bed.driver.Send(null, 1), bed.driver.Send(byte, 0)] == [PARAMETER] * 2
    assert [bed.driver.Receive(null, 1), bed.driver.Receive(byte, 0)] == [PARAMETER] * 2
    assert bed.driver.Transfer(byte, byte, 1) == UNSUPPORTED


def test_sending(bed: Bed) -> None:
    bed.up()
    assert bed.send(b"hello") == OK
    assert bed.status == TX_BUSY
    assert bed.send(b"more") == BUSY
    assert bed.driver.Control(ASYNCHRONOUS, 9600) == BUSY
    bed.uart.interrupt()
    assert bed.driver.GetTxCount() == 1
    bed.uart.settle()
    assert (bytes(bed.uart.sent), bed.events, bed.status) == (b"hello", [SENT], 0)
    assert bed.driver.GetTxCount() == 5
    assert bed.send(b"!") == OK
    bed.uart.settle()
    assert bytes(bed.uart.sent) == b"hello!"


def test_sending_again_from_the_callback(bed: Bed) -> None:
    bed.up()
    bed.on_event = lambda event: bed.events.append(-1) if len(bed.events) > 1 else bed.send(b"b") and None
    assert bed.send(b"a") == OK
    bed.uart.settle()
    assert bytes(bed.uart.sent) == b"ab"
    assert bed.events == [SENT, SENT, -1]


def test_an_aborted_send_ends_after_the_byte_under_way(bed: Bed) -> None:
    bed.up()
    assert bed.send(b"hello") == OK
    bed.uart.interrupt()
    assert bed.driver.Control(ABORT_SEND, 0) == OK
    assert bed.status == 0
    assert bed.send(b"xyz") == OK  # while the h is still in the transmitter
    bed.uart.interrupt()
    bed.uart.settle()
    assert bytes(bed.uart.sent) == b"hxyz"
    assert bed.events == [SENT]


def test_an_interrupt_after_an_abort_is_nothing(bed: Bed) -> None:
    bed.up()
    assert bed.send(b"hello") == OK
    bed.receive(1)
    bed.uart.interrupt()
    bed.uart.shift()
    bed.uart.receive(1)
    assert bed.driver.Control(ABORT_SEND, 0) == OK
    assert bed.driver.Control(ABORT_RECEIVE, 0) == OK
    bed.uart.settle()
    assert (bytes(bed.uart.sent), bed.events) == (b"h", [])


def test_an_interrupt_within_an_abort_is_nothing(bed: Bed) -> None:
    bed.up()
    receive_line, transmit_line = bed.bench.lines[bed.number]
    assert bed.send(b"hello") == OK
    buffer = bed.receive(1)
    bed.uart.interrupt()
    bed.uart.shift()
    bed.uart.receive(7)
    bed.lib.cmsdk_interrupt_when_unmasked(transmit_line)
    assert bed.driver.Control(ABORT_SEND, 0) == OK
    bed.lib.cmsdk_interrupt_when_unmasked(receive_line)
    assert bed.driver.Control(ABORT_RECEIVE, 0) == OK
    bed.uart.settle()
    assert (bytes(bed.uart.sent), bytes(buffer), bed.events) == (b"h", b"\0", [])


def test_receiving(bed: Bed) -> None:
    bed.up()
    buffer = bed.receive(3)
    assert bed.status == RX_BUSY
    assert bed.driver.Receive(buffer, 3) == BUSY
    assert bed.driver.Control(ASYNCHRONOUS, 9600) == BUSY
    bed.arrive(b"ab")
    assert (bed.driver.GetRxCount(), bed.events) == (2, [])
    bed.arrive(b"c")
    assert (bytes(buffer), bed.events, bed.status) == (b"abc", [RECEIVED], 0)


def test_a_byte_that_came_before_anybody_received_is_not_lost(bed: Bed) -> None:
    bed.up()
    bed.arrive(b"a")
    assert bed.events == []
    buffer = bed.receive(2)
    bed.uart.settle()
    bed.arrive(b"b")
    assert (bytes(buffer), bed.events) == (b"ab", [RECEIVED])


def test_an_overrun_is_told(bed: Bed) -> None:
    bed.up()
    bed.arrive(b"ab")  # there is no place for the second byte
    buffer = bed.receive(2)
    bed.uart.settle()
    assert bed.events == [OVERFLOW]
    assert bed.status == RX_BUSY | RX_OVERFLOW
    bed.arrive(b"c")
    assert (bytes(buffer), bed.events) == (b"ac", [OVERFLOW, RECEIVED])
    bed.receive(1)
    assert bed.status == RX_BUSY


def test_a_receiver_armed_by_its_callback(bed: Bed) -> None:
    bed.up()
    got = bytearray()
    buffer = bed.ffi.new("uint8_t *")

    def on_event(event: int) -> None:
        assert event == RECEIVED
        got.append(buffer[0])
        assert bed.driver.Receive(buffer, 1) == OK

    bed.on_event = on_event
    assert bed.driver.Receive(buffer, 1) == OK
    bed.arrive(bytes(range(100)))
    assert bytes(got) == bytes(range(100))


def test_nobody_need_listen(bed: Bed) -> None:
    assert bed.driver.Initialize(bed.ffi.NULL) == OK
    bed.driver.PowerControl(FULL)
    bed.driver.Control(ASYNCHRONOUS, 115_200)
    bed.driver.Control(TX, 1)
    assert bed.send(b"a") == OK
    bed.uart.settle()
    assert (bytes(bed.uart.sent), bed.status) == (b"a", 0)


@pytest.mark.parametrize("end", ["PowerControl", "Uninitialize"])
def test_power_off_stops_everything(bed: Bed, end: str) -> None:
    bed.up()
    bed.receive(1)
    assert bed.send(b"hello") == OK
    bed.uart.interrupt()
    assert (bed.driver.PowerControl(OFF) if end == "PowerControl" else bed.driver.Uninitialize()) == OK
    assert (bed.status, bed.uart.ctrl) == (0, 0)
    assert not any(bed.lib.cmsdk_line(line).enabled for line in bed.bench.lines[bed.number])
    bed.uart.settle()
    assert bed.events == []
    assert bed.driver.PowerControl(OFF) == OK
    assert bed.driver.Uninitialize() == OK
    assert bed.driver.PowerControl(FULL) == ERROR
    bed.up()
    assert (bed.driver.GetTxCount(), bed.driver.GetRxCount()) == (0, 0)
    assert bed.send(b"again") == OK


def test_the_instances_do_not_know_each_other(bench: Bench) -> None:
    first, second = Bed(bench, 0).up(), Bed(bench, 1).up()
    assert first.send(b"first") == OK
    assert second.send(b"second") == OK
    first.uart.settle()
    second.uart.settle()
    assert (bytes(first.uart.sent), bytes(second.uart.sent)) == (b"first", b"second")


@settings(max_examples=60)
@given(data=st.binary(min_size=1, max_size=20), out=st.binary(min_size=1, max_size=20), seed=st.integers(0, 2**16))
def test_bytes_cross_each_other(bench: Bench, data: bytes, out: bytes, seed: int) -> None:
    order = random.Random(seed)
    bed = Bed(bench).up()
    buffer = bed.receive(len(data))
    assert bed.send(out) == OK
    waiting = list(data)
    while waiting or bed.status:
        step = order.randrange(3)
        if step == 0 and waiting and bed.uart.received is None:
            bed.uart.receive(waiting.pop(0))
        elif step == 1 and bed.uart.sending is not None:
            bed.uart.shift()
        else:
            bed.uart.interrupt()
    assert (bytes(buffer), bytes(bed.uart.sent), sorted(bed.events)) == (data, out, [SENT, RECEIVED])
    assert bed.driver.Uninitialize() == OK
    bench.reset()


def test_an_interrupt_for_nothing_is_nothing(bed: Bed) -> None:
    bed.up()
    buffer = bed.receive(1)
    bed.lib.cmsdk_handle(bed.bench.lines[bed.number][0])
    assert (bed.events, bed.status) == ([], RX_BUSY)
    bed.arrive(b"a")
    assert (bytes(buffer), bed.events) == (b"a", [RECEIVED])


def test_a_direction_that_is_switched_off(bed: Bed) -> None:
    bed.up()
    assert bed.driver.Control(RX, 0) == OK
    assert bed.driver.Receive(bed.ffi.new("uint8_t *"), 1) == ERROR
    assert bed.send(b"x") == OK
