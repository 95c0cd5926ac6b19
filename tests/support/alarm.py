# SPDX-License-Identifier: Apache-2.0
"""A timer on the bus: a write sets the cycles until its interrupt; a write of 0 ends it, and lowers the line."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.devices import DeviceModel


class Alarm(DeviceModel):
    """One register, which reads the cycles that are left."""

    size_bytes = 0x1000

    def __init__(self) -> None:
        super().__init__()
        self._left = 0

    @override
    def reset(self) -> None:
        self.write(0, 4, 0)

    @override
    def read(self, offset: int, width: int) -> int:
        return self._left

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._left = value
        self.irq.set(False)

    @override
    def advance(self, cycles: int) -> None:
        if 0 < self._left <= cycles:
            self.irq.set(True)
        self._left = max(self._left - cycles, 0)

    @override
    def next_event(self) -> int | None:
        return self._left or None
