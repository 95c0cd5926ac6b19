# SPDX-License-Identifier: Apache-2.0
"""Exact search over canonical layouts, with bounded effort.

Any layout can be compacted downwards until each storage, in order of offset, rests on another one or on offset 0. It
is therefore enough to search the orders in which each storage takes the lowest offset that its predecessors allow,
never below its predecessor (canonical layouts: Moffitt, "MiniMalloc", ASPLOS 2023).

With a negative distance, an input can rest on an output that starts above it. The order is then not that of the offsets
but of the offsets less a lead, which is chosen so that each storage comes after those on which it can rest. The same
holds for storages that consist of parts, if no storage can lie between two parts of another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.memory.arena import UNPLACED, Arena, Offsets, round_up
from ferrule.memory.tied_arena import TiedArena

_MOST_STORAGES = 200
"""Limit on the storages: the search is nested as deep as their number, and a single descent takes half of its square
from the effort."""


def prove(arena: Arena, offsets: Offsets, *, bound: int, nodes: int, looks: int) -> tuple[Offsets, bool]:
    """Return the best layout found, at least as good as `offsets`, and whether it is proved optimal.

    `nodes` limits the candidate storages considered over all search nodes; `looks` limits the storages inspected in the
    sets of simultaneously live ones. Overlaps at steps are searched as if any distance would do, which is not worse;
    the result may therefore not keep the steps.
    """
    if len(arena.storages) > _MOST_STORAGES:
        return offsets, False
    arena = arena.without_steps() if arena.stepped else arena
    leads = _leads_of_parts(arena) if isinstance(arena, TiedArena) else _leads(arena)
    if leads is None:
        return offsets, False
    search = _Search(arena=arena, best=offsets, leads=leads, bound=bound, nodes=nodes, looks=looks)
    complete = search.descend(-max(leads, default=0), UNPLACED)
    return search.best, complete


def _leads(arena: Arena) -> list[int] | None:
    """Return the lead of each storage; None if none makes the offsets less the leads an order.

    If `y` rests on `x`, then `offset(x) + distance(x, y) = offset(y)`, and y comes after x if the distance plus the
    lead of x is not less than the lead of y.
    """
    leads = [0] * len(arena.storages)
    for output, source in sorted(arena.overlaps, key=lambda pair: int(arena.firsts[pair[0]])):
        if not arena.is_free(output, source):
            leads[output] = max(leads[output], leads[source] - arena.distance(output, source))
    for one, beside in enumerate(arena.neighbours):
        if any(distance + leads[one] < leads[other] for other, distance, _ in beside):
            return None
    return leads


def _leads_of_parts(arena: TiedArena) -> list[int] | None:
    """Return the lead of each storage, as `_leads` does; None if a storage can lie between two parts of another one."""
    if any(len({other for other, _, _ in beside}) < len(beside) for beside in arena.neighbours):
        return None  # a storage can lie in the gap
    leads = [0] * len(arena.storages)
    for _ in range(len(leads) + 1):
        before = list(leads)
        for one, beside in enumerate(arena.neighbours):
            for other, distance, _ in beside:
                leads[other] = min(leads[other], leads[one] + distance)
        if leads == before:
            least = min(leads, default=0)
            return [lead - least for lead in leads]
    return None  # some storages can only be lowered together


@dataclass(kw_only=True)
class _Search:
    arena: Arena
    best: Offsets
    leads: list[int]
    bound: int
    nodes: int
    looks: int

    def __post_init__(self) -> None:
        count = len(self.arena.storages)
        self.peak = self.arena.peak(self.best)
        self.offsets: Offsets = [UNPLACED] * count
        self.floors = [0] * count
        """The lowest offset of each storage above the placed ones."""
        self.free = set(range(count))
        self.crowds = _crowds(self.arena)
        self.width = sum(len(crowd) for crowd in self.crowds)

    def descend(self, low: int, last: int) -> bool:
        """Place the remaining storages, whose offsets less their leads are at least `low`; False if effort ran out."""
        if not self.free:
            self.best = list(self.offsets)
            self.peak = self.arena.peak(self.best)
            return True
        self.nodes -= len(self.free)
        self.looks -= self.width
        if self.nodes < 0 or self.looks < 0:
            return False
        if self._hopeless(low):
            return True
        for number in self._candidates(low, last):
            saved = self._push(number)
            complete = self.descend(self.offsets[number] - self.leads[number], number)
            self._pop(number, saved)
            if not complete:
                return False
            if self.peak <= self.bound:
                return True
        return True

    def _hopeless(self, low: int) -> bool:
        """Whether the remaining storages cannot all end below the best peak."""
        sizes, floors, free, leads = self.arena.sizes, self.floors, self.free, self.leads
        if any(max(floors[number], low + leads[number]) + sizes[number] >= self.peak for number in free):
            return True
        for crowd in self.crowds:
            left = [number for number in crowd if number in free]
            if (
                left
                and max(min(floors[number] for number in left), low) + sum(sizes[number] for number in left)
                >= self.peak
            ):
                return True
        return False

    def _candidates(self, low: int, last: int) -> list[int]:
        """Return the storages that may come next, without those that would leave a gap below for another storage."""
        sizes, floors, leads = self.arena.sizes, self.floors, self.leads
        roof = min(floors[number] + sizes[number] for number in self.free)
        ties_matter = bool(self.arena.overlaps) or isinstance(self.arena, TiedArena)
        found = [
            number
            for number in self.free
            if low <= floors[number] - leads[number] < roof and (ties_matter or floors[number] > low or number > last)
        ]
        return sorted(found, key=lambda number: (floors[number], -sizes[number], number))

    def _push(self, number: int) -> list[tuple[int, int]]:
        offset = self.floors[number]
        self.offsets[number] = offset
        self.free.remove(number)
        saved = []
        for other, distance, _ in self.arena.neighbours[number]:
            if other in self.free:
                floor = round_up(offset + distance, self.arena.alignments[other])
                if floor > self.floors[other]:
                    saved.append((other, self.floors[other]))
                    self.floors[other] = floor
        return saved

    def _pop(self, number: int, saved: list[tuple[int, int]]) -> None:
        for other, floor in saved:
            self.floors[other] = floor
        self.offsets[number] = UNPLACED
        self.free.add(number)


def _crowds(arena: Arena) -> list[frozenset[int]]:
    """Return the maximal sets of storages that are live at one step and may not overlap, as a whole."""
    lapping = {output for output, _ in arena.overlaps}
    # What consists of parts does not use all its bytes at once.
    lapping.update(number for number, storage in enumerate(arena.storages) if storage.parts)
    crowds = {frozenset(crowd).difference(lapping) for crowd in map(arena.live_at, arena.starts)}
    return sorted((crowd for crowd in crowds if not any(crowd < other for other in crowds)), key=sorted)
