# SPDX-License-Identifier: Apache-2.0
"""Models of devices behind a serial line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class SerialModel(ABC):
    """A device behind a serial line; its host carries the bytes."""

    deadline_s: float = 30.0
    """Longest time in seconds that one call of `receive` may take on the host."""

    def __init__(self) -> None:
        self.log: Callable[[str], None] = _say_nothing
        """Called with one line of text per event; the host may replace it."""

    @abstractmethod
    def receive(self, data: bytes) -> bytes:
        """Process received bytes and return the bytes to send back.

        It is also called with no bytes, regularly while the other end waits, so that the device can send unprompted.
        """


def _say_nothing(_: str) -> None:
    """Discard a line of the log."""
