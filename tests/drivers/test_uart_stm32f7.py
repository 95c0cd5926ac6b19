# SPDX-License-Identifier: Apache-2.0
"""The driver of the newer STM32s' USART, tested on a model of its registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, CData, Fakes

pytestmark = pytest.mark.cc
BASE = 0x4000_4400
OK, ARGUMENT = 0, -1
RX_FULL, TX_EMPTY = 1 << 5, 1 << 7
ON = 1 << 3 | 1 << 2 | 1 << 0
NO_OVERRUN = 1 << 12
TABLE = RegisterTable(
    name="USART",
    registers=(
        Register(name="CR1", offset=0x00, reset=0x1),
        Register(name="CR2", offset=0x04, reset=0x3000),
        Register(name="CR3", offset=0x08, reset=0x300),
        Register(name="BRR", offset=0x0C),
        Register(name="ISR", offset=0x1C, access=Access.READ_ONLY, reset=0xC0),
        Register(name="RDR", offset=0x24, access=Access.READ_ONLY),
        Register(name="TDR", offset=0x28),
    ),
)


class Usart(RegisterModel):
    """Shifts each byte out in some cycles, and receives the bytes of `input`."""

    table = TABLE

    def __init__(self, cycles: int = 3) -> None:
        super().__init__()
        self.sent = bytearray()
        self.input = bytearray()
        self._cycles, self._left = cycles, 0
        self.reset()

    @override
    def on_read(self, register: Register) -> int:
        if register.name == "ISR":
            return (TX_EMPTY if self._left <= 0 else 0) | (RX_FULL if self.input else 0)
        if register.name == "RDR":
            return self.input.pop(0) | 0x100  # the driver must ignore the ninth bit
        return super().on_read(register)

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name in {"BRR", "CR2", "CR3"}:
            assert not self.value("CR1") & 1, "the USART is on"
        if register.name == "TDR":
            assert self._left <= 0, "a byte overwrites one that is still being sent"
            assert self.value("CR1") == ON, "the transmitter is off"
            self.sent.append(new)
            self._left = self._cycles

    @override
    def advance(self, cycles: int) -> None:
        self._left -= cycles


@pytest.fixture(scope="module")
def built(build_uart: Callable[[str], Adapter[Fakes]]) -> Adapter[Fakes]:
    return build_uart("uart_stm32f7")


@pytest.fixture
def driver(built: Adapter[Fakes]) -> Adapter[Fakes]:
    built.reset()
    return built


def config(driver: Adapter[Fakes], clock_hz: int = 16_000_000, baud: int = 115_200) -> CData:
    return driver.new("struct ferrule_uart_stm32f7_config *", {"base": BASE, "clock_hz": clock_hz, "baud": baud})


@pytest.mark.parametrize(
    ("clock_hz", "baud", "divider"),
    [
        (16_000_000, 115_200, 139),
        (42_000_000, 115_200, 365),
        (84_000_000, 9600, 8750),
        (16_000_000, 1_000_000, 16),
        (16_000_000, 0, 16),
        (31, 2, 16),  # 15.5 rounds to 16, the smallest divider
        (1 << 16, 1, None),
        (30, 2, None),
        (16_000_000, 2_000_000, None),
        (0xFFFF_FFFF, 0xFFFF_FFFF, None),
    ],
)
def test_speeds(driver: Adapter[Fakes], clock_hz: int, baud: int, divider: int | None) -> None:
    usart = Usart()
    window = driver.attach(BASE, usart)
    status = driver.lib.ferrule_uart_stm32f7_init(config(driver, clock_hz, baud))
    if divider is None:
        assert (status, window.trace) == (ARGUMENT, [])
        return
    assert status == OK
    assert {name: usart.value(name) for name in ("BRR", "CR1", "CR2", "CR3")} == {
        "BRR": divider,
        "CR1": ON,
        "CR2": 0,
        "CR3": NO_OVERRUN,
    }
    assert window.trace[-1] == f"CR1 <- {ON:#x}"


def test_no_configuration(driver: Adapter[Fakes]) -> None:
    assert driver.lib.ferrule_uart_stm32f7_init(driver.ffi.NULL) == ARGUMENT


def test_bytes_both_ways(driver: Adapter[Fakes]) -> None:
    usart = Usart()
    window = driver.attach(BASE, usart)
    uart = config(driver)
    assert driver.lib.ferrule_uart_stm32f7_init(uart) == OK
    assert driver.lib.ferrule_uart_stm32f7_read(uart) == -1
    usart.input += b"\x00\xff"
    assert [driver.lib.ferrule_uart_stm32f7_read(uart) for _ in range(3)] == [0, 255, -1]
    assert driver.lib.ferrule_uart_stm32f7_can_write(uart)
    for byte in b"ab":
        driver.lib.ferrule_uart_stm32f7_write(uart, byte)
        assert not driver.lib.ferrule_uart_stm32f7_can_write(uart)
    assert usart.sent == b"ab"
    assert "ISR -> 0x0" in window.trace
