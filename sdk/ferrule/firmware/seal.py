# SPDX-License-Identifier: Apache-2.0
"""Records the CRC-32 of a firmware's code, constants and weights in its ELF file, after the link.

This file needs nothing but Python, so that every build can run it: python3 seal.py firmware.elf
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = struct.pack("<II", 0x54535246, 1)
"""FERRULE_SELF_TEST_MAGIC and FERRULE_SELF_TEST_VERSION, of ferrule/self_test.h."""
RECORD_SYMBOL = "ferrule_self_test_record"
RANGES = 16
RECORD_BYTES = 16 + 16 * RANGES
PARTS = {1: "code", 2: "constants", 3: "weights", 4: "the record of the self-test"}
"""By enum ferrule_self_test_part."""
_CODE, _CONSTANTS, _WEIGHTS = 1, 2, 3
_NOBITS, _ALLOCATED, _EXECUTABLE = 8, 2, 4
_LOAD = 1


class SealError(Exception):
    """The file is no firmware with a record, or its record does not fit."""


class _Range(NamedTuple):
    start: int
    part: int
    at: int
    """Offset in the file."""
    size: int


def seal(data: bytes) -> bytes:
    """Return the ELF file with the record filled; the same for a file that is sealed already.

    Raises:
        SealError: it is no 32-bit little-endian ELF file, has no record or several, or has too many sections.
    """
    place = record_at(data)
    ranges = list(_ranges(data, place))
    if len(ranges) > RANGES:
        raise SealError(f"the firmware has {len(ranges)} sections to be tested, and the record has room for {RANGES}")
    rows = b"".join(
        struct.pack("<4I", each.start, each.size, each.part, zlib.crc32(data[each.at : each.at + each.size]))
        for each in ranges
    ).ljust(16 * RANGES, b"\0")
    record = MAGIC + struct.pack("<II", len(ranges), zlib.crc32(rows)) + rows
    return data[:place] + record + data[place + RECORD_BYTES :]


def damaged(data: bytes) -> tuple[str, ...] | None:
    """Return the parts of a sealed ELF file that differ from its record; None if nothing is recorded.

    Raises:
        SealError: as `seal`.
    """
    place = record_at(data)
    count, crc = struct.unpack_from("<II", data, place + len(MAGIC))
    rows = data[place + 16 : place + RECORD_BYTES]
    if not count and not any(rows):
        return None
    ranges = list(_ranges(data, place))
    if zlib.crc32(rows) != crc or count != len(ranges):
        return (PARTS[4],)
    wrong = []
    for row, each in zip(struct.iter_unpack("<4I", rows), ranges, strict=False):
        if row[:3] != (each.start, each.size, each.part):
            return (PARTS[4],)
        if zlib.crc32(data[each.at : each.at + each.size]) != row[3]:
            wrong.append(PARTS[each.part])
    return tuple(dict.fromkeys(wrong))


def record_at(data: bytes) -> int:
    """Return the offset of the record in the file; SealError if there is none or several."""
    sections = [section for section in _sections(data) if section[1] != _NOBITS and section[2] & _ALLOCATED]
    found = []
    for _, _, _, _, at, size in sections:
        place = data.find(MAGIC, at, at + size)
        while place >= 0:
            found.append(place)
            place = data.find(MAGIC, place + 1, at + size)
    if len(found) != 1:
        raise SealError(
            f"the firmware has {len(found)} records of a self-test, expected one: it was generated without one"
        )
    if found[0] + RECORD_BYTES > len(data):
        raise SealError("the record of the self-test is cut off")
    return found[0]


def _ranges(data: bytes, record: int) -> Iterator[_Range]:
    """Yield what does not change on the board, by address: the contents of sections, without the record."""
    found = []
    for name, kind, flags, address, at, size in _sections(data):
        if kind == _NOBITS or not flags & _ALLOCATED or not size:
            continue
        part = _CODE if flags & _EXECUTABLE else _WEIGHTS if b"weights" in name else _CONSTANTS
        load = _load_address(data, address)
        for first, end in ((at, min(at + size, record)), (max(at, record + RECORD_BYTES), at + size)):
            if at <= record < at + size and first < end:
                found.append(_Range(load + first - at, part, first, end - first))
        if not at <= record < at + size:
            found.append(_Range(load, part, at, size))
    yield from sorted(found)


def _sections(data: bytes) -> Iterator[tuple[bytes, int, int, int, int, int]]:
    """Yield name, type, flags, address, offset and size of each section."""
    if data[:6] != b"\x7fELF\x01\x01":
        raise SealError("it is no 32-bit little-endian ELF file")
    try:
        (table,) = struct.unpack_from("<I", data, 32)
        size, count, names = struct.unpack_from("<3H", data, 46)
        rows = [struct.unpack_from("<6I", data, table + size * index) for index in range(count)]
        texts = rows[names][4]
        for name, kind, flags, address, at, length in rows:
            if kind != _NOBITS and at + length > len(data):
                raise SealError("a section is beyond the end of the file")
            yield data[texts + name : data.index(b"\0", texts + name)], kind, flags, address, at, length
    except (struct.error, IndexError, ValueError):
        raise SealError("its table of sections is malformed") from None


def _load_address(data: bytes, address: int) -> int:
    """Return where the contents of an address are before the start-up copies them."""
    table = struct.unpack_from("<I", data, 28)[0]
    size, count = struct.unpack_from("<2H", data, 42)
    for index in range(count):
        kind, _, virtual, physical, length = struct.unpack_from("<5I", data, table + size * index)
        if kind == _LOAD and virtual <= address < virtual + length:
            return int(physical + address - virtual)
    return address


def seal_file(path: Path) -> None:
    """Seal a file in place; it is replaced as a whole. Raises SealError as `seal`, or OSError."""
    data = path.read_bytes()
    sealed = seal(data)
    if sealed == data:
        return
    beside = path.with_name(f".{path.name}.sealed")
    try:
        beside.write_bytes(sealed)
        beside.chmod(path.stat().st_mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    """Seal the files that are named; 0, or 2 if one cannot be sealed."""
    for name in arguments:
        try:
            seal_file(Path(name))
        except (SealError, OSError) as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 2
    if not arguments:
        sys.stderr.write("usage: python3 seal.py firmware.elf\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
