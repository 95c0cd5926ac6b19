# SPDX-License-Identifier: Apache-2.0
"""Constants in the form that a kernel wants them, kept as long as the array that they come from."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from ferrule.graph import Array

T = TypeVar("T")


class PackedConstants(Generic[T]):
    """Remembers what was made of a read-only array, so that kernels stay pure and still do the work once.

    An entry is found again when the array and everything else that it was made of are the same objects. It is
    dropped together with the array.
    """

    def __init__(self, entries_per_array: int = 4) -> None:
        self._entries_per_array = entries_per_array
        self._entries: dict[int, list[tuple[tuple[object, ...], T]]] = {}

    def get(self, array: Array, others: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return what `make` gives for the array and the others; arrays that may change are not remembered."""
        if array.flags.writeable or any(getattr(getattr(o, "flags", None), "writeable", False) for o in others):
            return make()
        key = id(array)
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries[key] = []
            weakref.finalize(array, self._entries.pop, key, None).atexit = False
        for known, value in entries:
            if all(a is b for a, b in zip(known, others, strict=True)):
                return value
        value = make()
        entries.append((others, value))
        del entries[: -self._entries_per_array]
        return value
