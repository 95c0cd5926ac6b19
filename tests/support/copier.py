# SPDX-License-Identifier: Apache-2.0
"""A minimal device model with DMA, an interrupt and a duration."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.devices import BusError, DeviceModel

BLOCK_BYTES = 100


class Copier(DeviceModel):
    """Reverses 100 B by DMA; a write to register 0 sets the delay in cycles, and register 4 reads the cycles left."""

    size_bytes = 0x1000

    def __init__(self, source: int = 0x1000, target: int = 0x2000) -> None:
        super().__init__()
        self._source, self._target = source, target
        self._left = 0
        self.resets = 0

    @override
    def reset(self) -> None:
        self.resets += 1
        self._left = 0
        self.irq.set(False)

    @override
    def read(self, offset: int, width: int) -> int:
        if offset != 4:
            raise BusError(f"no register at {offset:#x}", address=offset)
        return self._left

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._left = value
        self.irq.set(False)
        if not value:
            self._work()

    @override
    def advance(self, cycles: int) -> None:
        if self._left:
            self._left = max(0, self._left - cycles)
            if not self._left:
                self._work()

    @override
    def next_event(self) -> int | None:
        return self._left or None

    def _work(self) -> None:
        data = bytes(self.bus.view(self._source, BLOCK_BYTES))
        self.bus.write(self._target, data[::-1])
        self.irq.set(True)
