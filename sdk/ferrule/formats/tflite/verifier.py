# SPDX-License-Identifier: Apache-2.0
"""Checks a flatbuffer before any code follows its offsets.

The Python flatbuffers package reads wherever an offset points. The verifier walks the tables that the decoder will
read, guided by a specification, and refuses every offset that leaves the file. The FlatBuffers documentation
describes the format under "Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.budget import Resource, afford, hold
from ferrule.errors import ModelError

_RECORD_BYTES = 1 << 11
"""About what the decoder and the reader keep of one table, such as an operator or a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarField:
    """A number stored in the table itself."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorField:
    """A vector of numbers, or a string as a vector of bytes."""

    size_bytes: int
    """Size of one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableField:
    """A nested table."""

    table: TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVectorField:
    """A vector of tables."""

    table: TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionField:
    """A table whose kind is stored in another slot as one byte; kinds that are not listed are never read."""

    kind_slot: int
    tables: Mapping[int, TableSpec]


Field = ScalarField | VectorField | TableField | TableVectorField | UnionField


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table of the schema, reduced to the fields that are read."""

    name: str
    fields: Mapping[int, tuple[str, Field]]
    """(name, field) by slot."""


def verify(data: bytes, root: TableSpec) -> None:
    """Check that every offset of a file leads to a place inside the file.

    Several offsets may lead to one place, so that a small file can unfold into a huge model: tables, and bytes that are
    reached again, are counted each time that an offset reaches them, and held by the budget.

    Raises:
        ModelError: the file is malformed; the message names the byte, the table and the field.
        BudgetError: it unfolds to more bytes than the limit; the message names the place that was reached last.
    """
    walk = _Walk(data)
    walk.table(walk.follow(0, root.name), root)
    hold(walk.unfolded_bytes, "what the offsets of the file reach")


class _Walk:
    """One pass over a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reached_bytes = self._table_count = 0

    @property
    def unfolded_bytes(self) -> int:
        """What is kept of the tables so far, and the bytes that were reached beyond the file's own."""
        return self._table_count * _RECORD_BYTES + max(self._reached_bytes - len(self._data), 0)

    def table(self, position: int, spec: TableSpec) -> None:
        self._inside(position, 4, spec.name)
        (distance,) = struct.unpack_from("<i", self._data, position)
        vtable = position - distance
        self._inside(vtable, 4, f"the vtable of {spec.name}")
        (vtable_bytes,) = struct.unpack_from("<H", self._data, vtable)
        if vtable_bytes < 4 or vtable_bytes % 2:
            raise ModelError(f"byte {vtable}: the vtable of {spec.name} has {vtable_bytes} bytes, expected 4, 6, 8...")
        self._inside(vtable, vtable_bytes, f"the vtable of {spec.name}")
        self._table_count += 1
        self._spend(vtable_bytes + 4, position, spec.name)
        places = {}
        for slot in spec.fields:
            entry = 4 + 2 * slot
            if entry < vtable_bytes:
                (offset,) = struct.unpack_from("<H", self._data, vtable + entry)
                if offset:
                    places[slot] = position + offset
        for slot, place in places.items():
            name, field = spec.fields[slot]
            self._field(place, f"{spec.name}.{name}", field, places)

    def follow(self, position: int, what: str) -> int:
        """Return the target of the offset at `position`; ModelError if it is outside the file."""
        self._inside(position, 4, what)
        (offset,) = struct.unpack_from("<I", self._data, position)
        target = position + int(offset)
        if offset == 0 or target > len(self._data) - 4:
            raise ModelError(f"byte {position}: the offset of {what} leads to byte {target}, outside the file")
        return target

    def _field(self, place: int, what: str, field: Field, places: Mapping[int, int]) -> None:
        match field:
            case ScalarField():
                self._inside(place, field.size_bytes, what)
            case VectorField():
                self._vector(self.follow(place, what), field.size_bytes, what)
            case TableField():
                self.table(self.follow(place, what), field.table)
            case TableVectorField():
                self._tables(self.follow(place, what), field, what)
            case UnionField():
                self._union(place, what, field, places)

    def _vector(self, start: int, size_bytes: int, what: str) -> int:
        (count,) = struct.unpack_from("<I", self._data, start)
        self._inside(start + 4, int(count) * size_bytes, what)
        self._spend(int(count) * size_bytes, start, what)
        return int(count)

    def _tables(self, start: int, field: TableVectorField, what: str) -> None:
        count = self._vector(start, 4, what)
        for index in range(count):
            self.table(self.follow(start + 4 + 4 * index, f"{what}[{index}]"), field.table)

    def _union(self, place: int, what: str, field: UnionField, places: Mapping[int, int]) -> None:
        kind_place = places.get(field.kind_slot)
        if kind_place is None:
            return
        self._inside(kind_place, 1, what)
        table = field.tables.get(self._data[kind_place])
        if table is not None:
            self.table(self.follow(place, what), table)

    def _inside(self, position: int, size_bytes: int, what: str) -> None:
        if position < 0 or position + size_bytes > len(self._data):
            raise ModelError(
                f"byte {max(position, 0)}: {what} takes bytes {position} to {position + size_bytes}, "
                f"but the file ends at {len(self._data)}"
            )

    def _spend(self, size_bytes: int, position: int, what: str) -> None:
        self._reached_bytes += size_bytes
        afford(Resource.BYTES, self.unfolded_bytes, f"byte {position}: what the file's offsets reach, up to {what},")
