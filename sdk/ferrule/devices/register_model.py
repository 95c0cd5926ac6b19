# SPDX-License-Identifier: Apache-2.0
"""Device models whose registers come from a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from ferrule._typing import override
from ferrule.devices.model import BusError, DeviceModel
from ferrule.devices.registers import Register, RegisterTable


class RegisterModel(DeviceModel):
    """Holds the register values and enforces the table's access rules; subclasses implement `on_read` and `on_write`.

    A subclass calls `reset` at the end of its own `__init__`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, int] = {}

    @property
    @abstractmethod
    def table(self) -> RegisterTable:
        """The device's register table."""

    @property
    @override
    def size_bytes(self) -> int:
        return self.table.size_bytes

    @override
    def register_name(self, offset: int) -> str:
        register = self.table.at(offset)
        return super().register_name(offset) if register is None else register.name

    @override
    def reset(self) -> None:
        self._values = {register.name: register.reset for register in self.table}
        self.irq.set(False)

    @override
    def read(self, offset: int, width: int) -> int:
        register, lanes, shift = self._find(offset, width, "read")
        if not register.readable:
            raise BusError(f"{self.table.name}: a read of {register.name}, which is write-only", address=offset)
        value = self.on_read(register)
        if hidden := register.unreadable_mask:
            value &= ~hidden
        if cleared := register.cleared_mask & lanes:
            old = self._values[register.name]
            self._values[register.name] = old & ~cleared
            self.on_read_clear(register, old, old & ~cleared)
        return value if lanes == register.mask else (value & lanes) >> shift

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        register, lanes, shift = self._find(offset, width, "write")
        if not register.writable:
            raise BusError(f"{self.table.name}: a write of {register.name}, which is read-only", address=offset)
        old = self._values[register.name]
        new = register.written(old, value << shift, lanes)
        self._values[register.name] = new
        self.on_write(register, old, new)
        if pulsed := register.pulse_mask:
            self._values[register.name] &= ~pulsed

    @override
    def registers(self) -> Mapping[str, int]:
        return dict(self._values)

    def on_read(self, register: Register) -> int:
        """Return the value that software reads, below 2^(size of the register); by default the stored value.

        For an element of an array, the register is an `ArrayElement` with the array's name and the index.
        """
        return self._values[register.name]

    def on_read_clear(self, register: Register, old: int, new: int) -> None:
        """React to a read that has cleared bits; the stored value is already `new`."""

    def on_write(self, register: Register, old: int, new: int) -> None:
        """React to a write by software; the stored value is already `new`. Fields that pulse are zero afterwards."""

    # ---- for subclasses: access rules do not apply

    def value(self, register: str) -> int:
        """Return a register's stored value."""
        return self._values[register]

    def set_value(self, register: str, value: int) -> None:
        """Set a register's stored value."""
        found = self.table.register(register)
        self._values[found.name] = value & found.mask

    def field(self, register: str, field: str) -> int:
        """Return a field's value."""
        return self.table.register(register).field(field).get(self._values[register])

    def set_field(self, register: str, field: str, number: int) -> None:
        """Set one field and leave the register's other fields unchanged."""
        spec = self.table.register(register).field(field)
        self._values[register] = (self._values[register] & ~spec.mask) | spec.put(number)

    def _find(self, offset: int, width: int, what: str) -> tuple[Register, int, int]:
        """Return the register that an access reaches, the bits that it covers, and the number of the lowest one."""
        register = self.table.at(offset)
        if register is not None and width == register.size_bytes:
            return register, register.mask, 0
        if self.table.narrow_accesses and not offset % width:
            register = self.table.covering(offset)
            if register is not None and width < register.size_bytes:
                shift = 8 * (offset - register.offset)
                return register, ((1 << 8 * width) - 1) << shift, shift
        reason = "where there is no register"
        if register is not None:
            most = "at most " if self.table.narrow_accesses and register.size_bytes > 1 else ""
            reason = f"expected {most}{register.size_bytes} B for {register.name}"
        raise BusError(f"{self.table.name}: a {what} of {width} B at offset {offset:#x}, {reason}", address=offset)
