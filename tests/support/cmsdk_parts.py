# SPDX-License-Identifier: Apache-2.0
"""Parts of mps2-an385 that the conformance program uses, for the embedded engine: a timer, and a free counter."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.devices import BusError, DeviceModel
from ferrule.emulation.engine import AttachedDevice

_CTRL, _VALUE, _RELOAD, _CLEAR = range(0x0, 0x10, 4)
_COUNTER, _PRESCALER = 0x18, 0x1C
_RUNS, _INTERRUPTS = 0x1, 0x8


class CmsdkTimer(DeviceModel):
    """The timer of Arm's Cortex-M System Design Kit (chapter 4.3): it counts down, interrupts and begins again."""

    def __init__(self) -> None:
        super().__init__()
        self._words = {_CTRL: 0, _VALUE: 0, _RELOAD: 0, _CLEAR: 0}

    @property
    @override
    def size_bytes(self) -> int:
        return 0x10

    @override
    def reset(self) -> None:
        self._words = dict.fromkeys(self._words, 0)
        self.irq.set(False)

    @override
    def read(self, offset: int, width: int) -> int:
        if offset not in self._words:
            raise BusError(f"no register at {offset:#x}", address=offset)
        return self._words[offset]

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        if offset not in self._words:
            raise BusError(f"no register at {offset:#x}", address=offset)
        if offset == _CLEAR:
            self.irq.set(False)
        else:
            self._words[offset] = value

    @override
    def advance(self, cycles: int) -> None:
        left = self.next_event()
        if left is not None and cycles < left:
            self._words[_VALUE] -= cycles
        elif left is not None:
            self._words[_VALUE] = self._words[_RELOAD]
            self.irq.set(self._words[_CTRL] & _INTERRUPTS != 0)

    @override
    def next_event(self) -> int | None:
        return self._words[_VALUE] or None if self._words[_CTRL] & _RUNS else None


class FpgaCounter(DeviceModel):
    """The registers of the FPGA on MPS2 boards, of which only the counter behind a prescaler is here."""

    def __init__(self) -> None:
        super().__init__()
        self._cycles = 0
        self._prescaler = 0

    @property
    @override
    def size_bytes(self) -> int:
        return 0x20

    @override
    def reset(self) -> None:
        self._cycles = self._prescaler = 0

    @override
    def read(self, offset: int, width: int) -> int:
        if offset != _COUNTER:
            raise BusError(f"no register at {offset:#x}", address=offset)
        return self._cycles // (self._prescaler + 1) % 2**32

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        if offset != _PRESCALER:
            raise BusError(f"no register at {offset:#x}", address=offset)
        self._prescaler = value

    @override
    def advance(self, cycles: int) -> None:
        self._cycles += cycles


def conformance_parts() -> tuple[AttachedDevice, ...]:
    """Return the parts at their addresses."""
    return (
        AttachedDevice(name="timer0", model=CmsdkTimer(), address=0x4000_0000, interrupt=8),
        AttachedDevice(name="fpgaio", model=FpgaCounter(), address=0x4002_8000),
    )
