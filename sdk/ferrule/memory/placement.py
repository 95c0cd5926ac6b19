# SPDX-License-Identifier: Apache-2.0
"""What the planner hands out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ferrule.errors import FerruleError

_NAMED_AT_PEAK = 6


class ArenaOverflowError(FerruleError):
    """The buffers do not fit in the memories that they may live in."""

    def __init__(self, *, need: int, have: int, region: str, worst: Iterable[str]) -> None:
        names = list(worst)
        more = f" and {len(names) - _NAMED_AT_PEAK} more" if len(names) > _NAMED_AT_PEAK else ""
        super().__init__(
            f"arena needs {need} B but region '{region}' holds {have} B ({need - have} B too many)",
            hint=f"alive at the peak: {', '.join(names[:_NAMED_AT_PEAK])}{more}. "
            "Choose a board with more memory or a smaller model.",
        )
        self.need = need
        self.have = have
        self.region = region
        self.worst = tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a buffer lies."""

    region: str
    offset: int
    """Bytes from the start of the region's arena."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPlan:
    """The arena of one region."""

    region: str
    size_bytes: int
    """What the region holds."""
    peak_bytes: int
    """What the arena takes: the highest end of a buffer."""
    bound_bytes: int
    """No arena for these buffers is smaller: proved."""
    activation_peak_bytes: int
    """What the arena would take without scratch: the peak of the best plan found for these activations alone."""
    activation_bound_bytes: int
    """No arena for these activations alone is smaller: proved."""
    alignment: int
    """What the start of the arena must be aligned to, in bytes."""

    @property
    def scratch_bytes(self) -> int:
        """What scratch adds to the arena; 0 where it finds room beside the activations."""
        return self.peak_bytes - self.activation_peak_bytes

    @property
    def certificate(self) -> str:
        """How good the arena is, given its buffers: "optimal" or how far it is from the bound; see `certify`."""
        return certify(self.peak_bytes, self.bound_bytes)

    @property
    def activation_certificate(self) -> str:
        """How good `activation_peak_bytes` is, in the same words."""
        return certify(self.activation_peak_bytes, self.activation_bound_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where every buffer lies, and how good that is."""

    placements: Mapping[str, Placement]
    """By the name of the buffer."""
    regions: tuple[RegionPlan, ...]
    """One per region given, in that order, those without buffers included."""

    def region(self, name: str) -> RegionPlan:
        """Return the arena of a region; KeyError if the plan does not know it."""
        for region in self.regions:
            if region.region == name:
                return region
        raise KeyError(name)

    @property
    def peak_bytes(self) -> int:
        """All arenas together."""
        return sum(region.peak_bytes for region in self.regions)

    @property
    def activation_peak_bytes(self) -> int:
        """All arenas together, as they would be without scratch."""
        return sum(region.activation_peak_bytes for region in self.regions)

    @property
    def certificate(self) -> str:
        """The certificate of the region that is farthest above its bound.

        It holds for the order of layers, the aliases and the choice of regions that the plan has.
        """
        return _worst([(region.peak_bytes, region.bound_bytes) for region in self.regions])

    @property
    def activation_certificate(self) -> str:
        """The same for the activations alone."""
        return _worst([(region.activation_peak_bytes, region.activation_bound_bytes) for region in self.regions])


def certify(peak: int, bound: int) -> str:
    """Return how good a peak is: "optimal", or how far above the bound it can be at most, since the search was cut."""
    if peak == bound:
        return "optimal"
    tenths = -(-(peak - bound) * 1000 // bound)  # rounded up, so that "at most" is true
    return f"at most {tenths // 10}.{tenths % 10} % above the proved bound, search cut short"


def _worst(pairs: Iterable[tuple[int, int]]) -> str:
    used = [(peak, bound) for peak, bound in pairs if bound]
    return certify(*max(used, key=lambda pair: pair[0] / pair[1])) if used else "optimal"
