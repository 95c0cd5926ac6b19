# SPDX-License-Identifier: Apache-2.0
"""What an engine reads from a firmware's ELF file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ferrule.errors import FerruleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Bytes that stand in memory before reset."""

    address: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A linked firmware."""

    segments: tuple[Segment, ...]
    symbols: Mapping[str, int]
    """Address of every named symbol, the Thumb bit cleared."""
    functions: tuple[tuple[int, int, str], ...]
    """(address, size in bytes, name), sorted; size 0 where the assembler stated none."""

    def symbol_at(self, address: int) -> str:
        """Return the nearest function at or below an address with the offset into it, `?` where there is none."""
        index = bisect_right(self.functions, (address, 1 << 32, "")) - 1
        if index < 0:
            return "?"
        start, size, name = self.functions[index]
        if size and address >= start + size:
            return "?"
        return name if address == start else f"{name}+0x{address - start:x}"

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return initial contents; empty where no segment holds them all."""
        for segment in self.segments:
            offset = address - segment.address
            if offset >= 0 and offset + size_bytes <= len(segment.data):
                return segment.data[offset : offset + size_bytes]
        return b""


def load_image(path: Path) -> Image:
    """Read an ELF file for a 32-bit little-endian Arm core.

    Raises:
        FerruleError: the file can't be read, or is something else.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf["e_machine"] != "EM_ARM" or elf.elfclass != 32 or not elf.little_endian:
                raise FerruleError(f"{path} is not a 32-bit little-endian Arm ELF", hint="build it for the board first")
            return Image(segments=_segments(elf), symbols=_symbols(elf), functions=_functions(elf))
    except OSError as error:
        raise FerruleError(f"can't read the firmware {path}: {error.strerror}") from error
    except ELFError as error:
        raise FerruleError(f"{path} is not a valid ELF file: {error}") from error


def _segments(elf: object) -> tuple[Segment, ...]:
    return tuple(
        Segment(address=segment["p_paddr"], data=segment.data())
        for segment in elf.iter_segments("PT_LOAD")  # type: ignore[attr-defined]
        if segment["p_filesz"]
    )


def _table(elf: object) -> list[tuple[str, int, int, str]]:
    section = elf.get_section_by_name(".symtab")  # type: ignore[attr-defined]
    if section is None:
        return []
    return [
        (symbol.name, symbol["st_value"], symbol["st_size"], symbol["st_info"]["type"])
        for symbol in section.iter_symbols()
        if symbol.name and symbol["st_shndx"] != "SHN_UNDEF"
    ]


def _symbols(elf: object) -> dict[str, int]:
    return {
        name: value & ~1 if kind == "STT_FUNC" else value
        for name, value, _size, kind in _table(elf)
        if not name.startswith("$")
    }


def _functions(elf: object) -> tuple[tuple[int, int, str], ...]:
    found = ((value & ~1, size, name) for name, value, size, kind in _table(elf) if kind == "STT_FUNC")
    return tuple(sorted(found))
