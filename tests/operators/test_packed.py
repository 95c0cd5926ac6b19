# SPDX-License-Identifier: Apache-2.0
"""The cache of data derived from constants."""

from __future__ import annotations

import gc

import numpy as np

from ferrule.graph import Array
from ferrule.operators.arithmetic.packed import PackedConstants


def read_only() -> Array:
    array = np.arange(4)
    array.setflags(write=False)
    return array


def test_it_is_made_once_for_the_same_objects() -> None:
    packed: PackedConstants[int] = PackedConstants()
    array, other, calls = read_only(), object(), []

    def make() -> int:
        calls.append(1)
        return len(calls)

    assert [packed.get(array, (other,), make), packed.get(array, (other,), make)] == [1, 1]
    assert packed.get(array, (object(),), make) == 2
    assert packed.get(read_only(), (other,), make) == 3


def test_arrays_that_may_change_are_not_remembered() -> None:
    packed: PackedConstants[int] = PackedConstants()
    writable, array = np.arange(4), read_only()
    for first, second in ((writable, array), (array, writable)):
        assert packed.get(first, (second,), lambda: 1) == 1
        assert packed.get(first, (second,), lambda: 2) == 2


def test_it_is_forgotten_with_the_array() -> None:
    packed: PackedConstants[int] = PackedConstants()
    array = read_only()
    assert packed.get(array, (), lambda: 1) == 1
    del array
    gc.collect()
    assert not packed._entries


def test_few_entries_are_kept_per_array() -> None:
    packed: PackedConstants[int] = PackedConstants(entries_per_array=2)
    array, others = read_only(), [object() for _ in range(3)]
    for number, other in enumerate(others):
        assert packed.get(array, (other,), lambda number=number: number) == number  # type: ignore[misc]
    assert packed.get(array, (others[2],), lambda: 9) == 2
    assert packed.get(array, (others[0],), lambda: 9) == 9
