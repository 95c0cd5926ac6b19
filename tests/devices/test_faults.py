# SPDX-License-Identifier: Apache-2.0
"""Every fault of the injector, on a small device that counts."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.devices import (
    Access,
    BusError,
    BusErrorAt,
    Fault,
    FaultInjector,
    FlippedValue,
    MemoryBus,
    NeverDone,
    Register,
    RegisterModel,
    RegisterTable,
    SpuriousInterrupt,
    StuckBit,
    WrongId,
)

TABLE = RegisterTable(
    name="timer",
    registers=(
        Register(name="ID", offset=0, access=Access.READ_ONLY, reset=0x54),
        Register(name="TIME", offset=4, doc="counts down to zero, then raises the interrupt"),
    ),
    size_bytes=8,
)


class Timer(RegisterModel):
    def __init__(self) -> None:
        super().__init__()
        self.reset()

    @property
    @override
    def table(self) -> RegisterTable:
        return TABLE

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        self.irq.set(False)

    @override
    def advance(self, cycles: int) -> None:
        left = self.value("TIME")
        self.set_value("TIME", max(left - cycles, 0))
        if 0 < left <= cycles:
            self.irq.set(True)

    @override
    def next_event(self) -> int | None:
        return self.value("TIME") or None


class Line:
    level = False

    def set(self, level: bool) -> None:
        self.level = level


def injected(fault: Fault | None = None) -> tuple[FaultInjector, Line]:
    line = Line()
    injector = FaultInjector(Timer(), fault)
    injector.attach(bus=MemoryBus(), irq=line)
    injector.reset()
    return injector, line


def test_without_a_fault_it_is_the_device_itself() -> None:
    injector, line = injected()
    injector.write(4, 4, 10)
    assert injector.next_event() == 10
    injector.advance(9)
    assert not line.level
    injector.advance(1)
    assert line.level
    assert injector.read(4, 4) == 0
    assert [(a.number, a.offset, a.value, a.write) for a in injector.accesses] == [(0, 4, 10, True), (1, 4, 0, False)]
    injector.set_power(on=False)
    assert not line.level
    assert injector.size_bytes == 8


def test_stuck_bits() -> None:
    for level, expected in ((True, 0x54 | 1), (False, 0x54 & ~4)):
        injector, _ = injected(StuckBit(offset=0, bit=0 if level else 2, level=level, since=1))
        assert [injector.read(0, 4), injector.read(0, 4)] == [0x54, expected]
        injector.write(4, 4, 6)
        assert injector.read(4, 4) == 6


def test_wrong_id() -> None:
    injector, _ = injected(WrongId(value=7))
    assert injector.read(0, 4) == 7
    assert injector.read(4, 4) == 0


def test_a_device_that_hangs() -> None:
    injector, line = injected(NeverDone(since=1))
    injector.write(4, 4, 10)
    assert injector.next_event() == 10
    injector.write(4, 4, 3)
    assert injector.next_event() is None
    injector.advance(100)
    assert injector.read(4, 4) == 10
    assert not line.level


def test_a_spurious_interrupt() -> None:
    injector, line = injected(SpuriousInterrupt(at=1))
    seen = []
    for _ in range(3):
        injector.read(0, 4)
        seen.append(line.level)
    assert seen == [False, True, False]


def test_a_spurious_interrupt_does_not_hide_a_real_one() -> None:
    injector, line = injected(SpuriousInterrupt(at=1))
    injector.write(4, 4, 1)
    injector.advance(1)
    injector.read(0, 4)
    injector.read(0, 4)
    assert line.level


def test_a_bus_error_happens_once() -> None:
    injector, _ = injected(BusErrorAt(at=1))
    injector.write(4, 4, 5)
    with pytest.raises(BusError, match="injected: access 1 at offset 0x4 is refused"):
        injector.write(4, 4, 6)
    assert injector.read(4, 4) == 5
    injector.fault = BusErrorAt(at=3)
    with pytest.raises(BusError, match="access 3"):
        injector.read(0, 4)
    assert injector.read(0, 4) == 0x54


def test_flipped_values_both_ways() -> None:
    injector, _ = injected(FlippedValue(at=0, mask=0x8000_0001))
    injector.write(4, 4, 2)
    assert injector.read(4, 4) == 0x8000_0003
    injector.fault = FlippedValue(at=2)
    assert injector.read(0, 4) == 0x55
    assert injector.read(0, 4) == 0x54
