# SPDX-License-Identifier: Apache-2.0
"""A clock that a test moves, in the place of the module `time` of the code under test."""

from __future__ import annotations


class ManualClock:
    """Stands still until `now_s` is moved, so that no time-out passes by itself."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now_s
