# SPDX-License-Identifier: Apache-2.0
"""One region's storages and what keeps them apart; an order of them becomes offsets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from ferrule.memory.storage import Storage

Offsets = list[int]
"""One per storage, in bytes; -1 where it is not placed."""
UNPLACED = -1


class Arena:
    """Storages to be laid out in one region.

    Two storages that live at the same time keep a distance: if x starts below y, then
    `offset(y) - offset(x) >= distance(x, y)`, which is the size of x unless a kernel allows the two to overlap.
    """

    def __init__(
        self,
        storages: Sequence[Storage],
        *,
        alignment: int = 1,
        overlaps: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """Prepare the distances; `overlaps` has the safe distance by (output's storage, input's storage)."""
        self.storages = tuple(storages)
        self._alignment = alignment
        self._by_name = dict(overlaps or {})
        self.sizes = [storage.size_bytes for storage in storages]
        self.alignments = [math.lcm(storage.alignment, alignment) for storage in storages]
        self.overlaps = self._applicable()
        self.crowds = self._crowds()
        """What lives at each step at which something starts to live; the other steps have no more."""

    def _crowds(self) -> list[tuple[int, ...]]:
        starting: dict[int, list[int]] = {}
        for number, storage in enumerate(self.storages):
            starting.setdefault(storage.lifetime.first, []).append(number)
        live: list[int] = []
        crowds = []
        for step in sorted(starting):
            live = [number for number in live if self.storages[number].lifetime.last >= step] + starting[step]
            crowds.append(tuple(live))
        return crowds

    @cached_property
    def neighbours(self) -> list[list[tuple[int, int, int]]]:
        """Per storage b: each c that lives at the same time, distance(b, c) and distance(c, b)."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in self.storages]
        for crowd in self.crowds:
            step = self.storages[crowd[-1]].lifetime.first
            for place, one in enumerate(crowd):
                if self.storages[one].lifetime.first == step:
                    for two in crowd[:place]:
                        below, above = self.distance(one, two), self.distance(two, one)
                        found[one].append((two, below, above))
                        found[two].append((one, above, below))
        return found

    def without_scratch(self) -> Arena:
        """The same arena with the activations alone."""
        activations = [storage for storage in self.storages if not storage.is_scratch]
        return Arena(activations, alignment=self._alignment, overlaps=self._by_name)

    def _applicable(self) -> dict[tuple[int, int], int]:
        index = {storage.name: number for number, storage in enumerate(self.storages)}
        found: dict[tuple[int, int], int] = {}
        for (output, source), distance in self._by_name.items():
            if output == source or output not in index or source not in index:
                continue
            one, two = index[output], index[source]
            if self.storages[one].lifetime.first == self.storages[two].lifetime.last:
                found[one, two] = distance
        return found

    def distance(self, one: int, two: int) -> int:
        """How far `two` must start above `one`, in bytes, if it starts above it."""
        return min(self.sizes[one], self.overlaps.get((one, two), self.sizes[one]))

    def peak(self, offsets: Offsets) -> int:
        """The highest end of a placed storage; 0 if there is none."""
        return max((offset + size for offset, size in zip(offsets, self.sizes, strict=True) if offset >= 0), default=0)

    def lowest(self, storage: int, offsets: Offsets) -> int:
        """The lowest offset at which a storage keeps its distance from all that are placed."""
        blocked = sorted(
            (offsets[other] - below, offsets[other] + above)
            for other, below, above in self.neighbours[storage]
            if offsets[other] >= 0
        )
        position = 0
        for low, high in blocked:
            if position <= low:
                break
            if position < high:
                position = round_up(high, self.alignments[storage])
        return position

    def highest(self, storage: int, offsets: Offsets, height: int) -> int:
        """The highest offset at which a storage ends within `height` and keeps its distances; negative if none."""
        blocked = sorted(
            (
                (offsets[other] + above, offsets[other] - below)
                for other, below, above in self.neighbours[storage]
                if offsets[other] >= 0
            ),
            reverse=True,
        )
        grain = self.alignments[storage]
        position = (height - self.sizes[storage]) // grain * grain
        for high, low in blocked:
            if position >= high:
                break
            if position > low:
                position = low // grain * grain
        return position

    def place(self, order: Sequence[int], *, fixed: Offsets | None = None) -> Offsets:
        """Place storages one by one, each as low as it goes beside those before it and beside `fixed`."""
        offsets = [UNPLACED] * len(self.sizes) if fixed is None else list(fixed)
        for storage in order:
            offsets[storage] = self.lowest(storage, offsets)
        return offsets

    def place_within(self, order: Sequence[int], limit: int, *, fixed: Offsets | None = None) -> Offsets | None:
        """The same as `place`; None as soon as a storage ends above `limit` bytes."""
        offsets = [UNPLACED] * len(self.sizes) if fixed is None else list(fixed)
        for storage in order:
            offset = self.lowest(storage, offsets)
            if offset + self.sizes[storage] > limit:
                return None
            offsets[storage] = offset
        return offsets

    def place_from_both_ends(self, order: Sequence[int], height: int) -> Offsets:
        """Place what can start at 0 there, and the rest as high as it goes below `height`, or above it if need be.

        Solves chains, in which each storage meets the one before it and the one after it.
        """
        offsets = [UNPLACED] * len(self.sizes)
        for storage in order:
            low = self.lowest(storage, offsets)
            high = self.highest(storage, offsets, height)
            offsets[storage] = low if low == 0 or high < 0 else high
        return offsets


def round_up(value: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `value`."""
    return -(-value // alignment) * alignment
