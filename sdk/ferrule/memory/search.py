# SPDX-License-Identifier: Apache-2.0
"""Searches for a small arena: greedily by size, then by hill climbing over orders, then by exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ferrule._frozen import frozen
from ferrule.memory.arena import Arena, Offsets
from ferrule.memory.bound import lower_bound
from ferrule.memory.exact import prove

_SHORT = 10
"""The first, short climb uses 1/`_SHORT` of the effort."""


@frozen
class Effort:
    """The limits of a search, in units of work rather than time, so that the same problem always has the same plan."""

    placements: int = 150_000
    """Limit on the storages placed by hill climbing."""
    nodes: int = 300_000
    """Limit on the candidate storages in exact search, summed over its nodes."""
    looks: int = 250_000
    """Limit on the inspected storages live at the same time as another, separately for greedy search, hill climbing and
    exact search."""


@frozen
class Layout:
    """Offsets, with their peak and a proved lower bound on any peak, in bytes."""

    offsets: Offsets
    peak: int
    bound: int


class _Dice:
    """Pseudo-random numbers, the same on every machine and Python version (a 64-bit xorshift, Marsaglia 2003)."""

    _state = 0x9E37_79B9_7F4A_7C15

    def below(self, limit: int) -> int:
        state = self._state
        state ^= (state << 13) & 0xFFFF_FFFF_FFFF_FFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFF_FFFF_FFFF_FFFF
        self._state = state
        return (state >> 11) % limit


def search(arena: Arena, effort: Effort) -> Layout:
    """Return the smallest layout found; its bound equals its peak if it is proved optimal."""
    bound = lower_bound(arena)
    climb = _greedy(arena, range(len(arena.storages)), fixed=None, bound=bound, effort=effort)
    offsets = climb.offsets
    if climb.peak > bound:
        found, proved = prove(arena, climb.offsets, bound=bound, nodes=effort.nodes, looks=effort.looks)
        bound = arena.peak(found) if proved else bound
        if arena.keeps_steps(found):
            offsets = min(offsets, found, key=arena.peak)
        if arena.peak(offsets) > bound:
            climb.bound = bound
            climb.run(effort)
    offsets = min(climb.offsets, offsets, key=arena.peak)
    return Layout(offsets=offsets, peak=arena.peak(offsets), bound=bound)


def fill(arena: Arena, fixed: Offsets, effort: Effort) -> Offsets:
    """Return offsets that keep the storages placed in `fixed` and place all others around them."""
    free = [number for number, offset in enumerate(fixed) if offset < 0]
    bound = max(lower_bound(arena), arena.peak(fixed))
    return _greedy(arena, free, fixed=fixed, bound=bound, effort=effort).offsets


def _tie_orders(arena: Arena) -> list[Callable[[int], tuple[int, ...]]]:
    lives = [storage.lifetime for storage in arena.storages]
    sizes = arena.sizes
    beside = arena.load(sizes, arena.firsts.tolist(), arena.lasts.tolist())
    return [
        lambda n: (-sizes[n], n),
        lambda n: (-sizes[n], -n),
        lambda n: (-sizes[n], lives[n].first - lives[n].last, n),
        lambda n: (-sizes[n] * (lives[n].last - lives[n].first + 1), n),
        lambda n: (-beside[n], n),
        lambda n: (lives[n].first, -sizes[n], n),
    ]


def _greedy(arena: Arena, free: Sequence[int], *, fixed: Offsets | None, bound: int, effort: Effort) -> _Climb:
    """Return a climb that begins with the best layout from several simple orders of placement, after a short run.

    The search ends with the first layout that reaches the bound, or when the looks are used up.
    """
    looks = effort.looks
    best: tuple[Offsets, list[int]] | None = None
    for order in _orders(arena, free, both_ends=fixed is None, height=bound):
        offsets = arena.place(order, fixed=fixed)
        if best is None or arena.peak(offsets) < arena.peak(best[0]):
            best = offsets, order
        looks -= 0 if arena.is_crowded else _looks(arena, order)  # a crowd has no lists of neighbours to count
        if arena.peak(offsets) <= bound or looks < 0:
            break
    assert best is not None  # there is always at least one order
    climb = _Climb(arena=arena, order=best[1], offsets=best[0], bound=bound, fixed=fixed)
    climb.run(effort, part=_SHORT)
    return climb


def _orders(arena: Arena, free: Sequence[int], *, both_ends: bool, height: int) -> Iterator[list[int]]:
    rules = _tie_orders(arena)
    orders = [sorted(free, key=key) for key in (rules[:1] + rules[3:4] if arena.is_crowded else rules)]
    yield from orders
    if both_ends and not arena.is_crowded:
        for order in orders:
            placed = arena.place_from_both_ends(order, height)
            # In this order, placing each storage at its lowest offset moves none of them up, except for overlaps.
            yield sorted(range(len(placed)), key=placed.__getitem__)


def _looks(arena: Arena, order: Sequence[int]) -> int:
    """Return the number of storages inspected when the storages of an order are placed."""
    return sum(len(arena.neighbours[number]) for number in order)


@dataclass(kw_only=True)
class _Climb:
    """Changes an order of placement at random and keeps each change that does not raise the peak."""

    arena: Arena
    order: list[int]
    offsets: Offsets
    bound: int
    """The peak at which the climb ends."""
    fixed: Offsets | None

    def __post_init__(self) -> None:
        self.peak = self.arena.peak(self.offsets)
        self._dice = _Dice()

    def run(self, effort: Effort, part: int = 1) -> None:
        """Climb until the bound is reached or 1/`part` of the effort is used."""
        if self.peak <= self.bound or len(self.order) < 2 or self.arena.is_crowded:
            return
        looks = max(_looks(self.arena, self.order), 1)
        rounds = min(effort.placements // max(len(self.order), 1), effort.looks // looks)
        for _ in range(rounds // part):
            if self.peak <= self.bound:
                return
            changed = self._changed()
            found = self.arena.place_within(changed, self.peak, fixed=self.fixed)
            if found is not None:
                self.order, self.offsets, self.peak = changed, found, self.arena.peak(found)

    def _changed(self) -> list[int]:
        changed = list(self.order)
        one, two = self._culprit(), self._dice.below(len(changed))
        if self._dice.below(2):
            changed[one], changed[two] = changed[two], changed[one]
        else:
            changed.insert(two, changed.pop(one))
        return changed

    def _culprit(self) -> int:
        """Return a position in the order, mostly of a storage at the peak or of one live at the same time as it."""
        arena, order, dice = self.arena, self.order, self._dice
        top = [number for number in order if self.offsets[number] + arena.sizes[number] == self.peak]
        if dice.below(4) == 0 or not top:
            return dice.below(len(order))
        chosen = top[dice.below(len(top))]
        position = {number: place for place, number in enumerate(order)}
        near = [chosen, *(other for other, _, _ in arena.neighbours[chosen] if other in position)]
        return position[near[dice.below(len(near))]]
