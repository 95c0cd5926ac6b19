# SPDX-License-Identifier: Apache-2.0
"""Hardware faults, injected between any device model and the software that uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.devices.model import Bus, BusError, Bytes, DeviceModel, InterruptLine


@frozen
class RegisterAccess:
    """One register access by the software; accesses are numbered from 0, starting when the injector is created."""

    number: int
    offset: int
    width: int
    """Size of the access in bytes."""
    value: int
    """Value written or read."""
    write: bool


@frozen
class Transfer:
    """One DMA transfer of the device; transfers are numbered from 0, starting when the injector is created."""

    number: int
    address: int
    size_bytes: int
    write: bool


@frozen
class Flip:
    """Bits of one byte that are inverted during a transfer."""

    byte: int
    """Index of the byte within the transfer."""
    mask: int


class Fault:
    """A hardware fault; the methods of this base class inject none."""

    def on_access(self, access: RegisterAccess) -> int:
        """Return the value that arrives, for faults of reads and writes alike; raise BusError to refuse the access."""
        return access.value

    def on_read(self, access: RegisterAccess) -> int:
        """Return the value that the software reads; raise BusError to refuse the access."""
        return self.on_access(access)

    def on_write(self, access: RegisterAccess) -> int | None:
        """Return the value that reaches the device, or None to drop the write; raise BusError to refuse the access."""
        return self.on_access(access)

    def on_transfer(self, transfer: Transfer) -> Flip | None:
        """Return the bits to invert in a transfer's data, or None to leave it intact; raise BusError to refuse it."""
        return None

    def stops_time(self, accesses: int) -> bool:
        """Return whether the device's time is stopped after the given number of accesses."""
        return False

    def raises_interrupt(self, accesses: int) -> bool:
        """Return whether the fault holds the interrupt line high after the given number of accesses."""
        return False


@frozen
class StuckBit(Fault):
    """One bit of a register always reads as the same level."""

    offset: int
    bit: int
    level: bool
    since: int = 0
    """Number of the first access that the fault affects."""

    @override
    def on_read(self, access: RegisterAccess) -> int:
        if access.offset != self.offset or access.number < self.since:
            return access.value
        return access.value | 1 << self.bit if self.level else access.value & ~(1 << self.bit)


@frozen
class WrongId(Fault):
    """A register, such as the device's identification register, reads as a wrong value."""

    offset: int = 0
    value: int = 0xDEAD_BEEF

    @override
    def on_read(self, access: RegisterAccess) -> int:
        return self.value if access.offset == self.offset else access.value


@frozen
class NeverDone(Fault):
    """The device hangs from one access on: it ignores writes, and its current operation never ends."""

    since: int = 0

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        return None if access.number >= self.since else access.value

    @override
    def stops_time(self, accesses: int) -> bool:
        return accesses > self.since


@frozen
class SpuriousInterrupt(Fault):
    """The interrupt line goes high at one access and low at the next."""

    at: int

    @override
    def raises_interrupt(self, accesses: int) -> bool:
        return accesses == self.at + 1


@frozen
class BusErrorAt(Fault):
    """The bus answers one access with an error."""

    at: int

    @override
    def on_access(self, access: RegisterAccess) -> int:
        if access.number == self.at:
            raise BusError(
                f"injected: access {access.number} at offset {access.offset:#x} is refused", address=access.offset
            )
        return access.value


@frozen
class FlippedValue(Fault):
    """The value of one access, read or written, arrives with bits flipped."""

    at: int
    mask: int = 1

    @override
    def on_access(self, access: RegisterAccess) -> int:
        return access.value ^ self.mask if access.number == self.at else access.value


@frozen
class FlippedData(Fault):
    """A byte that the device reads or writes by DMA arrives with bits flipped, and no error is reported."""

    at: int
    """Number of the transfer that is damaged."""
    byte: int = 0
    """Index of the damaged byte, modulo the size of the transfer."""
    mask: int = 1

    @override
    def on_transfer(self, transfer: Transfer) -> Flip | None:
        hit = transfer.number == self.at and transfer.size_bytes > 0
        return Flip(byte=self.byte % transfer.size_bytes, mask=self.mask) if hit else None


@frozen
class DmaErrorAt(Fault):
    """The bus refuses one DMA transfer of the device."""

    at: int
    """Number of the transfer that is refused."""

    @override
    def on_transfer(self, transfer: Transfer) -> Flip | None:
        if transfer.number == self.at:
            raise BusError(f"injected: transfer {transfer.number} is refused", address=transfer.address)
        return None


