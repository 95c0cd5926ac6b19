# SPDX-License-Identifier: Apache-2.0
"""Register tables: declarations that define access rules and generate a C header and documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ferrule.errors import FerruleError

REGISTER_BYTES = 4
_MASK = 0xFFFF_FFFF


class Access(StrEnum):
    """The accesses that software may make to a register; any other is a bus error."""

    READ_WRITE = "rw"
    READ_ONLY = "ro"
    WRITE_ONLY = "wo"
    CLEAR_BY_ONE = "w1c"
    """A read returns the bits; writing a one clears the bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Adjacent bits of a register."""

    name: str
    """Name in upper case."""
    bit: int
    """Number of the lowest bit."""
    width: int = 1
    """Number of bits."""
    doc: str = ""

    @property
    def mask(self) -> int:
        """The field's bits within the register."""
        return ((1 << self.width) - 1) << self.bit

    def get(self, value: int) -> int:
        """Extract the field from a register's value."""
        return (value & self.mask) >> self.bit

    def put(self, number: int) -> int:
        """Return a number shifted to the field's position; FerruleError if it does not fit."""
        if not 0 <= number < 1 << self.width:
            raise FerruleError(f"field {self.name} holds 0 to {(1 << self.width) - 1}, found {number}")
        return number << self.bit


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """One 32-bit word of the register window."""

    name: str
    """Name in upper case, a C identifier."""
    offset: int
    """Offset from the start of the window in bytes, a multiple of 4."""
    access: Access = Access.READ_WRITE
    reset: int = 0
    """Value after a reset."""
    fields: tuple[Field, ...] = ()
    """Fields, the lowest first; without fields the register holds a single number."""
    doc: str = ""

    @property
    def writable_mask(self) -> int:
        """The bits that a write can change: those of the fields, or all bits if there are no fields."""
        if not self.fields:
            return _MASK
        mask = 0
        for field in self.fields:
            mask |= field.mask
        return mask

    def field(self, name: str) -> Field:
        """Return a field by name; FerruleError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise FerruleError(f"register {self.name} has no field {name}: it has {', '.join(f.name for f in self.fields)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTable:
    """All registers of a device, at most one per word.

    Raises:
        FerruleError: an offset is not a multiple of 4 or lies outside the window, a name or an offset occurs twice,
            fields overlap or exceed their register, or a reset value exceeds 32 bits.
    """

    name: str
    """Name of the device; in upper case it is the prefix of C names."""
    registers: tuple[Register, ...]
    size_bytes: int = 0x1000
    """Size of the window."""

    def __post_init__(self) -> None:
        offsets: dict[int, str] = {}
        names: set[str] = set()
        for register in self.registers:
            where = f"{self.name}.{register.name}"
            if register.offset % REGISTER_BYTES or not 0 <= register.offset < self.size_bytes:
                raise FerruleError(
                    f"{where} is at {register.offset:#x}, expected a multiple of 4 below {self.size_bytes:#x}"
                )
            if register.offset in offsets:
                raise FerruleError(f"{where} is at {register.offset:#x}, where {offsets[register.offset]} is")
            if register.name in names:
                raise FerruleError(f"{where} is declared twice")
            _check_fields(where, register)
            offsets[register.offset] = register.name
            names.add(register.name)

    def __iter__(self) -> Iterator[Register]:
        return iter(self.registers)

    def register(self, name: str) -> Register:
        """Return a register by name; FerruleError if there is none."""
        for register in self.registers:
            if register.name == name:
                return register
        raise FerruleError(f"{self.name} has no register {name}: it has {', '.join(r.name for r in self.registers)}")

    def at(self, offset: int) -> Register | None:
        """Return the register at an offset, or None."""
        for register in self.registers:
            if register.offset == offset:
                return register
        return None


def _check_fields(where: str, register: Register) -> None:
    taken = 0
    if not 0 <= register.reset <= _MASK:
        raise FerruleError(f"{where} has the reset value {register.reset:#x}, expected 32 bits")
    for field in register.fields:
        if field.width < 1 or field.bit < 0 or field.bit + field.width > 32:
            raise FerruleError(f"{where}.{field.name} has bits {field.bit} to {field.bit + field.width - 1} of 32")
        if taken & field.mask:
            raise FerruleError(f"{where}.{field.name} overlaps another field")
        taken |= field.mask


def c_header(table: RegisterTable) -> str:
    """Return a C header for drivers with the offsets, reset values and fields."""
    prefix = table.name.upper()
    guard = f"{prefix}_REGISTERS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/** @file Registers of {table.name}, as offsets in bytes; made from its register table. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {prefix}_WINDOW_BYTES {table.size_bytes:#x}u",
    ]
    for register in table:
        name = f"{prefix}_{register.name}"
        lines += ["", f"/* {_line(register.doc)}{'; ' if register.doc else ''}{_ACCESS[register.access]} */"]
        rows = [(name, f"{register.offset:#04x}u")]
        if register.reset:
            rows.append((f"{name}_RESET", f"{register.reset:#x}u"))
        for field in register.fields:
            if field.width == 1:
                rows.append((f"{name}_{field.name}", f"(1u << {field.bit})"))
            else:
                rows += [
                    (f"{name}_{field.name}_SHIFT", str(field.bit) + "u"),
                    (f"{name}_{field.name}_MASK", f"{field.mask:#x}u"),
                ]
        width = max(len(left) for left, _ in rows)
        lines += [f"#define {left:<{width}} {right}" for left, right in rows]
    return "\n".join([*lines, "", f"#endif /* {guard} */", ""])


def documentation(table: RegisterTable) -> str:
    """Return the registers as a Markdown table."""
    lines = [
        f"## Registers of {table.name}",
        "",
        f"32 bits each, little-endian, in a window of {table.size_bytes} bytes. Any other access is a bus error.",
        "",
        "| offset | register | access | after reset | what |",
        "|---|---|---|---|---|",
    ]
    for register in table:
        cells = (f"{register.offset:#05x}", register.name, register.access, f"{register.reset:#010x}", register.doc)
        lines.append(f"| {' | '.join(cells)} |")
        for field in register.fields:
            bits = str(field.bit) if field.width == 1 else f"{field.bit + field.width - 1}:{field.bit}"
            lines.append(f"| | {register.name}.{field.name} | | | bits {bits}: {field.doc} |")
    return "\n".join([*lines, ""])


_ACCESS = {
    Access.READ_WRITE: "read and write",
    Access.READ_ONLY: "read only",
    Access.WRITE_ONLY: "write only",
    Access.CLEAR_BY_ONE: "read; a one clears",
}


def _line(text: str) -> str:
    return text.replace("*/", "* /")
