# SPDX-License-Identifier: Apache-2.0
"""Buses for unit tests, and the guard that keeps a device within its buffers."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule.devices import BusError, GuardedBus, MemoryBus, Range


def test_memory() -> None:
    bus = MemoryBus()
    ram = bus.add(0x2000, 16)
    rom = np.arange(8, dtype=np.uint8)
    rom.setflags(write=False)
    bus.add(0x100, rom)
    bus.write(0x2004, b"abc")
    assert ram[4:7].tobytes() == bus.read(0x2004, 3) == b"abc"
    bus.view(0x2000, 2, writable=True)[:] = 7
    assert ram[:2].tolist() == [7, 7]
    assert bus.read(0x102, 2) == b"\x02\x03"
    with pytest.raises(BusError, match="writes 1 B at 0x00000100"):
        bus.write(0x100, b"x")
    for address, size in ((0x1FFF, 1), (0x200F, 2), (0x2010, 1), (0, 1)):
        with pytest.raises(BusError, match="where there is no memory") as caught:
            bus.read(address, size)
        assert caught.value.address == address


def test_the_guard_keeps_a_device_inside_and_says_what_it_asked_for() -> None:
    memory = MemoryBus()
    memory.add(0x1000, 64)
    ranges = [
        Range(name="weights", address=0x1000, size_bytes=16, writable=False),
        Range(name="arena", address=0x1010, size_bytes=16),
    ]
    bus = GuardedBus(memory, ranges)
    bus.write(0x1010, b"ok")
    assert bus.read(0x1000, 16) == bytes(16)
    assert bus.view(0x1010, 2).tobytes() == b"ok"
    assert bus.escapes == []
    assert (bus.read_bytes, bus.written_bytes) == (18, 2)
    bus.view(0x1010, 5, writable=True)[:] = 1
    assert (bus.read_bytes, bus.written_bytes) == (18, 7)
    bus.cause = "DOORBELL"
    for call in (
        lambda: bus.read(0x100F, 2),  # begins in one range and ends in another
        lambda: bus.write(0x1000, b"x"),
        lambda: bus.view(0x101F, 2, writable=True),
        lambda: bus.read(0x1020, 1),
    ):
        with pytest.raises(BusError, match=r"asked for by DOORBELL; it was given weights .* \(read only\), arena"):
            call()
    assert [str(escape) for escape in bus.escapes][1] == "write of 1 B at 0x00001000, asked for by DOORBELL"
    assert len(bus.escapes) == 4
    assert (bus.read_bytes, bus.written_bytes) == (18, 7)


def test_a_transfer_that_memory_refuses_is_not_counted() -> None:
    bus = GuardedBus(MemoryBus(), [Range(name="nothing", address=0, size_bytes=64)])
    for call in (lambda: bus.read(0, 4), lambda: bus.write(0, b"abcd"), lambda: bus.view(0, 4)):
        with pytest.raises(BusError, match="where there is no memory"):
            call()
    assert (bus.read_bytes, bus.written_bytes) == (0, 0)
