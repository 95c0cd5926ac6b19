# SPDX-License-Identifier: Apache-2.0
"""Progress reports of long operations."""

from __future__ import annotations

from collections.abc import Callable

from ferrule._frozen import frozen
from ferrule._typing import override


@frozen
class Step:
    """The current step of an operation; its text is one line."""

    phase: str
    done: int = 0
    """Number of completed parts of the phase; 0 at its beginning."""
    total: int = 0
    """Number of parts of the phase; 0 if they are not counted."""

    @property
    def begins(self) -> bool:
        """Whether this is the first step of its phase."""
        return self.done == 0

    @override
    def __str__(self) -> str:
        return f"{self.phase}: {self.done} of {self.total}" if self.total else self.phase


Progress = Callable[[Step], None]
"""A function called with each step as it begins or advances; `print` will do."""


def say_nothing(_: Step) -> None:
    """Ignore a progress report."""
