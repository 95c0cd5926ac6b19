# SPDX-License-Identifier: Apache-2.0
"""A model of a device: what an accelerator does when its registers are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ferrule.errors import FerruleError

Bytes = npt.NDArray[np.uint8]


class BusError(FerruleError):
    """An access that nothing answers, or that the target refuses; on a board the master sees a bus fault."""

    def __init__(self, message: str, *, address: int) -> None:
        super().__init__(message)
        self.address = address
        """As the master put it on the bus; for an access to a device's registers, the offset in its window."""


class Bus(Protocol):
    """The memory that a device reaches as a bus master (DMA); addresses are those of the core."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return bytes; BusError where a byte of them is not there."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes; BusError where a byte of them is not there or can't be written. Nothing is written then."""
        ...

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the bytes as an array, without a copy where the memory is one of this process; BusError as above.

        What is written to the array arrives in memory at the latest with the device's next register access.
        """
        ...


class InterruptLine(Protocol):
    """A level-sensitive output of a device."""

    def set(self, level: bool) -> None:
        """Raise or lower the line; the same level again changes nothing."""
        ...


class NoBus:
    """The bus of a device that nobody has attached: nothing answers."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Refuse."""
        raise BusError(
            f"the device reads {size_bytes} B at {address:#010x}, but is attached to no bus", address=address
        )

    def write(self, address: int, data: bytes) -> None:
        """Refuse."""
        raise BusError(
            f"the device writes {len(data)} B at {address:#010x}, but is attached to no bus", address=address
        )

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Refuse."""
        raise BusError(
            f"the device reads {size_bytes} B at {address:#010x}, but is attached to no bus", address=address
        )


class NoInterrupt:
    """The line of a device whose interrupt is not wired."""

    def set(self, level: bool) -> None:
        """Do nothing: nobody listens."""


class DeviceModel(ABC):
    """A device as the software sees it. It is attached to an emulator's bus, behind a wire, or under a unit test.

    One thread at a time calls it. It does nothing by itself: what takes time happens in `advance`, which whoever
    attached it calls at `next_event` at the latest, and before each access to a register.
    """

    def __init__(self) -> None:
        self.bus: Bus = NoBus()
        """Memory, for DMA; given by whoever attaches the model."""
        self.irq: InterruptLine = NoInterrupt()
        """Given by whoever attaches the model."""

    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        """Wire the device; what is not given stays as it was."""
        if bus is not None:
            self.bus = bus
        if irq is not None:
            self.irq = irq

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Size of the window of registers."""

    @abstractmethod
    def reset(self) -> None:
        """Go to the state after power-on; the interrupt line goes low."""

    @abstractmethod
    def read(self, offset: int, width: int) -> int:
        """Return what a read of `width` bytes (1, 2 or 4) at an offset gives.

        Raises:
            BusError: there is no such register, or not of this width.
        """

    @abstractmethod
    def write(self, offset: int, width: int, value: int) -> None:
        """Write `width` bytes; the value is below 2^(8 width). BusError as for `read`."""

    def register_name(self, offset: int) -> str:
        """Return what people call the register at an offset."""
        return f"offset {offset:#x}"

    def advance(self, cycles: int) -> None:  # noqa: B027 a model without a notion of time has nothing to do
        """Let so many cycles pass, 0 or more; by default nothing happens."""

    def next_event(self) -> int | None:
        """Return the cycles, 1 or more, after which something happens by itself; None if nothing will."""
        return None

    def set_power(self, *, on: bool) -> None:
        """Switch power; by default a device that is switched on is reset, and one that is off keeps quiet."""
        if on:
            self.reset()
        else:
            self.irq.set(False)
