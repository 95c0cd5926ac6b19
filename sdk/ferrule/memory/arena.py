# SPDX-License-Identifier: Apache-2.0
"""The storages of one region and the distances between them; turns an order of placement into offsets."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.memory.storage import Storage

Offsets = list[int]
"""One offset per storage, in bytes; -1 if the storage is not placed."""
Numbers = NDArray[np.int64]
UNPLACED = -1
_FEW = 32
"""Storages that may start or end between two snapshots in any case: looking at them is no more work than a copy."""
_MOST_PAIRS = 250_000
"""With more pairs of simultaneously live storages than this, the pairs are not listed, to save memory."""


@frozen
class Lap:
    """How the storage of an output may overlap that of an input; distances are as in `ferrule.memory.Overlap`."""

    forward: int | None
    """The least number of bytes by which the input starts above the output; negative if it may start below it."""
    backward: int | None
    """The least number of bytes by which the output starts above the input; it is positive."""
    step: int = 1
    """Where the two overlap, the distance is a multiple of this."""

    def joined(self, other: Lap) -> Lap:
        """Return the overlap that keeps to both."""
        return Lap(
            forward=None if self.forward is None or other.forward is None else max(self.forward, other.forward),
            backward=None if self.backward is None or other.backward is None else max(self.backward, other.backward),
            step=math.lcm(self.step, other.step),
        )


class Arena:
    """The storages to be laid out in one region.

    Two storages that are live at the same time keep a distance: if x starts below y, then
    `offset(y) - offset(x) >= distance(x, y)`. The distance is the size of x unless a kernel allows the two to overlap.
    It is negative if y may also start below x by so much. Some pairs that overlap also keep to multiples of a step.
    """

    def __init__(
        self,
        storages: Sequence[Storage],
        *,
        alignment: int = 1,
        overlaps: Mapping[tuple[str, str], Lap] | None = None,
    ) -> None:
        """Prepare the distances; `overlaps` is by (output's storage, input's storage)."""
        self.storages = tuple(storages)
        self._alignment = alignment
        self._by_name = dict(overlaps or {})
        self.sizes = [storage.size_bytes for storage in storages]
        self.alignments = [math.lcm(storage.alignment, alignment) for storage in storages]
        self._distances: dict[tuple[int, int], int] = {}
        """The distance of each pair that may overlap, in both orders."""
        self.stepped: dict[int, list[tuple[int, int]]] = {}
        """By storage: those that it may overlap at multiples of a step only, with the step."""
        self.overlaps = self._applicable()
        """The pairs of an output and an input that may overlap."""
        self.firsts = np.array([storage.lifetime.first for storage in storages], np.int64)
        self.lasts = np.array([storage.lifetime.last for storage in storages], np.int64)
        self._by_start = np.argsort(self.firsts, kind="stable")

    @cached_property
    def starts(self) -> list[int]:
        """The steps at which a storage becomes live, in ascending order; no other step adds live storages."""
        return [int(step) for step in np.unique(self.firsts)]

    def live_at(self, step: int) -> tuple[int, ...]:
        """Return the storages that are live at a step, ordered by the step at which they become live."""
        candidates = self._candidates(step)
        return tuple(candidates[self.lasts[candidates] >= step].tolist())

    def _candidates(self, step: int) -> Numbers:
        """Return storages among which are all that are live at a step, ordered by start: not many more than these."""
        steps, begun, found = self._snapshots
        place = bisect_right(steps, step) - 1
        since = self._by_start[begun[place] : np.searchsorted(self._starting, step, side="right")]
        return np.concatenate([found[place], since])

    @cached_property
    def _starting(self) -> Numbers:
        return self.firsts[self._by_start]

    @cached_property
    def _snapshots(self) -> tuple[list[int], list[int], list[Numbers]]:
        """The storages live at some steps, each with the step and the number of storages that have started until then.

        After one of them, at most about as many storages start or end before the next as are live at it.
        """
        started = np.searchsorted(self._starting, self.starts, side="right").tolist()
        ended = np.searchsorted(np.sort(self.lasts), self.starts, side="left").tolist()
        steps, begun, found, changes = [-1], [0], [np.zeros(0, np.int64)], 0
        for step, start, end in zip(self.starts, started, ended, strict=True):
            if start + end - changes > max(_FEW, len(found[-1])):
                candidates = np.concatenate([found[-1], self._by_start[begun[-1] : start]])
                steps.append(step)
                begun.append(start)
                found.append(candidates[self.lasts[candidates] >= step])
                changes = start + end
        return steps, begun, found

    @cached_property
    def is_crowded(self) -> bool:
        """Whether so many pairs are live at the same time that `neighbours` must not be used."""
        count = len(self.sizes)
        apart = int(np.searchsorted(np.sort(self.lasts), self.firsts).sum())
        return count * (count - 1) // 2 - apart > _MOST_PAIRS

    def beside(self, number: int) -> list[int]:
        """Return the storages that are live at the same time as the given one, which is included."""
        lives = (self.firsts <= self.lasts[number]) & (self.lasts >= self.firsts[number])
        return [int(other) for other in np.flatnonzero(lives)]

    def load(self, weights: Sequence[int], first: Sequence[int], last: Sequence[int]) -> list[int]:
        """Return, for each span of steps, the total weight of the storages that are live at any of its steps."""
        values = np.array(weights, np.int64)
        ending = np.argsort(self.lasts, kind="stable")
        started = np.concatenate([[0], np.cumsum(values[self._by_start])])
        ended = np.concatenate([[0], np.cumsum(values[ending])])
        begun = np.searchsorted(self._starting, last, side="right")
        gone = np.searchsorted(self.lasts[ending], first, side="left")
        return [int(value) for value in started[begun] - ended[gone]]

    @cached_property
    def neighbours(self) -> list[list[tuple[int, int, int]]]:
        """Per storage b: each storage c that is live at the same time, with distance(b, c) and distance(c, b).

        Pairs that may have any places are left out.
        """
        found: list[list[tuple[int, int, int]]] = [[] for _ in self.storages]
        live: list[int] = []
        for one in self._by_start.tolist():
            step = self.storages[one].lifetime.first
            live = [other for other in live if self.storages[other].lifetime.last >= step]
            for two in live:
                if self.is_free(one, two):
                    continue
                below, above = self.distance(one, two), self.distance(two, one)
                found[one].append((two, below, above))
                found[two].append((one, above, below))
            live.append(one)
        return found

    @cached_property
    def overlaps_at(self) -> dict[int, list[tuple[int, int]]]:
        """The pairs allowed to overlap, by the one step at which both are live."""
        found: dict[int, list[tuple[int, int]]] = {}
        for one, two in self.overlaps:
            found.setdefault(self.storages[one].lifetime.first, []).append((one, two))
        return found

    def without_scratch(self) -> Arena:
        """Return the same arena with only the activations."""
        activations = [storage for storage in self.storages if not storage.is_scratch]
        return type(self)(activations, alignment=self._alignment, overlaps=self._by_name)

    def without_steps(self) -> Arena:
        """Return the same arena, but with overlaps at any distance instead of at multiples of a step."""
        overlaps = {pair: replace(lap, step=1) for pair, lap in self._by_name.items()}
        return type(self)(self.storages, alignment=self._alignment, overlaps=overlaps)

    def _applicable(self) -> tuple[tuple[int, int], ...]:
        index = {storage.name: number for number, storage in enumerate(self.storages)}
        found = []
        for (output, source), lap in self._by_name.items():
            if output == source or output not in index or source not in index:
                continue
            one, two = index[output], index[source]
            if self.storages[one].lifetime.first == self.storages[two].lifetime.last:
                found.append((one, two))
                self._distances[one, two] = self._nearest(one, two, lap.forward)
                self._distances[two, one] = self._nearest(two, one, lap.backward)
                if lap.step > 1:
                    self.stepped.setdefault(one, []).append((two, lap.step))
                    self.stepped.setdefault(two, []).append((one, lap.step))
        return tuple(found)

    def _nearest(self, below: int, above: int, distance: int | None) -> int:
        """Return the least distance that two storages can have, which is a multiple of what divides their offsets."""
        size = self.sizes[below]
        if distance is None:
            return size
        return min(round_up(distance, math.gcd(self.alignments[below], self.alignments[above])), size)

    def distance(self, one: int, two: int) -> int:
        """Return the least number of bytes by which `two` must start above `one`, if it starts above it."""
        return self._distances.get((one, two), self.sizes[one])

    def is_free(self, one: int, two: int) -> bool:
        """Return whether two storages that are live at the same time may have any places."""
        if (one, two) not in self._distances or self._step(one, two):
            return False
        grain = math.gcd(self.alignments[one], self.alignments[two])
        return (-self.distance(two, one) // grain + 1) * grain >= self.distance(one, two)

    def _step(self, one: int, two: int) -> int:
        return next((step for other, step in self.stepped.get(one, ()) if other == two), 0)

    def keeps_steps(self, offsets: Offsets) -> bool:
        """Return whether every pair that overlaps at multiples of a step only does so."""
        return all(self._stepped(one, offsets[one], offsets, 1) == offsets[one] for one in self.stepped)

    def _stepped(self, storage: int, position: int, offsets: Offsets, side: int) -> int:
        """Return the lowest place from `position` on that is at a step of each placed storage that it overlaps.

        With `side` -1, all places are negated: see `_settled`.
        """
        grain = self.alignments[storage]
        for base, step, low, high in self._grids(storage, offsets):
            start, first, last = (base, low, high) if side > 0 else (-base, -high, -low)
            if (position - start) % step and first < position < last:
                beyond, whole = round_up(last, grain), math.lcm(step, grain)
                near = start + round_up(position - start, whole)
                position = min(beyond, near) if start % grain == 0 else beyond
        return position

    def _grids(self, storage: int, offsets: Offsets) -> Iterator[tuple[int, int, int, int]]:
        """Yield, for each placed storage to which steps apply, the place of step 0, the step, and the ends of steps."""
        for other, step in self.stepped[storage]:
            start = offsets[other]
            if start >= 0:
                yield start, step, start - self.sizes[storage], start + self.sizes[other]

    def peak(self, offsets: Offsets) -> int:
        """Return the highest end of any placed storage, in bytes; 0 if none is placed."""
        return max((offset + size for offset, size in zip(offsets, self.sizes, strict=True) if offset >= 0), default=0)

    def lowest(self, storage: int, offsets: Offsets) -> int:
        """Return the lowest offset at which a storage keeps its distance from all placed storages."""
        blocked = [
            (offset - below, offset + above)
            for other, below, above in self.neighbours[storage]
            if (offset := offsets[other]) >= 0
        ]
        return self._settled(storage, 0, blocked, offsets, 1)

    def highest(self, storage: int, offsets: Offsets, height: int) -> int:
        """Return the highest offset that fits within `height` bytes and keeps the distances; negative if none does."""
        blocked = [
            (-offset - above, below - offset)
            for other, below, above in self.neighbours[storage]
            if (offset := offsets[other]) >= 0
        ]
        start = round_up(self.sizes[storage] - height, self.alignments[storage])
        return -self._settled(storage, start, blocked, offsets, -1)

    def _settled(self, storage: int, position: int, blocked: list[tuple[int, int]], offsets: Offsets, side: int) -> int:
        """Return the lowest allowed place from `position` on, outside of the blocked intervals.

        With `side` -1, all places are negated, so that the lowest of them is the highest offset.
        """
        blocked.sort()
        grain = self.alignments[storage]
        while True:
            for low, high in blocked:
                if position <= low:
                    break
                if position < high:
                    position = round_up(high, grain)
            stepped = self._stepped(storage, position, offsets, side) if storage in self.stepped else position
            if stepped == position:
                return position
            position = stepped

    def place(self, order: Sequence[int], *, fixed: Offsets | None = None) -> Offsets:
        """Place storages one by one, each at its lowest offset given the earlier ones and the `fixed` ones."""
        if self.is_crowded:
            return _Crowd(self, fixed).place(order)
        offsets = self.place_within(order, sys.maxsize, fixed=fixed)
        assert offsets is not None
        return offsets

    def place_within(self, order: Sequence[int], limit: int, *, fixed: Offsets | None = None) -> Offsets | None:
        """Place storages as `place` does; return None as soon as a storage ends above `limit` bytes."""
        offsets = [UNPLACED] * len(self.sizes) if fixed is None else list(fixed)
        for storage in order:
            offset = self.lowest(storage, offsets)
            if offset + self.sizes[storage] > limit:
                return None
            offsets[storage] = offset
        return offsets

    def place_from_both_ends(self, order: Sequence[int], height: int) -> Offsets:
        """Place storages at 0 if possible, otherwise at the highest offset within `height`, or else at the lowest one.

        This solves chains, in which each storage is live together with only its predecessor and its successor.
        """
        offsets = [UNPLACED] * len(self.sizes)
        for storage in order:
            low = self.lowest(storage, offsets)
            high = self.highest(storage, offsets, height)
            offsets[storage] = low if low == 0 or high < 0 else high
        return offsets


class _Crowd:
    """Places storages as `Arena.place` does, but without lists of the storages that are live at the same time."""

    def __init__(self, arena: Arena, fixed: Offsets | None) -> None:
        self._arena = arena
        self._offsets = [UNPLACED] * len(arena.sizes) if fixed is None else list(fixed)
        placed = [number for number, offset in enumerate(self._offsets) if offset >= 0]
        placed.sort(key=self._offsets.__getitem__)
        self._placed = np.zeros((5, len(arena.sizes)), np.int64)
        """Number, offset, end, first step and last step of each placed storage, sorted by offset."""
        self._count = len(placed)
        for column, number in enumerate(placed):
            self._placed[:, column] = self._row(number)
        self._laps: dict[int, list[int]] = {}
        for one, two in arena.overlaps:
            if not any(other == two for other, _ in arena.stepped.get(one, ())):  # steps are not worth the time here
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
        """Replace the distances derived from sizes by the distances of the allowed overlaps."""
        for other in self._laps[number]:
            where = np.flatnonzero(numbers == other)
            lows[where] = self._offsets[other] - self._arena.distance(number, other)
            highs[where] = self._offsets[other] + self._arena.distance(other, number)


def round_up(value: int, alignment: int) -> int:
    """Return the least multiple of `alignment` that is not below `value`."""
    return -(-value // alignment) * alignment
