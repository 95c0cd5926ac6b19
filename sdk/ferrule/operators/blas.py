# SPDX-License-Identifier: Apache-2.0
"""Matrix products on one thread of the BLAS library, whose idle threads cost more than they save on a busy machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from ferrule.graph import Array

_SMALL = 9216
"""Up to this number of multiplications, OpenBLAS itself uses one thread (GEMM_MULTITHREAD_THRESHOLD)."""


class _Limits(Protocol):
    """The limits in force, which end when the original ones are restored."""

    def restore_original_limits(self) -> None: ...


class _OneThread:
    """Limits BLAS to one thread from the first of several overlapping uses until the end of the last.

    The number of threads is a setting of the process, so a product of another part of the process that runs in the
    meantime uses one thread, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: _Limits | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._limits = _limit()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._limits is not None:
                    self._limits.restore_original_limits()
                    self._limits = None


_ONE_THREAD = _OneThread()


def matrix_product(left: Array, right: Array) -> Array:
    """Return `left @ right`, computed on one thread if the package threadpoolctl is installed (extra `run`)."""
    if left.size * right.shape[-1] <= _SMALL:
        product: Array = left @ right
        return product
    with _ONE_THREAD.hold():
        return left @ right


def _limit() -> _Limits | None:
    controller = _controller()
    return None if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any | None:  # noqa: ANN401 - threadpoolctl has no types
    """Return the object that controls the BLAS libraries of the process; None if threadpoolctl is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")
