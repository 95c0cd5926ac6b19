# SPDX-License-Identifier: Apache-2.0
"""Register tables: declarations of registers, from which access rules, C headers and pages are derived."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, field
from enum import StrEnum

from ferrule._frozen import frozen, positional
from ferrule.errors import FerruleError

REGISTER_BYTES = 4
ELEMENTS = 1 << 16
"""Largest number of registers in a table, with every element of its arrays."""
_SIZES = (8, 16, 32)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INDEX = re.compile(r"[A-Za-z0-9_]+")


class Access(StrEnum):
    """The accesses that software may make to a register or a field; any other access to a register is a bus error."""

    READ_WRITE = "rw"
    READ_ONLY = "ro"
    WRITE_ONLY = "wo"
    CLEAR_BY_ONE = "w1c"
    """A read returns the bits; writing a one clears the bit."""
    SET_BY_ONE = "w1s"
    """A read returns the bits; writing a one sets the bit."""


class Usage(StrEnum):
    """The accesses for which an enumerated value has its meaning."""

    READ_WRITE = "read-write"
    READ = "read"
    WRITE = "write"


@frozen
class EnumeratedValue:
    """A number of a field that has a name."""

    name: str
    """Name in upper case, unique within the field."""
    value: int
    """The number, which the field's bits hold."""
    usage: Usage = Usage.READ_WRITE
    doc: str = ""


@positional
class Field:
    """Adjacent bits of a register."""

    name: str
    """Name in upper case."""
    bit: int
    """Number of the lowest bit."""
    _: KW_ONLY
    width: int = 1
    """Number of bits."""
    doc: str = ""
    access: Access | None = None
    """The accesses to these bits; None: those of the register.

    A write leaves the bits of a read-only field unchanged, and those of a write-only field are read as zeros.
    """
    read_clears: bool = False
    """Whether a read of the register clears the field."""
    pulses: bool = False
    """Whether a written number lasts only while the model reacts to the write; software reads zeros."""
    values: tuple[EnumeratedValue, ...] = ()
    """The numbers that have names."""

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

    def value(self, name: str) -> int:
        """Return the number that has a name; FerruleError if there is none."""
        for each in self.values:
            if each.name == name:
                return each.value
        raise FerruleError(f"field {self.name} has no value {name}: it has {', '.join(v.name for v in self.values)}")


@positional
class Register:
    """A register of the window, or an array of them."""

    name: str
    """Name in upper case, a C identifier; the name of an array contains `%s`, in place of which elements have an index.
    """
    offset: int
    """Offset from the start of the window in bytes, a multiple of the register's size."""
    _: KW_ONLY
    access: Access = Access.READ_WRITE
    reset: int = 0
    """Value after a reset."""
    fields: tuple[Field, ...] = ()
    """Fields, the lowest first; without fields the register holds a single number."""
    doc: str = ""
    size_bits: int = 32
    """Size: 8, 16 or 32 bits."""
    read_clears: bool = False
    """Whether a read clears the register."""
    dim: int = 0
    """Number of elements of an array; 0 for a single register."""
    increment: int = 0
    """Distance between the offsets of neighbouring elements in bytes."""
    indices: tuple[str, ...] = ()
    """Indices in the names of an array's elements; by default 0, 1, 2 and so on."""

    @property
    def size_bytes(self) -> int:
        """Size in bytes."""
        return self.size_bits // 8

    @property
    def mask(self) -> int:
        """All bits of the register."""
        return (1 << self.size_bits) - 1

    @property
    def readable(self) -> bool:
        """Whether software may read the register, or one of its fields."""
        return self._some_allow(Access.WRITE_ONLY)

    @property
    def writable(self) -> bool:
        """Whether software may write the register, or one of its fields."""
        return self._some_allow(Access.READ_ONLY)

    def _some_allow(self, other: Access) -> bool:
        return self.access is not other or any(each.access not in {None, other} for each in self.fields)

    @property
    def unreadable_mask(self) -> int:
        """The bits of write-only fields."""
        return sum(each.mask for each in self.fields if each.access is Access.WRITE_ONLY)

    @property
    def cleared_mask(self) -> int:
        """The bits that a read clears."""
        return self.mask if self.read_clears else sum(each.mask for each in self.fields if each.read_clears)

    @property
    def pulse_mask(self) -> int:
        """The bits that return to zero after the model has reacted to a write."""
        return sum(each.mask for each in self.fields if each.pulses)

    def written(self, old: int, value: int, lanes: int) -> int:
        """Return the stored value after a write of `value`, which covers the bits `lanes`, over `old`."""
        new, rest = old, self.mask
        for each in self.fields:
            new = _written(each.access or self.access, new, value, each.mask & lanes)
            rest &= ~each.mask
        if not self.fields or self.access is Access.CLEAR_BY_ONE:
            new = _written(self.access, new, value, rest & lanes)
        return new

    def field(self, name: str) -> Field:
        """Return a field by name; FerruleError if there is none."""
        for each in self.fields:
            if each.name == name:
                return each
        raise FerruleError(f"register {self.name} has no field {name}: it has {', '.join(f.name for f in self.fields)}")

    def elements(self) -> tuple[Register, ...]:
        """Return the elements of an array as single registers; a single register is its own only element."""
        if not self.dim:
            return (self,)
        copied = {name: getattr(self, name) for name in _COPIED}
        indices = self.indices or map(str, range(self.dim))
        return tuple(
            ArrayElement(
                **copied,
                name=self.name.replace("%s", index),
                offset=self.offset + number * self.increment,
                array=self.name,
                index=number,
            )
            for number, index in enumerate(indices)
        )


