# SPDX-License-Identifier: Apache-2.0
"""What a Renode platform description (.repl) says, as data; `parser.py` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.errors import FerruleError, unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range of addresses, `<begin, +size>` or `<begin, end>`."""

    begin: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The name of another entry, or of an enumeration's member: `nvic`, `Endianess.LittleEndian`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObject:
    """An object made in place: `new Type { name: value }`."""

    type: str
    properties: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dictionary:
    """A dictionary: `{ "left": 0; "right": 3.3 }`."""

    items: tuple[tuple[Value, Value], ...]
    """Keys and values, as they are written."""


Value = int | float | str | bool | None | Range | Reference | NewObject | Dictionary | tuple["Value", ...]
"""A property's value; None stands for Renode's `none` and `empty`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A place on a bus: `sysbus 0x4000_0000`."""

    bus: str
    point: Value = None
    """An address, a range, a NewObject without an address, or None where the bus needs none."""
    size_bytes: int | None = None
    properties: Mapping[str, Value] = field(default_factory=dict)
    """What else a `new Bus.BusPointRegistration {...}` says, `cpu` for instance."""

    @property
    def address(self) -> int | None:
        """First address, None if it is not a place in an address space."""
        if isinstance(self.point, Range):
            return self.point.begin
        return self.point if isinstance(self.point, int) and not isinstance(self.point, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """A line from an output of the entry to an input of another: `TxInterrupt -> nvic@1`."""

    source: str | int | None
    """Name or number of the output; None where the class has one only."""
    target: str
    index: int
    local: int | None = None
    """Number of the core in a `target#local@index`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Monitor commands of an entry, which only Renode runs."""

    kind: str
    """`init`, `init add`, `preinit` or `reset`."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """Where it is written, for messages."""
        return f"{self.file}:{self.line}"

    def integer(self, name: str) -> int | None:
        """Return a property that has to be an integer, None if it is absent."""
        value = self.properties.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise FerruleError(f"{self.place}: '{name}' of '{self.name}' has to be an integer")
        return value

    def text(self, name: str) -> str | None:
        """Return a property that has to be a string, None if it is absent."""
        value = self.properties.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise FerruleError(f"{self.place}: '{name}' of '{self.name}' has to be a string")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """All entries of a description, in the order in which they are first named."""

    file: Path
    files: tuple[Path, ...]
    """The file and all that it includes."""
    entries: Mapping[str, Entry]

    def entry(self, name: str) -> Entry:
        """Return an entry by name."""
        if name not in self.entries:
            raise unknown_name(f"entry of {self.file}", name, self.entries)
        return self.entries[name]

    def of_type(self, *types: str) -> tuple[Entry, ...]:
        """Return the entries of some Renode classes."""
        return tuple(entry for entry in self.entries.values() if entry.type in types)
