# SPDX-License-Identifier: Apache-2.0
"""The reader of flatbuffers on hand-made ones."""

from __future__ import annotations

import struct

import pytest

from ferrule.budget import limits
from ferrule.errors import BudgetError, ModelError
from ferrule.formats.tflite.flatbuffer import ScalarField, TableField, TableSpec, UnionField, VectorField, read

LEAF = TableSpec("Leaf", {0: ("bytes", VectorField("B")), 1: ("number", ScalarField("i", 7))})
ROOT = TableSpec("Root", {0: ("leaves", TableField(LEAF, many=True))})


def forest(count: int, payload: int) -> bytes:
    """Return a root whose `count` leaves are one shared table with `payload` bytes."""
    root_vtable = struct.pack("<HHH", 6, 8, 4) + bytes(2)
    root = struct.pack("<iI", 8, 4)  # the vtable is 8 bytes before, the vector follows
    leaf_vtable = struct.pack("<HHH", 6, 8, 4) + bytes(2)
    leaf_at = 8 + len(root_vtable) + len(root) + 4 + 4 * count + len(leaf_vtable)
    vector = struct.pack("<I", count)
    vector_at = 8 + len(root_vtable) + len(root)
    for index in range(count):
        vector += struct.pack("<I", leaf_at - (vector_at + 4 + 4 * index))
    leaf = struct.pack("<iI", 8, 4) + struct.pack("<I", payload) + bytes(payload)
    return struct.pack("<I", 16) + b"TEST" + root_vtable + root + vector + leaf_vtable + leaf


def check(data: bytes, root: TableSpec = ROOT) -> None:
    read(data, root)


def test_a_well_formed_file_passes() -> None:
    root = read(forest(3, 10), ROOT)
    assert [(leaf.bytes.tobytes(), leaf.number) for leaf in root.leaves] == [(bytes(10), 7)] * 3


def test_every_truncation_is_refused() -> None:
    data = forest(3, 10)
    for size in range(len(data)):
        with pytest.raises(ModelError):
            check(data[:size])


def test_shared_tables_unfold_as_far_as_the_budget_goes() -> None:
    data = forest(5000, 5000)
    with limits(bytes="8MiB"), pytest.raises(BudgetError, match=r"byte \d+: .*Leaf.* takes 8,\d+,\d+ bytes .* limit"):
        check(data)
    with limits(bytes="64MiB"):
        check(data)


def test_each_table_counts_as_what_is_kept_of_it() -> None:
    data = forest(1000, 0)
    with limits(bytes="1MiB"), pytest.raises(BudgetError, match=r"what the file's offsets reach, up to Leaf"):
        check(data)
    with limits(bytes="3MiB"):
        check(data)
        with pytest.raises(BudgetError, match="beside"):
            check(data)


def test_a_file_without_shared_places_takes_little() -> None:
    with limits(bytes=1 << 13):
        check(forest(1, 1 << 20))


def test_fields_behind_the_vtable_are_absent() -> None:
    assert read(forest(1, 1), TableSpec("Root", {7: ("later", TableField(LEAF))})).later is None


@pytest.mark.parametrize(("place", "value"), [(8, 5), (8, 3), (8, 2), (8, 0xFFFE), (16, -9), (16, 1 << 30)])
def test_bad_vtables(place: int, value: int) -> None:
    data = bytearray(forest(1, 1))
    data[place : place + 2 + 2 * (place == 16)] = struct.pack("<i" if place == 16 else "<H", value)
    with pytest.raises(ModelError, match="vtable"):
        check(bytes(data))


def test_unions_are_read_by_their_kind() -> None:
    without_kind = TableSpec("Root", {0: ("union", UnionField(5, {8: LEAF}))})
    assert read(forest(1, 1), without_kind).union is None


def test_offsets_must_lead_forwards() -> None:
    data = bytearray(forest(1, 1))
    data[20:24] = bytes(4)
    with pytest.raises(ModelError, match=r"byte 20: the offset of Root\.leaves leads to byte 20"):
        check(bytes(data))