@frozen
class ArrayElement(Register):
    """An element of an array of registers, as tables return it."""

    array: str
    """Name of the array, with `%s`."""
    index: int
    """Position in the array, from 0 on."""


_COPIED = ("access", "reset", "fields", "doc", "size_bits", "read_clears")


def _written(access: Access, old: int, value: int, mask: int) -> int:
    match access:
        case Access.CLEAR_BY_ONE:
            return old & ~(value & mask)
        case Access.SET_BY_ONE:
            return old | (value & mask)
        case Access.READ_ONLY:
            return old
        case _:
            return (old & ~mask) | (value & mask)


@frozen
class RegisterTable:
    """All registers of a device.

    Iteration and the search by name and by offset treat the elements of arrays as single registers.

    Raises:
        FerruleError: a name is no C identifier, an offset is not a multiple of the register's size or lies outside the
            window, a name occurs twice, registers or fields overlap, fields exceed their register, a value exceeds its
            register or field, or an array is malformed.
    """

    name: str
    """Name of the device; in upper case it is the prefix of C names."""
    registers: tuple[Register, ...]
    size_bytes: int = 0x1000
    """Size of the window."""
    narrow_accesses: bool = False
    """Whether software may access aligned bytes and halfwords of larger registers; otherwise this is a bus error."""
    doc: str = ""
    _by_byte: Mapping[int, Register] = field(init=False, repr=False, compare=False, default_factory=dict)
    _by_name: Mapping[str, Register] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        _check_name(self.name, self.name)
        by_byte: dict[int, Register] = {}
        by_name: dict[str, Register] = {}
        count = 0
        for declared in self.registers:
            where = f"{self.name}.{declared.name}"
            _check_register(where, declared)
            count += declared.dim or 1
            if count > ELEMENTS:
                raise FerruleError(f"{where}: {self.name} has more than {ELEMENTS} registers")
            for register in declared.elements():
                self._check_place(f"{self.name}.{register.name}", register, by_byte)
                if by_name.setdefault(register.name, register) is not register:
                    raise FerruleError(f"{self.name}.{register.name} is declared twice")
        object.__setattr__(self, "_by_byte", by_byte)
        object.__setattr__(self, "_by_name", by_name)

    def _check_place(self, where: str, register: Register, by_byte: dict[int, Register]) -> None:
        offset, size = register.offset, register.size_bytes
        if offset % size or not 0 <= offset <= self.size_bytes - size:
            raise FerruleError(f"{where} is at {offset:#x}, expected a multiple of {size} below {self.size_bytes:#x}")
        for byte in range(offset, offset + size):
            if by_byte.setdefault(byte, register) is not register:
                raise FerruleError(f"{where} is at {offset:#x}, where {by_byte[byte].name} is")

    def __iter__(self) -> Iterator[Register]:
        return iter(self._by_name.values())

    def register(self, name: str) -> Register:
        """Return a register by name; FerruleError if there is none."""
        found = self._by_name.get(name)
        if found is None:
            raise FerruleError(f"{self.name} has no register {name}: it has {', '.join(r.name for r in self)}")
        return found

    def at(self, offset: int) -> Register | None:
        """Return the register at an offset, or None."""
        found = self._by_byte.get(offset)
        return found if found is not None and found.offset == offset else None

    def covering(self, offset: int) -> Register | None:
        """Return the register one of whose bytes is at an offset, or None."""
        return self._by_byte.get(offset)


