# SPDX-License-Identifier: Apache-2.0
"""The interface of device models: an accelerator's behaviour when its registers are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ferrule._typing import override
from ferrule.errors import FerruleError

Bytes = npt.NDArray[np.uint8]
_T = TypeVar("_T")


class BusError(FerruleError):
    """An access to an unmapped address, or one that the target refuses; on a board the master sees a bus fault."""

    def __init__(self, message: str, *, address: int) -> None:
        super().__init__(message)
        self.address = address
        """The address as the master issued it; for a register access, the offset in the device's window."""


class DeviceFaultError(FerruleError):
    """A device model broke its contract: it raised an exception, hung, returned a wrong value, or left its buffers."""

    def __init__(
        self,
        message: str,
        *,
        device: str,
        register: str | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.device = device
        """The name of the device."""
        self.register = register
        """The name of the register whose access the model was answering; None if there is none."""
        self.offset = offset
        """The offset of that register in the device's window."""
        self.pc: int | None = None
        """The address of the instruction that made the access; None if it is unknown."""


class Bus(Protocol):
    """The memory that a device accesses as a bus master (DMA); addresses are those of the core."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return the bytes at an address; BusError if any of them is unmapped."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address; BusError, with nothing written, if any of them is unmapped or read-only."""
        ...

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the bytes as an array, without a copy if the memory belongs to this process; BusError as above.

        Data written to the array reaches memory at the device's next register access at the latest.
        """
        ...


class InterruptLine(Protocol):
    """A level-sensitive output of a device."""

    def set(self, level: bool) -> None:
        """Raise or lower the line; setting the current level again changes nothing."""
        ...


class MemoryView(ABC):
    """A bus whose memory belongs to this process."""

    @abstractmethod
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the memory at an address, without a copy; BusError if it cannot be accessed so."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address."""
        return self.view(address, size_bytes).tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        self.view(address, len(data), writable=True)[:] = np.frombuffer(data, np.uint8)


@dataclass
class PassingBus(ABC):
    """A bus in front of another one, which `pass_on` allows, refuses or observes transfer by transfer."""

    _bus: Bus

    @abstractmethod
    def pass_on(self, transfer: Callable[[int, int], _T], address: int, size_bytes: int, *, write: bool) -> _T:
        """Return the result of a transfer by the other bus, which is called with the address and the size."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address."""
        return self.pass_on(self._bus.read, address, size_bytes, write=False)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        self.pass_on(lambda start, _: self._bus.write(start, bytes(data)), address, len(data), write=True)

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the bytes as the other bus does; a view counts as a whole, as a write if it is writable."""
        return self.pass_on(partial(self._bus.view, writable=writable), address, size_bytes, write=writable)


class NoBus(MemoryView):
    """The bus of a device that is not attached: it refuses every access."""

    @override
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        verb = "writes" if writable else "reads"
        raise BusError(
            f"the device {verb} {size_bytes} B at {address:#010x}, but is attached to no bus", address=address
        )


class NoInterrupt:
    """The interrupt line of a device whose interrupt is not connected."""

    def set(self, level: bool) -> None:
        """Ignore the level."""


class DeviceModel(ABC):
    """A device as software sees it, attached to an emulator's bus, a serial wire or a unit test.

    It is called by one thread at a time. Its time passes only in `advance`, which the host calls before each register
    access and no later than the time that `next_event` returns. A method that raises another exception than the
    documented ones, returns another value or does not return ends the run with a DeviceFaultError.
    """

    deadline_s: float = 30.0
    """Longest time in seconds that one call of a method may take on the host."""

    def __init__(self) -> None:
        self.bus: Bus = NoBus()
        """The memory for DMA, set by `attach`."""
        self.irq: InterruptLine = NoInterrupt()
        """The interrupt line, set by `attach`."""

    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        """Connect the device to a bus or an interrupt line; None leaves the connection unchanged."""
        if bus is not None:
            self.bus = bus
        if irq is not None:
            self.irq = irq

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Size of the register window."""

    @abstractmethod
    def reset(self) -> None:
        """Enter the power-on state and lower the interrupt line."""

    @abstractmethod
    def read(self, offset: int, width: int) -> int:
        """Return the value of a read of `width` bytes (1, 2 or 4) at an offset.

        Raises:
            BusError: there is no register at the offset, or it does not allow this width.
        """

    @abstractmethod
    def write(self, offset: int, width: int, value: int) -> None:
        """Write `width` bytes at an offset; the value is below 2^(8 width). Raises BusError as `read` does."""

    def register_name(self, offset: int) -> str:
        """Return the name of the register at an offset, for messages."""
        return f"offset {offset:#x}"

    def advance(self, cycles: int) -> None:  # noqa: B027 a model without a notion of time has nothing to do
        """Let 0 or more clock cycles pass; by default nothing happens. BusErrors of DMA are the model's to handle."""

    def next_event(self) -> int | None:
        """Return the number of cycles, 1 or more, until the device's next internal event; None if none is pending."""
        return None

    def statistics(self) -> Mapping[str, int | float]:
        """Return counts by name, such as of commands, since the model was created; a reset does not clear them."""
        return {}

    def failure(self) -> str:
        """Return why the device refused its last work, for people who read that a run failed; empty if it did not."""
        return ""

    def registers(self) -> Mapping[str, int]:
        """Return the values of the registers by name, without the effects of a read, for people who read a report."""
        return {}

    def set_power(self, *, on: bool) -> None:
        """Switch the power; by default switching on resets the device, and switching off lowers its interrupt line."""
        if on:
            self.reset()
        else:
            self.irq.set(False)
