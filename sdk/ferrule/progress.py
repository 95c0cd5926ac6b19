# SPDX-License-Identifier: Apache-2.0
"""What a long operation is doing, for whoever shows its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ferrule._typing import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happens now; as text it is one line."""

    phase: str
    done: int = 0
    """Parts of the phase that are done; 0 where it begins."""
    total: int = 0
    """Parts of the phase; 0 where they are not counted."""

    @property
    def begins(self) -> bool:
        """Whether this is the first step of its phase."""
        return self.done == 0

    @override
    def __str__(self) -> str:
        return f"{self.phase}: {self.done} of {self.total}" if self.total else self.phase


Progress = Callable[[Step], None]
"""Called with what happens now; `print` will do."""


def say_nothing(_: Step) -> None:
    """Show no progress."""
