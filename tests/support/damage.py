# SPDX-License-Identifier: Apache-2.0
"""Damaged firmware: an ELF file with one thing changed, as decay, mistakes or an attacker would."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from ferrule.firmware import seal
from ferrule.firmware.image import read_image

Damage = Callable[[bytes, Path], bytes]
"""From the contents of an ELF file, and its path, to the damaged contents."""
_SECTION = struct.Struct("<10I")


def _sections(data: bytes) -> Mapping[str, tuple[int, int, int]]:
    """Return the place of the header, the offset and the size of each section."""
    (table,) = struct.unpack_from("<I", data, 32)
    _, count, names = struct.unpack_from("<3H", data, 46)
    rows = [_SECTION.unpack_from(data, table + 40 * index) for index in range(count)]
    texts = rows[names][4]
    name = [data[texts + row[0] : data.index(b"\0", texts + row[0])].decode() for row in rows]
    return {name[index]: (table + 40 * index, row[4], row[5]) for index, row in enumerate(rows)}


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    """Return the data with one bit inverted."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def in_section(name: str, share: float, bit: int = 0) -> Damage:
    """Flip a bit of a section, at a share of its size."""

    def damaged(data: bytes, _: Path) -> bytes:
        _header, offset, size = _sections(data)[name]
        return flip(data, offset + int(share * (size - 1)), bit)

    return damaged


def at_the_end(name: str, bit: int = 0) -> Damage:
    """Flip a bit of the last byte of a section that belongs to an object; padding may follow."""

    def damaged(data: bytes, path: Path) -> bytes:
        image = read_image(path)
        section = next(each for each in image.sections if each.name == name)
        inside = range(section.address, section.address + section.size_bytes)
        end = max(each.address + each.size_bytes for each in image.symbols if each.address in inside)
        return flip(data, _sections(data)[name][1] + end - 1 - section.address, bit)

    return damaged


def in_symbol(suffix: str, at: int = 0, bit: int = 0) -> Damage:
    """Flip a bit of the first function or object whose name ends so."""

    def damaged(data: bytes, path: Path) -> bytes:
        image = read_image(path)
        symbol = next(each for each in image.symbols if each.name.endswith(suffix) and each.size_bytes > at)
        section = next(
            each for each in image.sections if each.address <= symbol.address < each.address + each.size_bytes
        )
        _, offset, _ = _sections(data)[section.name]
        return flip(data, offset + symbol.address - section.address + at, bit)

    return damaged


def of_text(old: bytes, new: bytes) -> Damage:
    """Replace a text of the same length."""

    def damaged(data: bytes, _: Path) -> bytes:
        assert len(old) == len(new)
        assert old in data
        return data.replace(old, new, 1)

    return damaged


def _entry(data: bytes, _: Path) -> bytes:
    return data[:24] + struct.pack("<I", struct.unpack_from("<I", data, 24)[0] + 4) + data[28:]


def _moved(data: bytes, _: Path) -> bytes:
    """Load the first segment 16 bytes further."""
    (table,) = struct.unpack_from("<I", data, 28)
    size, count = struct.unpack_from("<2H", data, 42)
    for index in range(count):
        at = table + size * index
        if struct.unpack_from("<I", data, at)[0] == 1:
            (place,) = struct.unpack_from("<I", data, at + 12)
            return data[: at + 12] + struct.pack("<I", place + 16) + data[at + 16 :]
    raise AssertionError("no segment is loaded")


def _swapped(data: bytes, _: Path) -> bytes:
    """Exchange the two halves of the weights."""
    _header, offset, size = _sections(data)[".ferrule_weights"]
    half = size // 2
    whole = data[offset : offset + size]
    return data[:offset] + whole[half : 2 * half] + whole[:half] + whole[2 * half :] + data[offset + size :]


def _zeroed(data: bytes, _: Path) -> bytes:
    _header, offset, size = _sections(data)[".ferrule_weights"]
    return data[:offset] + bytes(size) + data[offset + size :]


def _shorter(data: bytes, _: Path) -> bytes:
    """Let the section of the weights end 8 bytes earlier."""
    header, _offset, size = _sections(data)[".ferrule_weights"]
    return data[: header + 20] + struct.pack("<I", size - 8) + data[header + 24 :]


def resealed(damage: Damage) -> Damage:
    """Damage a firmware, and record the CRC of the damaged parts, as an attacker would."""
    return lambda data, path: seal.seal(damage(data, path))


def _unrecorded(data: bytes, _: Path) -> bytes:
    at = seal.record_at(data) + len(seal.MAGIC)
    end = at - len(seal.MAGIC) + seal.RECORD_BYTES
    return data[:at] + bytes(end - at) + data[end:]


def _forgetful(data: bytes, _: Path) -> bytes:
    """Let the record forget all ranges but the first, with a CRC that fits."""
    at = seal.record_at(data)
    rows = data[at + 16 : at + 32].ljust(16 * seal.RANGES, b"\0")
    record = seal.MAGIC + struct.pack("<II", 1, zlib.crc32(rows)) + rows
    return data[:at] + record + data[at + seal.RECORD_BYTES :]


DAMAGES: Mapping[str, Damage] = {
    "code: first instruction of the model": in_symbol("_run", 0, 3),
    "code: in the middle": in_section(".text", 0.5, 5),
    "code: last byte": in_section(".text", 1.0, 7),
    "code: main": in_symbol("main", 6, 1),
    "code: memcpy": in_symbol("memcpy", 2, 2),
    "vector table: stack pointer": in_section(".text", 0.0, 4),
    "vector table: reset": lambda data, _: flip(data, _sections(data)[".text"][1] + 5, 1),
    "vector table: hard fault": lambda data, _: flip(data, _sections(data)[".text"][1] + 12, 3),
    "weights: lowest bit of the first byte": in_section(".ferrule_weights", 0.0, 0),
    "weights: sign of the last byte": at_the_end(".ferrule_weights", 7),
    "weights: halves exchanged": _swapped,
    "weights: all zero": _zeroed,
    "constants: first byte": in_section(".rodata", 0.0, 0),
    "constants: in the middle": in_section(".rodata", 0.5, 6),
    "constants: last byte": in_section(".rodata", 1.0, 1),
    "identity: digest of the model": in_section(".ferrule_identity", 0.05, 0),
    "identity: board": of_text(b"mps2-an386", b"mps2-an387"),
    "sizes: stack": lambda data, _: flip(data, _sections(data)[".ferrule_sizes"][1] + 25, 0),
    "sizes: code": in_section(".ferrule_sizes", 0.0, 2),
    "file: entry": _entry,
    "file: segment at another address": _moved,
    "file: shorter section": _shorter,
}
"""What any firmware can suffer."""
RECORDED: Mapping[str, Damage] = {
    "record: not filled": _unrecorded,
    "record: CRC of all": lambda data, _: flip(data, seal.record_at(data) + 12, 0),
    "record: a range": lambda data, _: flip(data, seal.record_at(data) + 16, 5),
    "record: a CRC": lambda data, _: flip(data, seal.record_at(data) + 28, 5),
    "record: forgets ranges": _forgetful,
    "attack: weights, sealed again": resealed(in_section(".ferrule_weights", 0.3, 3)),
    "attack: code, sealed again": resealed(in_section(".text", 0.6, 2)),
}
"""What only a firmware with a self-test can suffer."""
