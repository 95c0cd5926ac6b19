# SPDX-License-Identifier: Apache-2.0
"""Memory regions that can hold buffers."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule._frozen import frozen


@frozen
class Region:
    """A memory region of the plan; it has one arena, laid out from offset 0."""

    name: str
    size_bytes: int
    """The most bytes of the region that the plan may use; sys.maxsize if there is no limit."""
    alignment: int = 1
    """Every offset in the region is a multiple of this, in bytes: 1, a bus width, or the size of a cache line that
    buffers must not share."""
    reachable_by: frozenset[str] = frozenset()
    """The bus masters (the core, DMA engines, accelerators) that can read and write the region."""
    line_bytes: int = 0
    """Bytes per line of the core's data cache, if it may hold lines of the region; 0 otherwise."""

    def __post_init__(self) -> None:
        if self.size_bytes < 0 or self.alignment < 1:
            raise ValueError(f"region '{self.name}' has size {self.size_bytes} and alignment {self.alignment}")


def home(regions: Iterable[Region], masters: Iterable[str]) -> Region | None:
    """Return the first of the regions that all `masters` can reach; None if there is none."""
    wanted = frozenset(masters)
    return next((region for region in regions if wanted <= region.reachable_by), None)
