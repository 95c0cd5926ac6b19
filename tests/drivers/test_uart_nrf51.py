# SPDX-License-Identifier: Apache-2.0
"""The driver of the nRF51's UART, tested on a model of its registers."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, CData, Fakes

pytestmark = pytest.mark.cc
DRIVER = "uart_nrf51"
BASE = 0x4000_2000
OK, ARGUMENT = 0, -1
TABLE = RegisterTable(
    name="UART",
    registers=(
        Register("STARTRX", 0x000, access=Access.WRITE_ONLY),
        Register("STARTTX", 0x008, access=Access.WRITE_ONLY),
        Register("RXDRDY", 0x108),
        Register("TXDRDY", 0x11C, reset=1),
        Register("ENABLE", 0x500),
        Register("RXD", 0x518, access=Access.READ_ONLY),
        Register("TXD", 0x51C),
        Register("BAUDRATE", 0x524, reset=0x0400_0000),
        Register("CONFIG", 0x56C, reset=0x1F),
    ),
)


class Uart(RegisterModel):
    """Shifts each byte out in some cycles, and receives the bytes of `input`."""

    table = TABLE

    def __init__(self, cycles: int = 3) -> None:
        super().__init__()
        self.sent = bytearray()
        self.input = bytearray()
        self.started: list[str] = []
        self._cycles, self._left = cycles, 0
        self.reset()

    @override
    def on_read(self, register: Register) -> int:
        if register.name == "RXDRDY":
            return 1 if self.input else 0
        if register.name == "RXD":
            assert self.input, "nothing was received"
            return self.input.pop(0) | 0x100
        return super().on_read(register)

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name.startswith("START"):
            assert self.value("ENABLE") == 4
            self.started.append(register.name)
        elif register.name == "TXD":
            assert self._left == 0, "a byte overwrites one that is still being sent"
            assert not self.value("TXDRDY"), "the event is still that of the previous byte"
            self.sent.append(new)
            self._left = self._cycles
        elif register.name in {"BAUDRATE", "CONFIG"}:
            assert not self.value("ENABLE"), "the UART is on"

    @override
    def advance(self, cycles: int) -> None:
        if self._left > 0:
            self._left = max(0, self._left - cycles)
            if self._left == 0:
                self._values["TXDRDY"] = 1


def config(driver: Adapter[Fakes], baud: int = 115_200) -> CData:
    return driver.new("struct ferrule_uart_nrf51_config *", {"base": BASE, "baud": baud})


@pytest.mark.parametrize(
    ("baud", "value"),
    [
        (0, 0x1000_0000),
        (1_000_000, 0x1000_0000),
        (921_600, 0x0EBE_E000),
        (115_200, 0x01D7_E000),
        (9600, 0x0027_5000),
        (1, None),
        (1_000_001, None),
        (0xFFFF_FFFF, None),
    ],
)
def test_speeds(driver: Adapter[Fakes], baud: int, value: int | None) -> None:
    uart = Uart()
    window = driver.attach(BASE, uart)
    status = driver.lib.ferrule_uart_nrf51_init(config(driver, baud))
    if value is None:
        assert (status, window.trace) == (ARGUMENT, [])
        return
    assert status == OK
    assert {name: uart.value(name) for name in ("BAUDRATE", "CONFIG", "ENABLE")} == {
        "BAUDRATE": value,
        "CONFIG": 0,
        "ENABLE": 4,
    }
    assert uart.started == ["STARTRX", "STARTTX"]


def test_no_configuration(driver: Adapter[Fakes]) -> None:
    assert driver.lib.ferrule_uart_nrf51_init(driver.ffi.NULL) == ARGUMENT


def test_bytes_both_ways(driver: Adapter[Fakes]) -> None:
    model = Uart()
    window = driver.attach(BASE, model)
    uart = config(driver)
    assert driver.lib.ferrule_uart_nrf51_init(uart) == OK
    assert driver.lib.ferrule_uart_nrf51_read(uart) == -1
    model.input += b"\x00\xff"
    assert [driver.lib.ferrule_uart_nrf51_read(uart) for _ in range(3)] == [0, 255, -1]
    for byte in b"ab":
        assert driver.lib.ferrule_uart_nrf51_can_write(uart)
        driver.lib.ferrule_uart_nrf51_write(uart, byte)
    assert model.sent == b"ab"
    assert "TXDRDY -> 0x0" in window.trace
