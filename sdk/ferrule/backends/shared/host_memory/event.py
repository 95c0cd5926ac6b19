# SPDX-License-Identifier: Apache-2.0
"""The end of work that a thread of a pool does."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any


class FutureEvent:
    """An event (`ferrule.backends.tensor_handle.Event`) that ends with a future."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def wait(self) -> None:
        """Return when the future has its result; raises what went wrong in it."""
        self._future.result()

    def done(self) -> bool:
        """Return whether it is over, without waiting."""
        return self._future.done()
