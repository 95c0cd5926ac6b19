# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the options of custom operators: a map in the FlexBuffers encoding.

The FlexBuffers documentation describes the format under "Internals". The reader checks each offset before it follows
it; the Python package reads wherever an offset points.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import printable

FlexValue = bool | int | float | str
"""The kinds of values that options have."""

_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING = 0, 1, 2, 3, 4, 5
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
"""Kinds whose number lies behind an offset, and the kind of the number."""
_MAP, _BOOL = 9, 26
_CODES: Mapping[int, str] = {_INT: "bhiq", _UINT: "BHIQ", _BOOL: "BHIQ", _FLOAT: "?efd"}
"""The codes of `struct` for numbers of 1, 2, 4 and 8 bytes; a float has at least 2."""
_ENTRY_BYTES = 1 << 8
"""About what is kept of an entry, besides its texts."""


def read_map(data: bytes) -> dict[str, FlexValue]:
    """Return the entries of a map of numbers and strings; no bytes are an empty map.

    Raises:
        ModelError: the bytes are malformed; the message names the place.
        UnsupportedError: a value is a vector, a map or a blob.
    """
    return _Reader(data).root() if data else {}


def write_map(values: Mapping[str, FlexValue]) -> bytes:
    """Return the bytes of a map; equal maps have the same bytes."""
    from flatbuffers import flexbuffers

    builder: Any = flexbuffers.Builder()
    with builder.Map():
        for key, value in sorted(values.items()):
            builder.Key(key)
            builder.Add(value)
    return bytes(builder.Finish())


class _Reader:
    """The bytes of one map."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._kept_bytes = 0

    def root(self) -> dict[str, FlexValue]:
        """Return the map to which the last bytes lead."""
        size = len(self._data)
        width = self._data[-1]
        if width not in {1, 2, 4, 8} or size < 2 + width:
            raise ModelError(f"its root takes {width} bytes of {size}, expected 1, 2, 4 or 8")
        kind, own_width = self._split(self._data[-2])
        if kind != _MAP:
            raise ModelError(f"its root has kind {kind}, expected a map ({_MAP})")
        return self._map(self._follow(size - 2 - width, width), own_width)

    def _map(self, start: int, width: int) -> dict[str, FlexValue]:
        count = self._count(start, width)
        keys_width = self._unsigned(start - 2 * width, width)
        if keys_width not in {1, 2, 4, 8}:
            raise ModelError(f"byte {start - 2 * width}: keys take {keys_width} bytes, expected 1, 2, 4 or 8")
        keys = self._follow(start - 3 * width, width)
        if self._count(keys, keys_width) != count:
            raise ModelError(f"byte {keys}: it has {self._count(keys, keys_width)} keys, expected {count}")
        found: dict[str, FlexValue] = {}
        for index in range(count):
            self._keep(_ENTRY_BYTES, f"entry {index}")
            key = self._key(self._follow(keys + index * keys_width, keys_width))
            if key in found:
                raise ModelError(f"it has the key '{key}' twice")
            packed = self._unsigned(start + count * width + index, 1)
            found[key] = self._value(key, start + index * width, width, packed)
        return found

    def _value(self, key: str, place: int, width: int, packed: int) -> FlexValue:
        kind, own_width = self._split(packed)
        if kind in _INDIRECT:
            return self._number(_INDIRECT[kind], self._follow(place, width), own_width)
        if kind in _CODES:
            return self._number(kind, place, width)
        if kind == _KEY:
            return self._key(self._follow(place, width))
        if kind == _STRING:
            start = self._follow(place, width)
            length = self._unsigned(start - own_width, own_width)
            self._keep(length, f"'{key}'")
            return printable(self._bytes(start, length))
        raise UnsupportedError(f"'{key}' has kind {kind}, expected a number, a truth value or a string")

    def _number(self, kind: int, place: int, width: int) -> FlexValue:
        code = _CODES[kind][width.bit_length() - 1]
        if kind == _FLOAT and width == 1:
            raise ModelError(f"byte {place}: a floating-point number takes 1 byte, expected 2, 4 or 8")
        (value,) = struct.unpack(f"<{code}", self._bytes(place, width))
        if kind == _BOOL:
            return bool(value)
        return float(value) if kind == _FLOAT else int(value)

    def _key(self, start: int) -> str:
        end = self._data.find(b"\0", start)
        if end < 0:
            raise ModelError(f"byte {start}: a key has no end")
        self._keep(end - start, f"the key at byte {start}")
        text = printable(self._data[start:end])
        if not text.isascii():
            raise ModelError(f"byte {start}: the key '{text}' has characters other than ASCII")
        return text

    def _count(self, start: int, width: int) -> int:
        """Return the number of the entries that begin at `start`; they take a byte or more each."""
        count = self._unsigned(start - width, width)
        if count > len(self._data) - start:
            raise ModelError(
                f"byte {start - width}: it has {count} entries, and {len(self._data) - start} bytes follow"
            )
        return count

    def _keep(self, size_bytes: int, what: str) -> None:
        """Count what is read, since several offsets may lead to one text."""
        self._kept_bytes += size_bytes
        afford(Resource.BYTES, self._kept_bytes, f"a map of options, up to {what},")

    def _follow(self, place: int, width: int) -> int:
        """Return the target of an offset, which leads towards the start."""
        target = place - self._unsigned(place, width)
        if target < 0:
            raise ModelError(f"byte {place}: an offset leads to byte {target}, before the start")
        return target

    def _unsigned(self, place: int, width: int) -> int:
        return int.from_bytes(self._bytes(place, width), "little")

    def _bytes(self, place: int, size: int) -> bytes:
        if place < 0 or place + size > len(self._data):
            raise ModelError(f"bytes {place} to {place + size} are read, but it has {len(self._data)}")
        return self._data[place : place + size]

    @staticmethod
    def _split(packed: int) -> tuple[int, int]:
        """Return the kind and the width in bytes that a packed type states."""
        return packed >> 2, 1 << (packed & 3)
