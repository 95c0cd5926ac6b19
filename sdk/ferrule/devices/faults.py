# SPDX-License-Identifier: Apache-2.0
"""Faults of hardware, put between any device model and the software that uses it."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.devices.model import Bus, BusError, DeviceModel, InterruptLine


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


class Fault:
    """Something that is wrong with the device; by default nothing is."""

    def on_read(self, access: RegisterAccess) -> int:
        """Return what the software reads; raise BusError for nothing at all."""
        return access.value

    def on_write(self, access: RegisterAccess) -> int | None:
        """Return what arrives at the device, None for nothing; raise BusError for a refusal."""
        return access.value

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
        """May be exchanged between two accesses."""
        self.accesses: list[RegisterAccess] = []
        """All so far, with the values that the software wrote or got."""
        self._model = model
        self._line = _Line()
        model.attach(irq=self._line)

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        super().attach(bus=bus, irq=irq)
        self._line.listener = self.irq
        self._model.attach(bus=bus)

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
