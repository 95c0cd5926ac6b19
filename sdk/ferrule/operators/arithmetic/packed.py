# SPDX-License-Identifier: Apache-2.0
"""Caches constants in the form that a kernel needs, for as long as their source array exists."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from operator import is_
from typing import Generic, TypeVar

import numpy as np

from ferrule.graph import Array

T = TypeVar("T")


class PackedConstants(Generic[T]):
    """Caches values computed from a read-only array, so that kernels stay pure but compute them only once.

    An entry is reused if the array and all other arguments it was computed from are the same objects. It is removed
    when the array is deleted.
    """

    def __init__(self, entries_per_array: int = 4) -> None:
        self._entries_per_array = entries_per_array
        self._entries: dict[int, list[tuple[tuple[object, ...], tuple[Array, ...], T]]] = {}
        """By id of the array: the other arguments, the arrays among them, and the value."""

    def get(self, array: Array, others: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the cached result of `make` for the array and the others; writeable arrays are not cached."""
        if array.flags.writeable:
            return make()
        key = id(array)
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries[key] = []
            weakref.finalize(array, self._entries.pop, key, None).atexit = False
        for known, arrays, value in entries:
            if len(known) == len(others) and all(map(is_, known, others)):
                for each in arrays:
                    if each.flags.writeable:
                        return make()
                return value
        arrays = tuple(each for each in others if isinstance(each, np.ndarray))
        value = make()
        if any(each.flags.writeable for each in arrays):
            return value
        entries.append((others, arrays, value))
        del entries[: -self._entries_per_array]
        return value
