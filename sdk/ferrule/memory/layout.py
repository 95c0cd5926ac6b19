# SPDX-License-Identifier: Apache-2.0
"""The storages of one region, laid out: first the activations alone, then scratch around them."""

from __future__ import annotations

import math

from ferrule.memory.arena import UNPLACED, Arena
from ferrule.memory.bound import lower_bound
from ferrule.memory.placement import RegionPlan
from ferrule.memory.region import Region
from ferrule.memory.search import Effort, fill, search
from ferrule.memory.storage import pieces
from ferrule.memory.tied_arena import TiedArena


class RegionLayout:
    """The storages of one region, laid out: scratch around the activations, or both together if that is smaller."""

    def __init__(self, region: Region, arena: Arena, effort: Effort) -> None:
        self.region = region
        self.arena = arena
        self._effort = effort
        self.alone = search(arena.without_scratch(), effort)
        offsets, self.bound = iter(self.alone.offsets), self.alone.bound
        self.offsets = [UNPLACED if storage.is_scratch else next(offsets) for storage in arena.storages]
        if UNPLACED in self.offsets:
            self.bound = max(lower_bound(arena), self.bound)
            self.offsets = fill(arena, self.offsets, effort)
            if arena.peak(self.offsets) > self.bound:
                together = search(arena, effort)
                self.bound = max(self.bound, together.bound)
                self.offsets = min(self.offsets, together.offsets, key=arena.peak)
        self.peak = arena.peak(self.offsets)

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
