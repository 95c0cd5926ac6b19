# SPDX-License-Identifier: Apache-2.0
"""What the memories of a board add to the cycles of its core."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ferrule._frozen import frozen
from ferrule.errors import FerruleError

MOST_WAIT_STATES = 255
MOST_LINES = 4096
"""Largest number of lines of a cache."""
LINE_BYTES = (4, 8, 16, 32, 64, 128)
"""The sizes of a line, and of what a memory delivers at once."""


def _check(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise FerruleError(f"{what} is {value}, expected {least} to {most}")


def _check_size(what: str, value: int) -> None:
    if value not in LINE_BYTES:
        raise FerruleError(f"{what} is {value}, expected {', '.join(map(str, LINE_BYTES))}")


@frozen
class CacheTiming:
    """A cache that replaces the line that was used longest ago.

    Raises:
        FerruleError: a number is out of its range.
    """

    sets: int
    """A power of 2; 1 for a cache in which each line may have each address."""
    ways: int
    line_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all lines."""
        return self.sets * self.ways * self.line_bytes

    def __post_init__(self) -> None:
        _check("sets", self.sets, 1, MOST_LINES)
        if self.sets & self.sets - 1:
            raise FerruleError(f"sets is {self.sets}, expected a power of 2")
        _check("ways", self.ways, 1, MOST_LINES // self.sets)
        _check_size("line_bytes", self.line_bytes)


@frozen
class MemoryTiming:
    """What an access to a memory takes beyond one to a memory without wait states, which each core's cycles assume.

    Raises:
        FerruleError: a number is out of its range.
    """

    wait_states: int = 0
    """Cycles that a read or fetch waits which no cache and no prefetch buffer answers."""
    write_wait_states: int = 0
    """Cycles that a write waits."""
    dma_wait_states: int = 0
    """Cycles for which a core that is awake waits for each access of `width_bytes` that a device makes to the memory; 0
    where the two reach it beside each other."""
    width_bytes: int = 4
    """Bytes that the memory delivers at once; a fetch from the same ones does not wait again."""
    prefetch: bool = False
    """Whether the memory reads the next bytes of code while the core executes the present ones."""
    instruction_cache: CacheTiming | None = None
    data_cache: CacheTiming | None = None
    """The cache for reads of data, literals included."""

    def __post_init__(self) -> None:
        _check("wait_states", self.wait_states, 0, MOST_WAIT_STATES)
        _check("write_wait_states", self.write_wait_states, 0, MOST_WAIT_STATES)
        _check("dma_wait_states", self.dma_wait_states, 0, MOST_WAIT_STATES)
        _check_size("width_bytes", self.width_bytes)
        for name, cache in (("instruction_cache", self.instruction_cache), ("data_cache", self.data_cache)):
            if cache is not None and cache.line_bytes < self.width_bytes:
                raise FerruleError(
                    f"the lines of {name} have {cache.line_bytes} B, fewer than the {self.width_bytes} B of width_bytes"
                )

    @property
    def waits(self) -> bool:
        """Whether any access of the core takes longer than in a memory without wait states."""
        return self.wait_states > 0 or self.write_wait_states > 0


@frozen
class BoardTiming:
    """The timing of a board's memories.

    Raises:
        FerruleError: the residual is not a range around 0.
    """

    source: str
    """Where the numbers are from: a manual with its section, or a calibration."""
    memories: Mapping[str, MemoryTiming]
    """By name; a memory that is not named has no wait states."""
    residual: tuple[float, float] | None = None
    """The range of the error that a calibration left, relative to the measured time: (-0.02, 0.03); None without one.
    """

    def __post_init__(self) -> None:
        if self.residual is not None and not -1 < self.residual[0] <= 0 <= self.residual[1] < inf:
            low, high = self.residual
            raise FerruleError(
                f"residual is [{low:g}, {high:g}]",
                hint="a lowest and a highest relative error around 0, such as [-0.02, 0.03]",
            )

    def memory(self, name: str) -> MemoryTiming:
        """Return the timing of a memory; one that is not named has no wait states."""
        return self.memories.get(name, MemoryTiming())

    @property
    def waits(self) -> bool:
        """Whether any access to any memory takes longer than in a memory without wait states."""
        return any(memory.waits for memory in self.memories.values())
