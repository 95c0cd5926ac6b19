# SPDX-License-Identifier: Apache-2.0
"""One region's storages and what keeps them apart; an order of them becomes offsets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ferrule.memory.storage import Storage

Offsets = list[int]
"""One per storage, in bytes; -1 where it is not placed."""
Numbers = NDArray[np.int64]
UNPLACED = -1
_MOST_PAIRS = 250_000
"""Above so many pairs of storages that live at the same time they are not listed; it would take too much memory."""


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
        self.firsts = np.array([storage.lifetime.first for storage in storages], np.int64)
        self.lasts = np.array([storage.lifetime.last for storage in storages], np.int64)
        self._by_start = np.argsort(self.firsts, kind="stable")

    @cached_property
    def starts(self) -> list[int]:
        """The steps at which something starts to live, ascending; at the other steps no more lives."""
        return [int(step) for step in np.unique(self.firsts)]

    def live_at(self, step: int) -> tuple[int, ...]:
        """The storages that live at a step, in the order in which they start to."""
        order = self._by_start
        return tuple(order[(self.firsts[order] <= step) & (self.lasts[order] >= step)].tolist())

    @cached_property
    def is_crowded(self) -> bool:
        """Whether so many pairs live at the same time that `neighbours` must not be asked for."""
        count = len(self.sizes)
        apart = int(np.searchsorted(np.sort(self.lasts), self.firsts).sum())
        return count * (count - 1) // 2 - apart > _MOST_PAIRS

    def beside(self, number: int) -> list[int]:
        """The storages that live at the same time as one, itself included."""
        lives = (self.firsts <= self.lasts[number]) & (self.lasts >= self.firsts[number])
        return [int(other) for other in np.flatnonzero(lives)]

    def load(self, weights: Sequence[int], first: Sequence[int], last: Sequence[int]) -> list[int]:
        """For each span of steps the sum of the weights of the storages that live at one of them at least."""
        values = np.array(weights, np.int64)
        ending = np.argsort(self.lasts, kind="stable")
        started = np.concatenate([[0], np.cumsum(values[self._by_start])])
        ended = np.concatenate([[0], np.cumsum(values[ending])])
        begun = np.searchsorted(self.firsts[self._by_start], last, side="right")
        gone = np.searchsorted(self.lasts[ending], first, side="left")
        return [int(value) for value in started[begun] - ended[gone]]

    @cached_property
    def neighbours(self) -> list[list[tuple[int, int, int]]]:
        """Per storage b: each c that lives at the same time, distance(b, c) and distance(c, b)."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in self.storages]
        live: list[int] = []
        for one in self._by_start.tolist():
            step = self.storages[one].lifetime.first
            live = [other for other in live if self.storages[other].lifetime.last >= step]
            for two in live:
                below, above = self.distance(one, two), self.distance(two, one)
                found[one].append((two, below, above))
                found[two].append((one, above, below))
            live.append(one)
        return found

    @cached_property
    def overlaps_at(self) -> dict[int, list[tuple[int, int]]]:
        """The overlapping pairs by the one step at which both live."""
        found: dict[int, list[tuple[int, int]]] = {}
        for one, two in self.overlaps:
            found.setdefault(self.storages[one].lifetime.first, []).append((one, two))
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
        blocked = [
            (offset - below, offset + above)
            for other, below, above in self.neighbours[storage]
            if (offset := offsets[other]) >= 0
        ]
        blocked.sort()
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
        if self.is_crowded:
            return _Crowd(self, fixed).place(order)
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


class _Crowd:
    """Places storages as `Arena.lowest` does, without lists of what lives beside what."""

    def __init__(self, arena: Arena, fixed: Offsets | None) -> None:
        self._arena = arena
        self._offsets = [UNPLACED] * len(arena.sizes) if fixed is None else list(fixed)
        placed = [number for number, offset in enumerate(self._offsets) if offset >= 0]
        placed.sort(key=self._offsets.__getitem__)
        self._placed = np.zeros((5, len(arena.sizes)), np.int64)
        """Number, offset, end, first and last step of what is placed, by offset."""
        self._count = len(placed)
        for column, number in enumerate(placed):
            self._placed[:, column] = self._row(number)
        self._laps: dict[int, list[int]] = {}
        for one, two in arena.overlaps:
            self._laps.setdefault(one, []).append(two)
            self._laps.setdefault(two, []).append(one)

    def _row(self, number: int) -> tuple[int, int, int, int, int]:
        offset, life = self._offsets[number], self._arena.storages[number].lifetime
        return number, offset, offset + self._arena.sizes[number], life.first, life.last

    def place(self, order: Sequence[int]) -> Offsets:
        """Place storages one by one and return all offsets."""
        for number in order:
            self._offsets[number] = self._lowest(number)
            column = int(np.searchsorted(self._placed[1, : self._count], self._offsets[number]))
            self._placed[:, column + 1 : self._count + 1] = self._placed[:, column : self._count].copy()
            self._placed[:, column] = self._row(number)
            self._count += 1
        return self._offsets

    def _lowest(self, number: int) -> int:
        life, size = self._arena.storages[number].lifetime, self._arena.sizes[number]
        grain = self._arena.alignments[number]
        numbers, offsets, ends, firsts, lasts = self._placed[:, : self._count]
        beside = np.flatnonzero((firsts <= life.last) & (lasts >= life.first))
        lows, highs = offsets[beside] - size, ends[beside]
        if number in self._laps:
            self._keep_distances(number, numbers[beside], lows, highs)
            order = np.argsort(lows, kind="stable")
            lows, highs = lows[order], highs[order]
        reached = np.maximum.accumulate(np.concatenate([[0], highs]))
        reached = -(-reached // grain) * grain
        free = np.flatnonzero(reached[:-1] <= lows)
        return int(reached[free[0]] if free.size else reached[-1])

    def _keep_distances(self, number: int, numbers: Numbers, lows: Numbers, highs: Numbers) -> None:
        """Put the distances of overlaps in place of sizes."""
        for other in self._laps[number]:
            where = np.flatnonzero(numbers == other)
            lows[where] = self._offsets[other] - self._arena.distance(number, other)
            highs[where] = self._offsets[other] + self._arena.distance(other, number)


def round_up(value: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `value`."""
    return -(-value // alignment) * alignment
