# SPDX-License-Identifier: Apache-2.0
"""Device models whose registers come from a table."""

from __future__ import annotations

from abc import abstractmethod

from ferrule._typing import override
from ferrule.devices.model import BusError, DeviceModel
from ferrule.devices.registers import REGISTER_BYTES, Access, Register, RegisterTable

_MASK = 0xFFFF_FFFF


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
        register = self._find(offset, width, "read")
        if register.access is Access.WRITE_ONLY:
            raise BusError(f"{self.table.name}: a read of {register.name}, which is write-only", address=offset)
        return self.on_read(register)

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        register = self._find(offset, width, "write")
        if register.access is Access.READ_ONLY:
            raise BusError(f"{self.table.name}: a write of {register.name}, which is read-only", address=offset)
        old = self._values[register.name]
        if register.access is Access.CLEAR_BY_ONE:
            new = old & ~value
        else:
            new = (old & ~register.writable_mask) | (value & register.writable_mask)
        self._values[register.name] = new
        self.on_write(register, old, new)

    def on_read(self, register: Register) -> int:
        """Return the value that software reads, 0 to 2^32 - 1; by default the stored value."""
        return self._values[register.name]

    def on_write(self, register: Register, old: int, new: int) -> None:
        """React to a write by software; the stored value is already `new`."""

    # ---- for subclasses: access rules do not apply

    def value(self, register: str) -> int:
        """Return a register's stored value."""
        return self._values[register]

    def set_value(self, register: str, value: int) -> None:
        """Set a register's stored value."""
        self._values[self.table.register(register).name] = value & _MASK

    def field(self, register: str, field: str) -> int:
        """Return a field's value."""
        return self.table.register(register).field(field).get(self._values[register])

    def set_field(self, register: str, field: str, number: int) -> None:
        """Set one field and leave the register's other fields unchanged."""
        spec = self.table.register(register).field(field)
        self._values[register] = (self._values[register] & ~spec.mask) | spec.put(number)

    def _find(self, offset: int, width: int, what: str) -> Register:
        register = self.table.at(offset)
        if register is None or width != REGISTER_BYTES:
            raise BusError(
                f"{self.table.name}: a {what} of {width} B at offset {offset:#x}, "
                + ("where there is no register" if register is None else f"expected 4 B for {register.name}"),
                address=offset,
            )
        return register
