# SPDX-License-Identifier: Apache-2.0
"""Damage to files of the kinds that break parsers."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ferrule._typing import override
from ferrule.formats.tflite.flatbuffer import Field, ScalarField, Walk
from ferrule.formats.tflite.schema import FILE_IDENTIFIER, MODEL
from ferrule.graph import Array

_INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 9, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4)


def mutate(data: bytes, others: Sequence[bytes], choice: random.Random) -> bytes:
    """Return `data` with one to four random damages; splices are taken from `others`."""
    damaged = bytearray(data)
    for _ in range(choice.choice((1, 1, 1, 2, 2, 3, 4))):
        choice.choice(_KINDS)(damaged, others, choice)
    return bytes(damaged)


def mutate_values(data: bytes, choice: random.Random) -> bytes:
    """Return a valid file with one to three of its numbers changed and its structure intact."""
    assert data[4:8] == FILE_IDENTIFIER
    walk = _Recorder(data)
    walk.table(walk.follow(0, "Model"), MODEL)
    damaged = bytearray(data)
    for _ in range(choice.choice((1, 1, 2, 3))):
        start, count, size_bytes = choice.choice(walk.numbers)
        place = start + choice.randrange(count) * size_bytes
        value = choice.choice((*range(-4, 12), choice.randrange(256), choice.choice(_INTERESTING)))
        damaged[place : place + size_bytes] = (value % 2 ** (8 * size_bytes)).to_bytes(size_bytes, "little")
    return bytes(damaged)


class _Recorder(Walk):
    """A walk that records the positions of a file's numbers."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.numbers: list[tuple[int, int, int]] = []
        """Position, count, and size in bytes of one number."""

    @override
    def field(self, place: int | None, what: str, field: Field, places: Mapping[int, int]) -> Any:  # noqa: ANN401
        if isinstance(field, ScalarField) and place is not None:
            self.numbers.append((place, 1, struct.calcsize(field.code)))
        return super().field(place, what, field, places)

    @override
    def vector(self, start: int, code: str, what: str) -> Array:
        found = super().vector(start, code, what)
        offsets = what in {"Model.operator_codes", "Model.subgraphs", "Model.buffers"}
        if found.size and not offsets and what not in {"SubGraph.tensors", "SubGraph.operators"}:
            self.numbers.append((start + 4, found.size, found.itemsize))
        return found


def _place(data: bytearray, choice: random.Random) -> int:
    """Return a random position, mostly near the front, where flatbuffers keep their structure."""
    if not data:
        return 0
    reach = min(len(data), choice.choice((64, 512, 4096, 16384, len(data))))
    return choice.randrange(reach)


def _flip(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    for _flipped in range(choice.choice((1, 1, 2, 8))):
        if data:
            data[_place(data, choice)] ^= 1 << choice.randrange(8)


def _overwrite(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    if data:
        data[_place(data, choice)] = choice.randrange(256)


def _integer(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    place = _place(data, choice) & ~3
    if place + 4 <= len(data):
        data[place : place + 4] = struct.pack("<I", choice.choice(_INTERESTING))


def _nudge(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    """Add a small amount to an aligned integer, since most of these are offsets, lengths and indices."""
    place = _place(data, choice) & ~3
    if place + 4 <= len(data):
        (value,) = struct.unpack_from("<I", data, place)
        struct.pack_into("<I", data, place, (value + choice.choice((-8, -4, -1, 1, 4, 8, 1024))) % 2**32)


def _redirect(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    """Make an offset point to another place inside the file."""
    places = [p for p in (_place(data, choice) & ~3 for _ in range(32)) if p + 4 <= len(data)]
    for place in places:
        (value,) = struct.unpack_from("<I", data, place)
        if value >= 4 and place + value < len(data):
            target = choice.randrange(place + 1, len(data))
            struct.pack_into("<I", data, place, target - place)
            return


def _truncate(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    del data[choice.randrange(len(data) + 1) :]


def _remove(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    place = _place(data, choice)
    del data[place : place + choice.choice((1, 2, 4, 16, 64))]


def _insert(data: bytearray, _: Sequence[bytes], choice: random.Random) -> None:
    place = _place(data, choice)
    data[place:place] = choice.randbytes(choice.choice((1, 2, 4, 16, 64)))


def _splice(data: bytearray, others: Sequence[bytes], choice: random.Random) -> None:
    other = choice.choice(others)
    if not other:
        return
    length = choice.choice((4, 8, 32, 256))
    source = choice.randrange(min(len(other), 16384))
    place = _place(data, choice)
    data[place : place + length] = other[source : source + length]


_KINDS: tuple[Callable[[bytearray, Sequence[bytes], random.Random], None], ...] = (
    _flip,
    _flip,
    _overwrite,
    _integer,
    _integer,
    _nudge,
    _nudge,
    _redirect,
    _truncate,
    _remove,
    _insert,
    _splice,
)
