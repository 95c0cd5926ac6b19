# SPDX-License-Identifier: Apache-2.0
"""Every fault of the injector, on a small timer device."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.devices import (
    Access,
    BusError,
    BusErrorAt,
    DmaErrorAt,
    Fault,
    FaultInjector,
    FlippedData,
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
        Register("ID", 0, access=Access.READ_ONLY, reset=0x54),
        Register("TIME", 4, doc="counts down to zero, then raises the interrupt"),
    ),
    size_bytes=8,
)


class Timer(RegisterModel):
    table = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.reset()

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


def test_another_fault_takes_the_interrupt_of_the_first_away() -> None:
    injector, line = injected(SpuriousInterrupt(at=0))
    injector.read(0, 4)
    assert line.level
    injector.inject(None)
    assert (line.level, injector.accesses) == (False, [])


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


class Copier(Timer):
    """Copies two bytes by DMA when TIME is written, by the kind of access named in `way`."""

    way = "read"

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        data = self.bus.read(0x100, 2) if self.way == "read" else self.bus.view(0x100, 2).tobytes()
        if self.way == "view":
            self.bus.view(0x200, 2, writable=True)[:] = list(data)
        else:
            self.bus.write(0x200, data)


def copied(way: str, fault: Fault) -> tuple[list[int], FaultInjector, MemoryBus]:
    model = Copier()
    model.way = way
    injector, bus = FaultInjector(model, fault), MemoryBus()
    bus.add(0x100, 2)[:] = [3, 4]
    bus.add(0x200, 2)[:] = [9, 9]
    injector.attach(bus=bus)
    injector.write(4, 4, 1)
    return list(bus.read(0x200, 2)), injector, bus


@pytest.mark.parametrize("way", ["read", "write"])
def test_flipped_data_on_the_way_in_or_out(way: str) -> None:
    assert copied(way, Fault())[0] == [3, 4]
    assert copied(way, FlippedData(at=0, byte=1, mask=0x80))[0] == [3, 0x84]
    assert copied(way, FlippedData(at=1, byte=2))[0] == [2, 4]  # indices wrap: byte 2 of 2 is byte 0
    data, injector, bus = copied(way, FlippedData(at=2))
    assert data == [3, 4]
    assert [(each.address, each.size_bytes, each.write) for each in injector.transfers] == [
        (0x100, 2, False),
        (0x200, 2, True),
    ]
    assert bus.read(0x100, 2) == b"\x03\x04"  # the fault affects only what the device saw


def test_data_flipped_in_a_view() -> None:
    assert copied("view", FlippedData(at=0, byte=0))[0] == [2, 4]
    assert copied("view", FlippedData(at=1, byte=0))[0] == [3, 4]  # the device overwrites it at once


@pytest.mark.parametrize("at", [0, 1])
def test_dma_that_is_refused(at: int) -> None:
    with pytest.raises(BusError, match=f"injected: transfer {at} is refused") as caught:
        copied("read", DmaErrorAt(at=at))
    assert caught.value.address == [0x100, 0x200][at]


def test_registers_keep_their_names() -> None:
    injector = FaultInjector(Timer())
    assert [injector.register_name(offset) for offset in (0, 4, 8)] == ["ID", "TIME", "offset 0x8"]
