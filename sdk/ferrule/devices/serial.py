# SPDX-License-Identifier: Apache-2.0
"""Devices behind a serial line: bytes in, bytes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class SerialModel(ABC):
    """A device that is reached over a wire; whoever attaches it carries the bytes."""

    def __init__(self) -> None:
        self.log: Callable[[str], None] = _say_nothing
        """Called with a line for each thing that happens; whoever attaches the model may set it."""

    @abstractmethod
    def receive(self, data: bytes) -> bytes:
        """Take what came over the wire, and return what goes back.

        Without bytes it is asked from time to time, at least while the other end waits, for what it says by itself.
        """


def _say_nothing(_: str) -> None:
    """Drop a line."""
