# SPDX-License-Identifier: Apache-2.0
"""Guards for device models in Renode, which only warns of accesses outside of the board's memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ferrule._typing import override
from ferrule.boards import Board, MemoryKind
from ferrule.devices import Bus, BusError, InterruptLine
from ferrule.devices.hosting import HostedModel
from ferrule.devices.model import PassingBus
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice

_T = TypeVar("_T")


@dataclass
class BoardBus(PassingBus):
    """A bus that refuses accesses outside the board's memories and writes to its flash; Renode only warns of them."""

    _board: Board

    @override
    def pass_on(self, transfer: Callable[[int, int], _T], address: int, size_bytes: int, *, write: bool) -> _T:
        for memory in self._board.memories:
            for base in (memory.address, *memory.aliases):
                if base <= address and address + size_bytes <= base + memory.size_bytes:
                    if write and memory.kind is MemoryKind.FLASH:
                        raise BusError(f"the memory at {address:#010x} is read-only", address=address)
                    return transfer(address, size_bytes)
        raise BusError(f"{size_bytes} B at {address:#010x} are not in one memory of the board", address=address)


class BoardModel(HostedModel):
    """A device model on a board in Renode; a refused access is a failure too, since Renode only logs it."""

    def __init__(self, device: AttachedDevice, board: Board, *, limit_s: float | None = None) -> None:
        super().__init__(device.model, name=device.name, ranges=device.ranges, line=device.interrupt, limit_s=limit_s)
        self._board = board

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        """Connect the model to the board's memories and, if it has an interrupt, to an interrupt line."""
        board_bus = None if bus is None else BoardBus(bus, self._board)
        super().attach(bus=board_bus, irq=None if self._number is None else irq)

    @property
    def failure(self) -> EngineError | None:
        """The first fault or refused access, which ends the run; None if there is none."""
        if self.first_refusal is not None:
            return EngineError(f"device {self.name}: {self.first_refusal}")
        if self.fault is None:
            return None
        failure = EngineError(str(self.fault), hint=self.fault.hint)
        failure.__cause__ = self.fault
        return failure