@dataclass
class _FaultyBus:
    """The bus between the device and memory, with the injector's fault applied to each transfer."""

    _injector: FaultInjector
    _bus: Bus

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return the bytes at an address, with the fault applied."""
        flip = self._next(address, size_bytes, write=False)
        data = self._bus.read(address, size_bytes)
        return data if flip is None else _flipped(data, flip)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address, with the fault applied."""
        flip = self._next(address, len(data), write=True)
        self._bus.write(address, data if flip is None else _flipped(data, flip))

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the memory itself, or a copy if the fault flips bits of a read."""
        flip = self._next(address, size_bytes, write=writable)
        array = self._bus.view(address, size_bytes, writable=writable)
        if flip is not None:
            array = array if writable else array.copy()
            array[flip.byte] ^= flip.mask
        return array

    def _next(self, address: int, size_bytes: int, *, write: bool) -> Flip | None:
        transfers = self._injector.transfers
        transfer = Transfer(number=len(transfers), address=address, size_bytes=size_bytes, write=write)
        transfers.append(transfer)
        return self._injector.fault.on_transfer(transfer)


def _flipped(data: bytes, flip: Flip) -> bytes:
    changed = bytearray(data)
    changed[flip.byte] ^= flip.mask
    return bytes(changed)


@dataclass
class _Line:
    """The interrupt line between the device and its listener: high while the device or the fault drives it high."""

    listener: InterruptLine | None = None
    _device: bool = False
    _fault: bool = False

    def set(self, level: bool) -> None:
        """Set the level that the device drives."""
        self._device = level
        self._tell()

    def disturb(self, *, level: bool) -> None:
        """Set the level that the fault drives."""
        self._fault = level
        self._tell()

    def _tell(self) -> None:
        if self.listener is not None:
            self.listener.set(self._device or self._fault)


class FaultInjector(DeviceModel):
    """A device model with a fault, to be attached in place of the model that it wraps."""

    def __init__(self, model: DeviceModel, fault: Fault | None = None) -> None:
        super().__init__()
        self.fault = fault or Fault()
        """The current fault; it may be replaced between two accesses, see `inject`."""
        self.accesses: list[RegisterAccess] = []
        """All accesses since the last `inject`, with the values that the software wrote or received."""
        self.transfers: list[Transfer] = []
        """All DMA transfers of the device since the last `inject`."""
        self._model = model
        self.deadline_s = model.deadline_s
        self._line = _Line()
        model.attach(irq=self._line)

    def inject(self, fault: Fault | None) -> None:
        """Replace the fault (None removes it) and restart the numbering of accesses and transfers at 0."""
        self._line.disturb(level=False)
        self.fault = fault or Fault()
        self.accesses.clear()
        self.transfers.clear()

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        super().attach(bus=bus, irq=irq)
        self._line.listener = self.irq
        self._model.attach(bus=None if bus is None else _FaultyBus(self, bus))

    @override
    def register_name(self, offset: int) -> str:
        return self._model.register_name(offset)

    @property
    @override
    def size_bytes(self) -> int:
        return self._model.size_bytes

    @override
    def reset(self) -> None:
        self._line.disturb(level=False)
        self._model.reset()

    @override
    def set_power(self, *, on: bool) -> None:
        self._model.set_power(on=on)

    @override
    def read(self, offset: int, width: int) -> int:
        value = 0
        try:
            found = self._model.read(offset, width)
            if type(found) is not int or found >> 8 * width:
                return found  # a wrong answer of the model, which the attachment reports
            value = self.fault.on_read(self._access(offset, width, found, write=False)) & ((1 << 8 * width) - 1)
        finally:
            self._note(self._access(offset, width, value, write=False))
        return value

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        access = self._access(offset, width, value, write=True)
        try:
            arrives = self.fault.on_write(access)
        finally:
            self._note(access)
        if arrives is not None:
            self._model.write(offset, width, arrives & ((1 << 8 * width) - 1))

    @override
    def advance(self, cycles: int) -> None:
        if not self.fault.stops_time(len(self.accesses)):
            self._model.advance(cycles)

    @override
    def next_event(self) -> int | None:
        return None if self.fault.stops_time(len(self.accesses)) else self._model.next_event()

    @override
    def statistics(self) -> Mapping[str, int | float]:
        return self._model.statistics()

    @override
    def failure(self) -> str:
        return self._model.failure()

    @override
    def registers(self) -> Mapping[str, int]:
        return self._model.registers()

    def _access(self, offset: int, width: int, value: int, *, write: bool) -> RegisterAccess:
        return RegisterAccess(number=len(self.accesses), offset=offset, width=width, value=value, write=write)

    def _note(self, access: RegisterAccess) -> None:
        self.accesses.append(access)
        self._line.disturb(level=self.fault.raises_interrupt(len(self.accesses)))
