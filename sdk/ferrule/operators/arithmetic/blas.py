# SPDX-License-Identifier: Apache-2.0
"""Matrix products on one thread of the BLAS library, whose idle threads cost more than they save on a busy machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Protocol

from ferrule.graph import Array

_SMALL = 9216
"""Up to this number of multiplications, OpenBLAS itself uses one thread (GEMM_MULTITHREAD_THRESHOLD)."""


class _Library(Protocol):
    """A BLAS library of the process."""

    def get_num_threads(self) -> int: ...

    def set_num_threads(self, num_threads: int) -> None: ...


class _OneThread:
    """Limits BLAS to one thread from the first of several overlapping uses until the end of the last.

    The number of threads is a setting of the process, so a product of another part of the process that runs in the
    meantime uses one thread, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._earlier: list[tuple[_Library, int]] = []
        """The libraries whose setting was changed, and what it was."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._earlier = [(each, each.get_num_threads()) for each in _libraries()]
                for library, _ in self._earlier:
                    library.set_num_threads(1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    for library, number in self._earlier:
                        library.set_num_threads(number)


_ONE_THREAD = _OneThread()


def one_thread() -> AbstractContextManager[None]:
    """Return a block in which linear algebra runs on one thread: for many small problems, further ones only wait."""
    return _ONE_THREAD.hold()


def matrix_product(left: Array, right: Array) -> Array:
    """Return `left @ right`, computed on one thread if the package threadpoolctl is installed (extra `run`)."""
    if left.size * right.shape[-1] <= _SMALL:
        product: Array = left @ right
        return product
    with one_thread():
        return left @ right


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return the BLAS libraries of the process; none if threadpoolctl is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return ()
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
