# SPDX-License-Identifier: Apache-2.0
"""Reads a flatbuffer, and checks each offset before it is followed.

The Python flatbuffers package reads wherever an offset points. The reader here walks the tables of a specification, and
refuses every offset that leaves the file. The FlatBuffers documentation describes the format under "Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.budget import Resource, afford, hold
from ferrule.errors import ModelError
from ferrule.graph import Array

_RECORD_BYTES = 1 << 11
"""About what is kept of one table, such as an operator or a tensor."""


_number_of = cache(lambda code: struct.Struct(f"<{code}"))


@positional
class ScalarField:
    """A number stored in the table itself."""

    code: str
    """Its type, as a code of `struct`."""
    default: int = 0
    """The value if the table does not have it."""


@positional
class VectorField:
    """A vector of numbers, or a string as a vector of bytes; empty if the table does not have it."""

    code: str
    """The type of an element, as a code of `struct`."""


@positional
class TableField:
    """A nested table, or a vector of them; None or empty if the table does not have it."""

    table: TableSpec
    many: bool = False


@positional
class UnionField:
    """A table whose kind is stored in another slot as one byte; kinds that are not listed are read as None."""

    kind_slot: int
    tables: Mapping[int, TableSpec]


Field = ScalarField | VectorField | TableField | UnionField


@positional
class TableSpec:
    """A table of the schema, reduced to the fields that are read."""

    name: str
    fields: Mapping[int, tuple[str, Field]]
    """(name, field) by slot."""


def read(data: bytes, root: TableSpec) -> Any:  # noqa: ANN401 has the fields of the specification as attributes
    """Return the root table of a file; vectors are read-only views.

    Several offsets may lead to one place, so that a small file can unfold into a huge model: tables, and bytes that are
    reached again, are counted each time that an offset reaches them, and held by the budget.

    Raises:
        ModelError: the file is malformed; the message names the byte, the table and the field.
        BudgetError: it unfolds to more bytes than the limit; the message names the place that was reached last.
    """
    walk = Walk(data)
    table = walk.table(walk.follow(0, root.name), root)
    hold(walk.unfolded_bytes, "what the offsets of the file reach")
    return table


def empty(fields: Mapping[str, Field]) -> Any:  # noqa: ANN401 as above
    """Return a table that has none of its fields."""
    walk = Walk(b"")
    return SimpleNamespace(**{name: walk.field(None, name, field, {}) for name, field in fields.items()})


class Walk:
    """One pass over a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reached_bytes = self._table_count = 0

    @property
    def unfolded_bytes(self) -> int:
        """What is kept of the tables so far, and the bytes that were reached beyond the file's own."""
        return self._table_count * _RECORD_BYTES + max(self._reached_bytes - len(self._data), 0)

    def table(self, position: int, spec: TableSpec) -> SimpleNamespace:
        """Return the table at a place."""
        vtable = position - self._number("i", position, spec.name)
        size_bytes = self._number("H", vtable, f"the vtable of {spec.name}", 4)
        if size_bytes < 4 or size_bytes % 2:
            raise ModelError(f"byte {vtable}: the vtable of {spec.name} has {size_bytes} bytes, expected 4, 6, 8...")
        self._inside(vtable, size_bytes, f"the vtable of {spec.name}")
        self._table_count += 1
        self._spend(size_bytes + 4, position, spec.name)
        offsets = struct.unpack_from(f"<{size_bytes // 2 - 2}H", self._data, vtable + 4)
        places = {slot: position + offset for slot, offset in enumerate(offsets) if offset}
        return SimpleNamespace(
            **{
                name: self.field(places.get(slot), f"{spec.name}.{name}", field, places)
                for slot, (name, field) in spec.fields.items()
            }
        )

    def follow(self, position: int, what: str) -> int:
        """Return the target of the offset at `position`; ModelError if it is outside the file."""
        offset = self._number("I", position, what)
        target = position + offset
        if offset == 0 or target > len(self._data) - 4:
            raise ModelError(f"byte {position}: the offset of {what} leads to byte {target}, outside the file")
        return int(target)

    def field(self, place: int | None, what: str, field: Field, places: Mapping[int, int]) -> Any:  # noqa: ANN401
        """Return the value of a field; `places` are those of the table's fields, by slot."""
        match field:
            case ScalarField():
                return field.default if place is None else self._number(field.code, place, what)
            case VectorField():
                code = field.code
                return np.empty(0, code) if place is None else self.vector(self.follow(place, what), code, what)
            case TableField(many=True):
                starts = [] if place is None else self._offsets(self.follow(place, what), what)
                return [self.table(self.follow(at, f"{what}[{index}]"), field.table) for index, at in enumerate(starts)]
            case TableField():
                return None if place is None else self.table(self.follow(place, what), field.table)
            case UnionField():
                kind_place = places.get(field.kind_slot)
                if place is None or kind_place is None:
                    return None
                table = field.tables.get(self._number("B", kind_place, what))
                return None if table is None else self.table(self.follow(place, what), table)

    def vector(self, start: int, code: str, what: str) -> Array:
        """Return the numbers of the vector at a place."""
        dtype = np.dtype(code).newbyteorder("<")
        count = self._number("I", start, what)
        self._inside(start + 4, count * dtype.itemsize, what)
        self._spend(count * dtype.itemsize, start, what)
        return np.frombuffer(self._data, dtype, count, start + 4)

    def _offsets(self, start: int, what: str) -> range:
        """Return the places of the offsets of a vector."""
        return range(start + 4, start + 4 + 4 * len(self.vector(start, "I", what)), 4)

    def _number(self, code: str, position: int, what: str, size_bytes: int = 0) -> Any:  # noqa: ANN401
        """Return the number at a place, where at least `size_bytes` must be inside the file."""
        number = _number_of(code)
        self._inside(position, size_bytes or number.size, what)
        return number.unpack_from(self._data, position)[0]

    def _inside(self, position: int, size_bytes: int, what: str) -> None:
        if position < 0 or position + size_bytes > len(self._data):
            raise ModelError(
                f"byte {max(position, 0)}: {what} takes bytes {position} to {position + size_bytes}, "
                f"but the file ends at {len(self._data)}"
            )

    def _spend(self, size_bytes: int, position: int, what: str) -> None:
        self._reached_bytes += size_bytes
        afford(Resource.BYTES, self.unfolded_bytes, f"byte {position}: what the file's offsets reach, up to {what},")
