# SPDX-License-Identifier: Apache-2.0
"""A clock that a test moves, in place of the module `time` in the code under test."""

from __future__ import annotations


class ManualClock:
    """A clock that stands still until `now_s` is changed, so that no time-out passes unless the test wants it."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        """Return the time, in seconds."""
        return self.now_s

    thread_time = monotonic
