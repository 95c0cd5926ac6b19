# SPDX-License-Identifier: Apache-2.0
"""Memories that buffers can live in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A memory of the plan: one arena of it is laid out, from offset 0."""

    name: str
    size_bytes: int
    """What the plan may take of it; sys.maxsize where there is no limit."""
    alignment: int = 1
    """Every offset in it is a multiple of this, in bytes: 1, a bus width, or a cache line that none may share."""
    reachable_by: frozenset[str] = frozenset()
    """The bus masters (the core, DMA engines, accelerators) that can read and write it."""

    def __post_init__(self) -> None:
        if self.size_bytes < 0 or self.alignment < 1:
            raise ValueError(f"region '{self.name}' has size {self.size_bytes} and alignment {self.alignment}")


def reachable(regions: Iterable[Region], masters: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the regions that all `masters` reach, in the order given."""
    wanted = frozenset(masters)
    return tuple(region.name for region in regions if wanted <= region.reachable_by)
