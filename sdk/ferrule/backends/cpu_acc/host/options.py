# SPDX-License-Identifier: Apache-2.0
"""The user's options for CpuAcc on the host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.backends.cpu_acc.host.instruction_set import AUTOMATIC
from ferrule.errors import UnsupportedError, unknown_name

NUM_THREADS = "num_threads"
INSTRUCTIONS = "instructions"
MOST_THREADS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What may be chosen; results are the same with all of them, but for the rounding of float32 sums."""

    num_threads: int = 0
    """Threads that may share the work of a layer, the caller's included; 0 for as many as the process may use at once.
    Only layers that are large enough to gain from it are shared."""
    instructions: str = AUTOMATIC
    """A name of `instruction_set.SETS`, "portable", or "auto" for the fastest that the host has."""

    @classmethod
    def parse(cls, options: Mapping[str, bool | int | float | str]) -> HostOptions:
        """Return the options by name.

        Raises:
            FerruleError: a name is unknown, or a value is not one of those above.
        """
        for name in options:
            if name not in {NUM_THREADS, INSTRUCTIONS}:
                raise unknown_name("option of CpuAcc", name, [NUM_THREADS, INSTRUCTIONS])
        threads = options.get(NUM_THREADS, 0)
        if isinstance(threads, bool) or not isinstance(threads, int) or not 0 <= threads <= MOST_THREADS:
            raise UnsupportedError(
                f"option {NUM_THREADS} of CpuAcc is {threads!r}, expected 0 (as many as there are) to {MOST_THREADS}"
            )
        instructions = options.get(INSTRUCTIONS, AUTOMATIC)
        if not isinstance(instructions, str):
            raise UnsupportedError(f"option {INSTRUCTIONS} of CpuAcc is {instructions!r}, expected a name")
        return cls(num_threads=threads, instructions=instructions)

    @property
    def threads(self) -> int:
        """The number of threads that is meant."""
        return self.num_threads or usable_processors()


def usable_processors() -> int:
    """Return on how many processors this process may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
