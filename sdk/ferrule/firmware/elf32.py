# SPDX-License-Identifier: Apache-2.0
"""The sections, symbols and relocations of a 32-bit little-endian ELF file that a compiler has just written."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ferrule.reading import read_bytes

_SYMBOLS, _RELOCATIONS = 2, 9
_ALLOCATED, _EXECUTABLE = 2, 4
_HEADER, _SECTION, _SYMBOL, _RELOCATION = (
    struct.Struct(f"<{fields}") for fields in ("32xI10xHHH", "10I", "IIIBBH", "II")
)
FUNCTION, SECTION, SOURCE = 2, 3, 4
"""Types of symbols."""


class ElfSection(NamedTuple):
    """A section's header."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size_bytes: int
    link: int
    info: int

    @property
    def is_allocated(self) -> bool:
        """Whether it occupies memory on the board."""
        return bool(self.flags & _ALLOCATED)

    @property
    def is_code(self) -> bool:
        """Whether the core executes it."""
        return bool(self.flags & _EXECUTABLE)


class ElfSymbol(NamedTuple):
    """A symbol of the table; `key` is its name, with the source file before it if other files cannot refer to it."""

    name: str
    key: str
    value: int
    size_bytes: int
    type: int
    section: int


class Relocation(NamedTuple):
    """A place in a section that the linker completes."""

    offset: int
    type: int
    symbol: int


class Elf32:
    """An ELF file read at once; struct.error, IndexError or UnicodeDecodeError if it is malformed."""

    def __init__(self, path: Path) -> None:
        self._data = read_bytes(path)
        (table, entry_bytes, count, names) = _HEADER.unpack_from(self._data)
        rows = [_SECTION.unpack_from(self._data, table + entry_bytes * index) for index in range(count)]
        strings = rows[names][4] if rows else 0
        self.sections = tuple(ElfSection(self._text(strings + name), *row[:7]) for name, *row in rows)

    def contents(self, section: ElfSection) -> bytes:
        """Return a section's bytes."""
        return self._data[section.offset : section.offset + section.size_bytes]

    @cached_property
    def symbols(self) -> tuple[ElfSymbol, ...]:
        """The symbol table, in its order."""
        return tuple(self._symbols())

    def relocations(self) -> Iterator[tuple[int, Iterator[Relocation]]]:
        """Yield the number of each section that has relocations, with these."""
        for section in self.sections:
            if section.type == _RELOCATIONS:
                rows = _RELOCATION.iter_unpack(self.contents(section))
                yield section.info, (Relocation(offset, info & 0xFF, info >> 8) for offset, info in rows)

    def _symbols(self) -> Iterator[ElfSymbol]:
        for section in self.sections:
            if section.type != _SYMBOLS:
                continue
            strings, source = self.sections[section.link].offset, ""
            for name_at, value, size, info, _, index in _SYMBOL.iter_unpack(self.contents(section)):
                name, kind = self._text(strings + name_at), info & 0xF
                if kind == SOURCE:
                    source = name
                key = name if info >> 4 else f"{source}:{name}"
                yield ElfSymbol(name, key, value, size, kind, index)

    def _text(self, at: int) -> str:
        return self._data[at : self._data.index(b"\0", at)].decode()
