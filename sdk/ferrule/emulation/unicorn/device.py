# SPDX-License-Identifier: Apache-2.0
"""Device models on the guest's bus, with registers, DMA and interrupt."""

from __future__ import annotations

import numpy as np

from ferrule.devices import Bus, BusError, Bytes, DeviceModel, GuardedBus
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice
from ferrule.emulation.unicorn.attachment import Attachment
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor


class GuestBus:
    """The guest's memory as a bus for DMA, without copies."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return a copy of the bytes at an address."""
        return self.view(address, size_bytes).tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address."""
        self.view(address, len(data), writable=True)[:] = np.frombuffer(data, np.uint8)

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the guest's memory itself; BusError outside the memories."""
        try:
            view = self._guest.memory_view(address, size_bytes)
        except EngineError as error:
            raise BusError(str(error), address=address) from error
        if writable and view.readonly:
            raise BusError(f"the memory at {address:#010x} is read-only", address=address)
        return np.frombuffer(view, np.uint8)


class BoardDevice:
    """A device model on the board's bus, called by the engine, whose DMA is checked.

    An access that the model refuses is a bus fault of the core. DMA outside the device's ranges ends the run with an
    error that names the register.
    """

    def __init__(self, guest: Guest, processor: Processor, device: AttachedDevice) -> None:
        self._device = device
        self.refusal: str | None = None
        """The reason why the model refused the last access; None if it did not."""
        self._model: DeviceModel = device.model
        bus: Bus = GuestBus(guest)
        self._guard = GuardedBus(bus, device.ranges) if device.ranges else None
        self._model.attach(
            bus=bus if self._guard is None else self._guard,
            irq=None if device.interrupt is None else processor.line(device.interrupt),
        )
        self._model.reset()
        self._attachment = Attachment(processor, self, address=device.address, size_bytes=self._model.size_bytes)

    def read(self, offset: int, width: int) -> int:
        """Read a register; BusError if the model refuses."""
        self.refusal = None
        try:
            value = self._model.read(offset, width)
        except BusError as error:
            self._refuse(error)
            raise
        self._check()
        return value

    def write(self, offset: int, width: int, value: int) -> None:
        """Write a register; BusError if the model refuses."""
        self.refusal = None
        if self._guard is not None:
            self._guard.cause = f"a write of {value:#x} to {self._model.register_name(offset)}"
        try:
            self._model.write(offset, width, value)
        except BusError as error:
            self._refuse(error)
            raise
        self._check()

    def where(self, address: int) -> str | None:
        """Describe an accessed address and the reason for its refusal; None if it is not in the device's window."""
        offset = address - self._device.address
        if not 0 <= offset < self._model.size_bytes:
            return None
        reason = f", which refuses it: {self.refusal}" if self.refusal else ""
        return f" ({self._model.register_name(offset)} of device {self._device.name}{reason})"

    def advance(self, cycles: int) -> None:
        """Let time pass for the model."""
        self._model.advance(cycles)
        self._check()

    def next_event(self) -> int | None:
        """Return the number of cycles until the model's next internal event, or None."""
        return self._model.next_event()

    def _refuse(self, error: BusError) -> None:
        self._check()
        self.refusal = str(error)

    def _check(self) -> None:
        if self._guard is not None and self._guard.escapes:
            raise EngineError(
                f"device {self._device.name}: DMA outside of its buffers: {self._guard.escapes[0]}",
                hint="it may reach the model's workspace and weights, and its driver's context",
            )
