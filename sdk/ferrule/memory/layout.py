# SPDX-License-Identifier: Apache-2.0
"""The storages of one region, laid out: first the activations alone, then scratch around them."""

from __future__ import annotations

import math

from ferrule.memory.arena import UNPLACED, Arena, Offsets
from ferrule.memory.bound import lower_bound
from ferrule.memory.placement import RegionPlan
from ferrule.memory.region import Region
from ferrule.memory.search import Effort, Layout, fill, search
from ferrule.memory.storage import pieces
from ferrule.memory.tied_arena import TiedArena


class RegionLayout:
    """The storages of one region, laid out."""

    def __init__(self, region: Region, arena: Arena, effort: Effort) -> None:
        self.region = region
        self.arena = arena
        self._effort = effort
        self.alone = search(arena.without_scratch(), effort)
        layout = self.alone if all(offset >= 0 for offset in self._spread()) else self._with_scratch(effort)
        self.offsets, self.peak, self.bound = layout.offsets, layout.peak, layout.bound

    def _with_scratch(self, effort: Effort) -> Layout:
        """Place scratch around the activations; lay out both together if that is smaller."""
        bound = max(lower_bound(self.arena), self.alone.bound)
        offsets = fill(self.arena, self._spread(), effort)
        if self.arena.peak(offsets) > bound:
            together = search(self.arena, effort)
            bound = max(bound, together.bound)
            offsets = min(offsets, together.offsets, key=self.arena.peak)
        return Layout(offsets=offsets, peak=self.arena.peak(offsets), bound=bound)

    def _spread(self) -> Offsets:
        """Return the offsets of the activations laid out alone, with UNPLACED for scratch."""
        offsets = iter(self.alone.offsets)
        return [UNPLACED if storage.is_scratch else next(offsets) for storage in self.arena.storages]

    def summary(self) -> RegionPlan:
        """Return the figures of the region."""
        ends = [
            offset + part.end
            for offset, storage in zip(self.offsets, self.arena.storages, strict=True)
            for part in pieces(storage)
            if not part.storage.is_scratch
        ]
        alone = self.alone
        if isinstance(self.arena, TiedArena):
            alone = search(self.arena.activations(), self._effort)
        return RegionPlan(
            region=self.region.name,
            size_bytes=self.region.size_bytes,
            peak_bytes=self.peak,
            bound_bytes=self.bound,
            activation_peak_bytes=min(alone.peak, max(ends, default=0)),
            activation_bound_bytes=alone.bound,
            alignment=math.lcm(self.region.alignment, *self.arena.alignments),
        )
