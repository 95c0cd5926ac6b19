# SPDX-License-Identifier: Apache-2.0
"""The results of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, some_of

_NAMED_AT_PEAK = 6


class ArenaOverflowError(FerruleError):
    """The buffers do not fit into their allowed memories."""

    def __init__(self, *, need: int, have: int, region: str, worst: Iterable[str]) -> None:
        names = list(worst)
        super().__init__(
            f"arena needs {need} B but region '{region}' holds {have} B ({need - have} B too many)",
            hint=f"alive at the peak: {some_of(names, _NAMED_AT_PEAK)}. "
            "Choose a board with more memory or a smaller model.",
        )
        self.need = need
        self.have = have
        self.region = region
        self.worst = tuple(names)


@frozen
class Placement:
    """The location of a buffer."""

    region: str
    offset: int
    """Bytes from the start of the region's arena."""


@frozen
class RegionPlan:
    """The arena of one region."""

    region: str
    size_bytes: int
    """Capacity of the region, in bytes."""
    peak_bytes: int
    """Size of the arena, in bytes: the highest end of a buffer."""
    bound_bytes: int
    """Proved lower bound on the size of any arena for these buffers."""
    activation_peak_bytes: int
    """Size of the arena without scratch: the peak of the best plan found for the activations alone."""
    activation_bound_bytes: int
    """Proved lower bound on the size of any arena for the activations alone."""
    alignment: int
    """Required alignment of the start of the arena, in bytes."""

    @property
    def scratch_bytes(self) -> int:
        """Bytes that scratch adds to the arena; 0 if it fits between the activations."""
        return self.peak_bytes - self.activation_peak_bytes

    @property
    def certificate(self) -> str:
        """The quality of the arena for its buffers: "optimal", or its distance from the bound; see `certify`.

        It holds for the plan's order of layers, its aliases and its choice of regions.
        """
        return certify(self.peak_bytes, self.bound_bytes)

    @property
    def activation_certificate(self) -> str:
        """The quality of `activation_peak_bytes`, in the same form."""
        return certify(self.activation_peak_bytes, self.activation_bound_bytes)


@frozen
class MemoryPlan:
    """The placement of every buffer, and the quality of the arenas."""

    placements: Mapping[str, Placement]
    """By name of the buffer."""
    regions: tuple[RegionPlan, ...]
    """One entry per region given, in the same order, including regions without buffers."""

    def region(self, name: str) -> RegionPlan:
        """Return the arena of a region; KeyError if the plan has no such region."""
        return {region.region: region for region in self.regions}[name]

    @property
    def peak_bytes(self) -> int:
        """Size of all arenas together."""
        return sum(region.peak_bytes for region in self.regions)


def certify(peak: int, bound: int) -> str:
    """Return the quality of a peak: "optimal", or the most that it can exceed the bound after a search cut short."""
    if peak == bound:
        return "optimal"
    tenths = -(-(peak - bound) * 1000 // bound)  # rounded up, so that "at most" stays true
    return f"at most {tenths // 10}.{tenths % 10} % above the proved bound, search cut short"
