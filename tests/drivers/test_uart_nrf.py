# SPDX-License-Identifier: Apache-2.0
"""The driver of the nRF52's UARTE, tested on a model of its registers and its DMA."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, CData, Fakes

pytestmark = pytest.mark.cc
DRIVER = "uart_nrf"
BASE = 0x4000_2000
OK, ARGUMENT = 0, -1
TABLE = RegisterTable(
    name="UARTE",
    registers=(
        Register("STARTRX", 0x000, access=Access.WRITE_ONLY),
        Register("STARTTX", 0x008, access=Access.WRITE_ONLY),
        Register("ENDRX", 0x110),
        Register("ENDTX", 0x120),
        Register("SHORTS", 0x200, reset=0x20),
        Register("ENABLE", 0x500),
        Register("BAUDRATE", 0x524, reset=0x0400_0000),
        Register("RXD_PTR", 0x534),
        Register("RXD_MAXCNT", 0x538),
        Register("TXD_PTR", 0x544),
        Register("TXD_MAXCNT", 0x548),
        Register("CONFIG", 0x56C, reset=0x1F),
    ),
)


class Uarte(RegisterModel):
    """Sends a buffer after some cycles, and receives a byte of `input` into the buffer that was set at the start."""

    table = TABLE

    def __init__(self, cycles: int = 3) -> None:
        super().__init__()
        self.sent = bytearray()
        self.input = bytearray()
        self._cycles, self._left = cycles, 0
        self._receives = False
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        on = self.value("ENABLE") == 8
        if register.name == "STARTRX":
            assert on
            self._receives = True
        elif register.name == "STARTTX":
            assert on
            assert self._left == 0, "a transmission starts before the previous one has ended"
            self._left = self._cycles
        elif register.name not in ("ENDRX", "ENDTX", "ENABLE"):
            assert not on, f"{register.name} is changed while the UARTE is on"

    @override
    def advance(self, cycles: int) -> None:
        if self._left > 0:
            self._left = max(0, self._left - cycles)
            if self._left == 0:
                self.sent += self.bus.read(self.value("TXD_PTR"), self.value("TXD_MAXCNT"))
                self._values["ENDTX"] = 1
        if self._receives and self.input:
            self.bus.write(self.value("RXD_PTR"), bytes([self.input.pop(0)]))
            self._values["ENDRX"] = self.value("RXD_MAXCNT")
            self._receives = False

    @override
    def next_event(self) -> int | None:
        return self._left or None


def config(driver: Adapter[Fakes], baud: int = 115_200) -> tuple[CData, CData]:
    """Return a configuration and its buffer, which the caller must keep alive."""
    buffer = driver.new("struct ferrule_uart_nrf_buffer *")
    driver.share(buffer)
    return driver.new("struct ferrule_uart_nrf_config *", {"base": BASE, "buffer": buffer, "baud": baud}), buffer


@pytest.mark.parametrize(
    ("baud", "value"),
    [
        (0, 0x1000_0000),
        (1_000_000, 0x1000_0000),
        (921_600, 0x0F00_0000),
        (460_800, 0x0740_0000),
        (230_400, 0x03B0_0000),
        (115_200, 0x01D6_0000),
        (57_600, 0x00EB_0000),
        (38_400, 0x009D_0000),
        (19_200, 0x004E_A000),
        (9600, 0x0027_5000),
        (115_201, None),
        (300, None),
    ],
)
def test_speeds(driver: Adapter[Fakes], baud: int, value: int | None) -> None:
    uarte = Uarte()
    window = driver.attach(BASE, uarte)
    uart, buffer = config(driver, baud)
    status = driver.lib.ferrule_uart_nrf_init(uart)
    if value is None:
        assert (status, window.trace) == (ARGUMENT, [])
        return
    assert status == OK
    assert buffer is not None
    assert [uarte.value(name) for name in ("BAUDRATE", "CONFIG", "SHORTS", "ENABLE")] == [value, 0, 0, 8]
    assert window.trace[-2:] == ["ENABLE <- 0x8", "STARTRX <- 0x1"]


def test_no_configuration(driver: Adapter[Fakes]) -> None:
    assert driver.lib.ferrule_uart_nrf_init(driver.ffi.NULL) == ARGUMENT
    assert driver.lib.ferrule_uart_nrf_init(driver.new("struct ferrule_uart_nrf_config *", {"base": BASE})) == ARGUMENT


def test_bytes_both_ways(driver: Adapter[Fakes]) -> None:
    uarte = Uarte()
    window = driver.attach(BASE, uarte)
    uart, buffer = config(driver)
    assert driver.lib.ferrule_uart_nrf_init(uart) == OK
    assert driver.lib.ferrule_uart_nrf_read(uart) == -1
    uarte.input += b"\x00\xff"
    received = [driver.lib.ferrule_uart_nrf_read(uart) for _ in range(6)]
    assert [byte for byte in received if byte >= 0] == [0, 255]
    for byte in b"ab":
        assert driver.lib.ferrule_uart_nrf_can_write(uart)
        driver.lib.ferrule_uart_nrf_write(uart, byte)
        assert not driver.lib.ferrule_uart_nrf_can_write(uart)
        while not driver.lib.ferrule_uart_nrf_can_write(uart):
            pass
    driver.lib.ferrule_uart_nrf_write(uart, ord("c"))
    driver.lib.ferrule_uart_nrf_write(uart, ord("d"))  # waits for the previous byte
    assert uarte.sent == b"abc"
    assert buffer.sent == ord("d")
    assert "ENDTX -> 0x0" in window.trace
