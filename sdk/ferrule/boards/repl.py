# SPDX-License-Identifier: Apache-2.0
"""The contents of a Renode platform description (.repl) as data; `parser.py` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, unknown_name


@frozen
class Range:
    """A range of addresses, `<begin, +size>` or `<begin, end>`."""

    begin: int
    size: int


@frozen
class Reference:
    """The name of another entry or of a member of an enumeration: `nvic`, `Endianess.LittleEndian`."""

    name: str


@frozen
class NewObject:
    """An object created in place: `new Type { name: value }`."""

    type: str
    properties: Mapping[str, Value]


@frozen
class Dictionary:
    """A dictionary: `{ "left": 0; "right": 3.3 }`."""

    items: tuple[tuple[Value, Value], ...]
    """Pairs of key and value, in the order of the file."""


Value = int | float | str | bool | None | Range | Reference | NewObject | Dictionary | tuple["Value", ...]
"""A property's value; None stands for Renode's `none` and `empty`."""


@frozen
class Registration:
    """A place on a bus: `sysbus 0x4000_0000`."""

    bus: str
    point: Value = None
    """An address, a range, a NewObject without an address, or None if the bus needs no address."""
    size_bytes: int | None = None
    properties: Mapping[str, Value] = field(default_factory=dict)
    """Further properties of a `new Bus.BusPointRegistration {...}`, such as `cpu`."""

    @property
    def address(self) -> int | None:
        """First address, or None if the registration has no address."""
        if isinstance(self.point, Range):
            return self.point.begin
        return self.point if isinstance(self.point, int) and not isinstance(self.point, bool) else None


@frozen
class Interrupt:
    """A connection from an output of the entry to an input of another: `TxInterrupt -> nvic@1`."""

    source: str | int | None
    """Name or number of the output; None if the class has only one."""
    target: str
    index: int
    local: int | None = None
    """Number of the core in `target#local@index`."""


@frozen
class Script:
    """Monitor commands of an entry, which only Renode runs."""

    kind: str
    """`init`, `init add`, `preinit` or `reset`."""
    lines: tuple[str, ...]


@frozen
class Entry:
    """A named object of the platform: a core, a memory, a peripheral."""

    name: str
    type: str
    registrations: tuple[Registration, ...] = ()
    properties: Mapping[str, Value] = field(default_factory=dict)
    interrupts: tuple[Interrupt, ...] = ()
    scripts: tuple[Script, ...] = ()
    file: Path
    line: int

    @property
    def place(self) -> str:
        """File and line of the entry, for messages."""
        return f"{self.file}:{self.line}"

    def integer(self, name: str) -> int | None:
        """Return an integer property, or None if it is absent; FerruleError for another type."""
        value = self.properties.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise FerruleError(f"{self.place}: '{name}' of '{self.name}' must be an integer")
        return value

    def text(self, name: str) -> str | None:
        """Return a string property, or None if it is absent; FerruleError for another type."""
        value = self.properties.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise FerruleError(f"{self.place}: '{name}' of '{self.name}' must be a string")
        return value


@frozen
class Platform:
    """All entries of a description, in the order of their first occurrence."""

    file: Path
    files: tuple[Path, ...]
    """The file and all files that it includes."""
    entries: Mapping[str, Entry]

    def entry(self, name: str) -> Entry:
        """Return an entry by name; FerruleError if there is none."""
        if name not in self.entries:
            raise unknown_name("entry", name, self.entries, where=f"in {self.file}")
        return self.entries[name]

    def of_type(self, *types: str) -> tuple[Entry, ...]:
        """Return the entries of the given Renode classes."""
        return tuple(entry for entry in self.entries.values() if entry.type in types)