def _check_name(where: str, name: str, pattern: re.Pattern[str] = _NAME) -> None:
    if pattern.fullmatch(name) is None:
        raise FerruleError(f"{where}: {name!a} is not a name", hint="use ASCII letters, digits and underscores")


def _check_register(where: str, register: Register) -> None:
    if register.size_bits not in _SIZES:
        raise FerruleError(f"{where} has {register.size_bits} bits, expected 8, 16 or 32")
    if not 0 <= register.reset <= register.mask:
        raise FerruleError(f"{where} has the reset value {register.reset:#x}, expected {register.size_bits} bits")
    if isinstance(register, ArrayElement):
        raise FerruleError(f"{where} is an element of an array", hint="declare the array")
    _check_array(where, register)
    taken = 0
    names: set[str] = set()
    for each in register.fields:
        place = f"{where}.{each.name}"
        _check_name(place, each.name)
        if each.width < 1 or each.bit < 0 or each.bit + each.width > register.size_bits:
            raise FerruleError(f"{place} has bits {each.bit} to {each.bit + each.width - 1} of {register.size_bits}")
        if taken & each.mask:
            raise FerruleError(f"{place} overlaps another field")
        if each.name in names:
            raise FerruleError(f"{place} is declared twice")
        if each.pulses and (each.access or register.access) is Access.READ_ONLY:
            raise FerruleError(f"{place} pulses, but software cannot write it")
        if each.pulses and register.reset & each.mask:
            raise FerruleError(f"{place} pulses, so its reset value is zero, found {each.get(register.reset):#x}")
        taken |= each.mask
        names.add(each.name)
        _check_values(place, each)


def _check_array(where: str, register: Register) -> None:
    if not register.dim:
        _check_name(where, register.name)
        if register.increment or register.indices:
            raise FerruleError(f"{where} has an increment or indices, but no dim", hint="state dim")
        return
    if register.name.count("%s") != 1:
        raise FerruleError(f"{where} is an array, but its name has not one %s", hint="such as CHANNEL%s_COUNT")
    if not 0 < register.dim <= ELEMENTS:
        raise FerruleError(f"{where} has {register.dim} elements, expected 1 to {ELEMENTS}")
    if register.indices and len(register.indices) != register.dim:
        raise FerruleError(f"{where} has {register.dim} elements and {len(register.indices)} indices")
    for index in register.indices:
        _check_name(f"{where}: an index", index, _INDEX)
    _check_name(where, register.name.replace("%s", register.indices[0] if register.indices else "0"))
    if register.increment < register.size_bytes and register.dim > 1:
        raise FerruleError(f"{where} has the increment {register.increment}, expected {register.size_bytes} or more")


def _check_values(where: str, field_: Field) -> None:
    names: set[str] = set()
    for each in field_.values:
        _check_name(f"{where}.{each.name}", each.name, _INDEX)
        if not 0 <= each.value < 1 << field_.width:
            raise FerruleError(f"{where}.{each.name} is {each.value}, expected 0 to {(1 << field_.width) - 1}")
        if each.name in names:
            raise FerruleError(f"{where}.{each.name} is declared twice")
        if (each.usage is Usage.READ_WRITE) is not (field_.values[0].usage is Usage.READ_WRITE):
            raise FerruleError(f"{where} has values for both accesses, and values for one of them")
        names.add(each.name)
