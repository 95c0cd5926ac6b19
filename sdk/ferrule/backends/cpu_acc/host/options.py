# SPDX-License-Identifier: Apache-2.0
"""The options that users may set for CpuAcc on the host."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.instruction_set import AUTOMATIC, PORTABLE, SETS
from ferrule.backends.option import BackendOption, OptionValue, check_options
from ferrule.child_process import usable_processors

NUM_THREADS = BackendOption(
    name="num_threads",
    default=0,
    lowest=0,
    highest=256,
    meaning="threads that may share a layer's work, 0 for as many as the process may use at once",
)
INSTRUCTIONS = BackendOption(
    name="instructions",
    default=AUTOMATIC,
    choices=(AUTOMATIC, PORTABLE, *(item.name for item in SETS)),
    meaning="the vector instructions, auto for the fastest that the host has",
)
HOST_OPTIONS = (NUM_THREADS, INSTRUCTIONS)


@frozen
class HostOptions:
    """The options' values; they do not change results, except for the rounding of float32 sums."""

    num_threads: int = 0
    """Threads that may share the work of a layer, including the caller's; 0 for one per processor that the process may
    use. Only layers that are large enough to benefit are shared."""
    instructions: str = AUTOMATIC
    """A name in `instruction_set.SETS`, "portable", or "auto" for the fastest set that the host supports."""

    @classmethod
    def parse(cls, options: Mapping[str, OptionValue]) -> HostOptions:
        """Return the values of the options, by name; raises the OptionError of `check_options`."""
        check_options("CpuAcc", HOST_OPTIONS, options)
        return cls(
            num_threads=int(options.get(NUM_THREADS.name, NUM_THREADS.default)),
            instructions=str(options.get(INSTRUCTIONS.name, INSTRUCTIONS.default)),
        )

    @property
    def threads(self) -> int:
        """The number of threads to use; never 0."""
        return self.num_threads or usable_processors()
