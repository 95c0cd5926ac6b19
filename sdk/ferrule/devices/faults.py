# SPDX-License-Identifier: Apache-2.0
"""Faults of hardware, put between any device model and the software that uses it."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.devices.model import Bus, BusError, Bytes, DeviceModel, InterruptLine


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAccess:
    """One access of the software; accesses are numbered from 0 since the injector was made."""

    number: int
    offset: int
    width: int
    """Bytes."""
    value: int
    """Written, or read."""
    write: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that the device moves by DMA; transfers are numbered from 0 since the injector was made."""

    number: int
    address: int
    size_bytes: int
    write: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Bits that change on the way."""

    byte: int
    """Of the transfer."""
    mask: int


class Fault:
    """Something that is wrong with the device; by default nothing is."""

    def on_read(self, access: RegisterAccess) -> int:
        """Return what the software reads; raise BusError for nothing at all."""
        return access.value

    def on_write(self, access: RegisterAccess) -> int | None:
        """Return what arrives at the device, None for nothing; raise BusError for a refusal."""
        return access.value

    def on_transfer(self, transfer: Transfer) -> Flip | None:
        """Return what happens to a transfer's data, None for nothing; raise BusError for a refusal."""
        return None

    def stops_time(self, accesses: int) -> bool:
        """Whether the device has stopped to work by itself, when there were so many accesses."""
        return False

    def raises_interrupt(self, accesses: int) -> bool:
        """Whether the interrupt line is up although the device did not raise it."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckBit(Fault):
    """A bit of a register always reads as one level."""

    offset: int
    bit: int
    level: bool
    since: int = 0
    """From this access on."""

    @override
    def on_read(self, access: RegisterAccess) -> int:
        if access.offset != self.offset or access.number < self.since:
            return access.value
        return access.value | 1 << self.bit if self.level else access.value & ~(1 << self.bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongId(Fault):
    """Another device answers: a register, such as the one with the id, has another value."""

    offset: int = 0
    value: int = 0xDEAD_BEEF

    @override
    def on_read(self, access: RegisterAccess) -> int:
        return self.value if access.offset == self.offset else access.value


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverDone(Fault):
    """From an access on the device hangs: it ignores writes, and what it was doing never ends."""

    since: int = 0

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        return None if access.number >= self.since else access.value

    @override
    def stops_time(self, accesses: int) -> bool:
        return accesses > self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class SpuriousInterrupt(Fault):
    """The interrupt line goes up at an access, and down at the next."""

    at: int

    @override
    def raises_interrupt(self, accesses: int) -> bool:
        return accesses == self.at + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BusErrorAt(Fault):
    """The bus answers one access with an error."""

    at: int

    @override
    def on_read(self, access: RegisterAccess) -> int:
        self._check(access)
        return access.value

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        self._check(access)
        return access.value

    def _check(self, access: RegisterAccess) -> None:
        if access.number == self.at:
            raise BusError(
                f"injected: access {access.number} at offset {access.offset:#x} is refused", address=access.offset
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedValue(Fault):
    """The value of one access, read or written, arrives with bits flipped."""

    at: int
    mask: int = 1

    @override
    def on_read(self, access: RegisterAccess) -> int:
        return access.value ^ self.mask if access.number == self.at else access.value

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        return access.value ^ self.mask if access.number == self.at else access.value


@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedData(Fault):
    """A byte that the device reads or writes by DMA arrives with bits flipped, and nobody notices."""

    at: int
    """Number of the transfer."""
    byte: int = 0
    """Modulo the size of the transfer."""
    mask: int = 1

    @override
    def on_transfer(self, transfer: Transfer) -> Flip | None:
        hit = transfer.number == self.at and transfer.size_bytes > 0
        return Flip(byte=self.byte % transfer.size_bytes, mask=self.mask) if hit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaErrorAt(Fault):
    """The bus refuses a transfer of the device."""

    at: int
    """Number of the transfer."""

    @override
    def on_transfer(self, transfer: Transfer) -> Flip | None:
        if transfer.number == self.at:
            raise BusError(f"injected: transfer {transfer.number} is refused", address=transfer.address)
        return None


class _FaultyBus:
    """The wires between the device and memory."""

    def __init__(self, injector: FaultInjector, bus: Bus) -> None:
        self._injector = injector
        self._bus = bus

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return bytes."""
        flip = self._next(address, size_bytes, write=False)
        data = self._bus.read(address, size_bytes)
        return data if flip is None else _flipped(data, flip)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes."""
        flip = self._next(address, len(data), write=True)
        self._bus.write(address, data if flip is None else _flipped(data, flip))

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return the bytes themselves, but a copy if bits of what is read change."""
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


class _Line:
    """The wire between the device and whoever listens: high if the device or the fault says so."""

    def __init__(self) -> None:
        self.listener: InterruptLine | None = None
        self._device = False
        self._fault = False

    def set(self, level: bool) -> None:
        """Take the device's level."""
        self._device = level
        self._tell()

    def disturb(self, *, level: bool) -> None:
        """Take the fault's level."""
        self._fault = level
        self._tell()

    def _tell(self) -> None:
        if self.listener is not None:
            self.listener.set(self._device or self._fault)


class FaultInjector(DeviceModel):
    """A device with a fault. It takes the device's place wherever a device is attached."""

    def __init__(self, model: DeviceModel, fault: Fault | None = None) -> None:
        super().__init__()
        self.fault = fault or Fault()
        """May be exchanged between two accesses; see `inject`."""
        self.accesses: list[RegisterAccess] = []
        """All so far, with the values that the software wrote or got."""
        self.transfers: list[Transfer] = []
        """The device's DMA so far."""
        self._model = model
        self._line = _Line()
        model.attach(irq=self._line)

    def inject(self, fault: Fault | None) -> None:
        """Exchange the fault, None for nothing, and number accesses and transfers from 0 again."""
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

    def _access(self, offset: int, width: int, value: int, *, write: bool) -> RegisterAccess:
        return RegisterAccess(number=len(self.accesses), offset=offset, width=width, value=value, write=write)

    def _note(self, access: RegisterAccess) -> None:
        self.accesses.append(access)
        self._line.disturb(level=self.fault.raises_interrupt(len(self.accesses)))
