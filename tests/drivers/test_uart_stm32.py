# SPDX-License-Identifier: Apache-2.0
"""The drivers of the STM32s' USARTs, older and newer, tested on models of their registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, CData, Fakes

pytestmark = pytest.mark.cc
BASE = 0x4000_4400
OK, ARGUMENT = 0, -1
RX_FULL, TX_EMPTY = 1 << 5, 1 << 7


class Usart(RegisterModel):
    """Shifts each byte out in some cycles, and receives the bytes of `input`."""

    driver: ClassVar[str] = "uart_stm32"
    status, received, sends = "SR", "DR", "DR"
    on: ClassVar[int] = 1 << 13 | 1 << 3 | 1 << 2
    cr3: ClassVar[int] = 0
    off_while_set: ClassVar[frozenset[str]] = frozenset()
    table = RegisterTable(
        name="USART",
        registers=(
            Register("SR", 0x00, access=Access.READ_ONLY, reset=0xC0),
            Register("DR", 0x04),
            Register("BRR", 0x08),
            Register("CR1", 0x0C),
            Register("CR2", 0x10, reset=0x3000),
            Register("CR3", 0x14, reset=0x300),
        ),
    )

    def __init__(self, cycles: int = 3) -> None:
        super().__init__()
        self.sent = bytearray()
        self.input = bytearray()
        self._cycles, self._left = cycles, 0
        self.reset()

    @override
    def on_read(self, register: Register) -> int:
        if register.name == self.status:
            return (TX_EMPTY if self._left <= 0 else 0) | (RX_FULL if self.input else 0)
        if register.name == self.received:
            return self.input.pop(0) | 0x100  # the driver must ignore the ninth bit
        return super().on_read(register)

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name in self.off_while_set:
            assert not self.value("CR1") & 1, "the USART is on"
        if register.name == self.sends:
            assert self._left <= 0, "a byte overwrites one that is still being sent"
            assert self.value("CR1") == self.on, "the transmitter is off"
            self.sent.append(new)
            self._left = self._cycles

    @override
    def advance(self, cycles: int) -> None:
        self._left -= cycles


class NewerUsart(Usart):
    """That of the STM32F7 and later: registers of their own for the two directions, and no overrun."""

    driver = "uart_stm32f7"
    status, received, sends = "ISR", "RDR", "TDR"
    on = 1 << 3 | 1 << 2 | 1 << 0
    cr3 = 1 << 12
    off_while_set = frozenset({"BRR", "CR2", "CR3"})
    table = RegisterTable(
        name="USART",
        registers=(
            Register("CR1", 0x00, reset=0x1),
            Register("CR2", 0x04, reset=0x3000),
            Register("CR3", 0x08, reset=0x300),
            Register("BRR", 0x0C),
            Register("ISR", 0x1C, access=Access.READ_ONLY, reset=0xC0),
            Register("RDR", 0x24, access=Access.READ_ONLY),
            Register("TDR", 0x28),
        ),
    )


class Driver:
    """The driver of a kind of USART."""

    def __init__(self, kind: type[Usart], adapter: Adapter[Fakes]) -> None:
        self.kind, self.adapter = kind, adapter

    def call(self, function: str, *arguments: object) -> int:
        result: int = getattr(self.adapter.lib, f"ferrule_{self.kind.driver}_{function}")(*arguments)
        return result

    def config(self, clock_hz: int = 16_000_000, baud: int = 115_200) -> CData:
        values = {"base": BASE, "clock_hz": clock_hz, "baud": baud}
        return self.adapter.new(f"struct ferrule_{self.kind.driver}_config *", values)


@pytest.fixture(scope="module")
def built(build_uart: Callable[[str], Adapter[Fakes]]) -> Mapping[type[Usart], Adapter[Fakes]]:
    return {kind: build_uart(kind.driver) for kind in (Usart, NewerUsart)}


@pytest.fixture(params=[Usart, NewerUsart], ids=["stm32", "stm32f7"])
def driver(built: Mapping[type[Usart], Adapter[Fakes]], request: pytest.FixtureRequest) -> Driver:
    built[request.param].reset()
    return Driver(request.param, built[request.param])


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
def test_speeds(driver: Driver, clock_hz: int, baud: int, divider: int | None) -> None:
    usart = driver.kind()
    window = driver.adapter.attach(BASE, usart)
    status = driver.call("init", driver.config(clock_hz, baud))
    if divider is None:
        assert (status, window.trace) == (ARGUMENT, [])
        return
    assert status == OK
    assert [usart.value(name) for name in ("BRR", "CR1", "CR2", "CR3")] == [divider, usart.on, 0, usart.cr3]
    assert window.trace[-1] == f"CR1 <- {usart.on:#x}"


def test_no_configuration(driver: Driver) -> None:
    assert driver.call("init", driver.adapter.ffi.NULL) == ARGUMENT


def test_bytes_both_ways(driver: Driver) -> None:
    usart = driver.kind()
    window = driver.adapter.attach(BASE, usart)
    uart = driver.config()
    assert driver.call("init", uart) == OK
    assert driver.call("read", uart) == -1
    usart.input += b"\x00\xff"
    assert [driver.call("read", uart) for _ in range(3)] == [0, 255, -1]
    assert driver.call("can_write", uart)
    for byte in b"ab":
        driver.call("write", uart, byte)
        assert not driver.call("can_write", uart)
    assert usart.sent == b"ab"
    assert f"{usart.status} -> 0x0" in window.trace
