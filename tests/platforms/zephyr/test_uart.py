# SPDX-License-Identifier: Apache-2.0
"""Transport and link port on a Zephyr UART, by interrupts and by polling."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

import pytest
from zephyr_bench import ARGUMENT, DEVICE, OK, TIMEOUT, UNAVAILABLE, UNSUPPORTED, built

from ferrule.testing import Adapter, Wire, ZephyrFakes

pytestmark = pytest.mark.cc
RX_BYTES = 64
TX_BYTES = 64


@dataclass(slots=True, kw_only=True)
class Ends:
    """A transport and a link port on the same UART, and the far end of its wire."""

    adapter: Adapter[ZephyrFakes]
    uart: Any
    transport: Any
    port: Any
    wire: Wire
    polls: bool

    @property
    def fakes(self) -> ZephyrFakes:
        return self.adapter.fakes

    @property
    def device(self) -> object:
        return self.fakes.device("uart1")

    def start(self) -> int:
        lib = self.adapter.lib
        return int(lib.ferrule_zephyr_uart_transport(self.uart, self.device, self.transport))

    def start_link(self) -> int:
        return int(self.adapter.lib.ferrule_zephyr_uart_link(self.uart, self.device, self.port))

    def write(self, data: bytes, timeout_ms: int = 100) -> int:
        status = int(self.transport.write(self.transport.context, data, len(data), timeout_ms))
        self.fakes.check()
        return status

    def read(self, count: int, timeout_ms: int = 100) -> tuple[int, bytes]:
        """Return the status and the received bytes."""
        buffer = self.adapter.ffi.new("uint8_t[]", max(count, 1))
        received = self.adapter.ffi.new("size_t *")
        status = int(self.transport.read(self.transport.context, buffer, count, timeout_ms, received))
        self.fakes.check()
        return status, bytes(self.adapter.ffi.buffer(buffer, received[0]))


def ends_of(*, polls: bool) -> Ends:
    adapter = built("CONFIG_FERRULE_UART_POLLING") if polls else built()
    adapter.fakes.reset()
    new = adapter.ffi.new
    return Ends(
        adapter=adapter,
        uart=new("struct ferrule_zephyr_uart *"),
        transport=new("struct ferrule_transport *"),
        port=new("struct ferrule_link_port *"),
        wire=adapter.fakes.uart("uart1"),
        polls=polls,
    )


@pytest.fixture(params=["interrupt", "polling"])
def ends(request: pytest.FixtureRequest) -> Ends:
    return ends_of(polls=request.param == "polling")


@pytest.fixture
def by_interrupt() -> Ends:
    return ends_of(polls=False)


@pytest.fixture
def by_polling() -> Ends:
    return ends_of(polls=True)


def test_start_says_what_is_wrong(ends: Ends) -> None:
    lib, null = ends.adapter.lib, ends.adapter.ffi.NULL
    for arguments in ((null, ends.device, ends.transport), (ends.uart, null, ends.transport)):
        assert lib.ferrule_zephyr_uart_transport(*arguments) == ARGUMENT
    assert lib.ferrule_zephyr_uart_transport(ends.uart, ends.device, null) == ARGUMENT
    for arguments in ((null, ends.device, ends.port), (ends.uart, null, ends.port), (ends.uart, ends.device, null)):
        assert lib.ferrule_zephyr_uart_link(*arguments) == ARGUMENT
    ends.fakes.not_ready("uart1")
    assert ends.start() == ends.start_link() == UNAVAILABLE
    assert ends.fakes.log == ("<err> uart1 is not ready",) * 2


def test_a_uart_without_interrupts_is_refused(by_interrupt: Ends) -> None:
    for error in (errno.ENOSYS, errno.ENOTSUP):
        by_interrupt.fakes.fail("uart_irq_callback_user_data_set", result=-error)
        assert by_interrupt.start() == UNSUPPORTED
        message = f"<err> uart1 has no interrupts (error {-error}): set CONFIG_FERRULE_UART_POLLING"
        assert by_interrupt.fakes.log[-1] == message
    assert by_interrupt.start() == OK


def test_what_is_written_arrives(ends: Ends) -> None:
    assert ends.start() == OK
    data = bytes(range(256)) * 3
    assert ends.write(data, 1000) == OK
    assert ends.wire.received == data
    assert ends.write(b"") == OK
    assert ends.write(b"end") == OK
    assert ends.wire.received == data + b"end"


def test_what_arrives_is_read(ends: Ends) -> None:
    assert ends.start() == OK
    ends.wire.send(b"abcdef")
    assert ends.read(4) == (OK, b"abcd")
    assert ends.read(0) == (OK, b"")
    ends.wire.send(b"ghi", after_ms=20)
    assert ends.read(5) == (OK, b"efghi")
    for turn in range(10):  # more than once around the ring
        data = bytes(range(turn, turn + 50))
        ends.wire.send(data)
        assert ends.read(50) == (OK, data)


def test_what_came_before_the_start_is_dropped(by_interrupt: Ends) -> None:
    """Such a byte raises no further interrupt, so that a UART with a one-byte buffer would stay stuck."""
    ends = by_interrupt
    ends.wire.send(b"noise")
    assert ends.start() == OK
    ends.wire.send(b"abc")
    assert ends.read(3) == (OK, b"abc")
    ends.fakes.fail("uart_poll_in", result=0, times=None)
    assert ends.start() == OK, "a UART that is never empty must not hang"


def test_read_ends_in_time_with_what_came(ends: Ends) -> None:
    assert ends.start() == OK
    ends.wire.send(b"abc")
    ends.wire.send(b"d", after_ms=50)
    before = ends.fakes.now_us
    assert ends.read(6, 80) == (TIMEOUT, b"abcd")
    assert 80_000 <= ends.fakes.now_us - before < 83_000
    assert ends.read(1, 0) == (TIMEOUT, b"")


def test_write_ends_in_time_where_the_uart_takes_nothing(by_interrupt: Ends) -> None:
    ends = by_interrupt
    assert ends.start() == OK
    ends.fakes.fail("uart_irq_tx_enable", result=0, times=None)  # as if the line were blocked
    before = ends.fakes.now_us
    assert ends.write(b"x" * 10, 50) == TIMEOUT
    assert 50_000 <= ends.fakes.now_us - before < 52_000
    ends.fakes.forget_scripts()
    assert ends.write(b"later") == OK
    assert ends.wire.received == b"later", "what was given up must not be sent later"


def test_write_by_polling_looks_at_the_time(by_polling: Ends) -> None:
    ends = by_polling
    assert ends.start() == OK
    assert ends.write(b"abc", 0) == TIMEOUT
    assert ends.wire.received == b"a"


def test_a_hole_in_the_input_is_told_once(by_interrupt: Ends) -> None:
    ends = by_interrupt
    assert ends.start() == OK
    ends.wire.send(bytes(RX_BYTES + 1))
    assert ends.read(RX_BYTES + 1)[0] == DEVICE
    assert ends.fakes.log == ("<wrn> uart1: received bytes were lost, the buffer was full",)
    ends.wire.send(b"anew")
    assert ends.read(4) == (OK, b"anew")
    ends.wire.send(bytes(RX_BYTES))
    assert ends.read(RX_BYTES) == (OK, bytes(RX_BYTES))


@pytest.mark.parametrize(("name", "result"), [("uart_fifo_read", 0), ("uart_fifo_read", -errno.ENOSYS)])
def test_a_uart_that_says_ready_and_gives_nothing_does_not_hang(by_interrupt: Ends, name: str, result: int) -> None:
    ends = by_interrupt
    assert ends.start() == OK
    ends.fakes.fail(name, result=result)
    ends.wire.send(b"a")
    assert ends.read(1) == (OK, b"a")


def test_link_port_reads_and_writes_bytes(ends: Ends) -> None:
    assert ends.start_link() == OK
    assert ends.port.read_byte(ends.port.context) == -1
    ends.wire.send(b"\x00\xff")
    assert [ends.port.read_byte(ends.port.context) for _ in range(3)] == [0, 255, -1]
    data = bytes(range(200))
    for byte in data:
        ends.port.write_byte(ends.port.context, byte)
    ends.fakes.advance_ms(100)
    assert ends.wire.received == data


def test_link_waits_until_its_bytes_fit(by_interrupt: Ends) -> None:
    ends = by_interrupt
    assert ends.start_link() == OK
    ends.fakes.fail("uart_irq_tx_enable", result=0, times=TX_BYTES)
    data = bytes(range(TX_BYTES + 1))
    for byte in data[:-1]:
        ends.port.write_byte(ends.port.context, byte)
    assert ends.wire.received == b""
    ends.port.write_byte(ends.port.context, data[-1])
    ends.fakes.advance_ms(100)
    assert ends.wire.received == data


def test_wait_ends_when_something_comes(ends: Ends) -> None:
    wait = ends.adapter.lib.ferrule_zephyr_uart_wait
    assert ends.start_link() == OK
    assert wait(ends.uart, [0]) is False
    if not ends.polls:
        before = ends.fakes.now_us
        assert wait(ends.uart, [5000]) is False
        assert ends.fakes.now_us - before >= 5000
    ends.wire.send(b"x", after_ms=30)
    while ends.port.read_byte(ends.port.context) != ord("x"):
        assert wait(ends.uart, [-1]) is True
    assert 30_000 <= ends.fakes.now_us < 40_000


def test_link_hears_a_hole_from_nobody(by_interrupt: Ends) -> None:
    ends = by_interrupt
    assert ends.start_link() == OK
    ends.wire.send(bytes(RX_BYTES + 5))
    assert ends.port.read_byte(ends.port.context) == -1
    ends.wire.send(b"x")
    assert ends.port.read_byte(ends.port.context) == ord("x")


def test_bytes_that_come_while_bytes_are_sent(ends: Ends) -> None:
    assert ends.start() == OK
    ends.wire.answer_with(bytes.upper, after_ms=0.01)
    for turn in range(20):
        data = f"line {turn} of twenty".encode()
        assert ends.write(data) == OK
        assert ends.read(len(data)) == (OK, data.upper())
