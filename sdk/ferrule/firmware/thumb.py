# SPDX-License-Identifier: Apache-2.0
"""The instructions of a firmware, which the ELF's mapping symbols tell from data."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ferrule.firmware.elf32 import Elf32

WIDE = 0xE800
"""First halfwords from this value on begin an instruction of 32 bits (Armv7-M ARM, A5.1)."""
_CODE, _DATA = "$t", "$d"
_ZERO_REGISTER = 15


class Instruction(NamedTuple):
    """A Thumb instruction; `second` is 0 for one of 16 bits."""

    address: int
    first: int
    second: int

    @property
    def size_bytes(self) -> int:
        """Its length: 2 or 4."""
        return 4 if self.first >= WIDE else 2

    @property
    def selects_zero(self) -> bool:
        """Whether it is CSEL, CSINC, CSINV or CSNEG with the zero register, such as CSET (Armv8-M ARM, C2.4)."""
        if self.first & 0xFFF0 != 0xEA50 or self.second & 0xC000 != 0x8000:
            return False
        return _ZERO_REGISTER in {self.first & 0xF, self.second & 0xF}


def instructions(elf: Path) -> Iterator[Instruction]:
    """Yield the instructions of an ELF file's executable sections, by address within each section."""
    file = Elf32(elf)
    for index, section in enumerate(file.sections):
        marks = sorted(
            (symbol.value, symbol.name[:2] == _CODE)
            for symbol in file.symbols
            if symbol.section == index and symbol.name[:2] in {_CODE, _DATA} and symbol.name[2:3] in {"", "."}
        )
        if section.is_code and marks:
            yield from _decode(file.contents(section), section.address, marks)


def _decode(data: bytes, address: int, marks: list[tuple[int, bool]]) -> Iterator[Instruction]:
    ends = [start for start, _ in marks[1:]] + [address + len(data)]
    for (start, is_code), end in zip(marks, ends, strict=True):
        at = start - address
        while is_code and at + 2 <= end - address:
            (first,) = struct.unpack_from("<H", data, at)
            wide = first >= WIDE and at + 4 <= len(data)
            (second,) = struct.unpack_from("<H", data, at + 2) if wide else (0,)
            yield Instruction(address + at, first, second)
            at += 4 if wide else 2
