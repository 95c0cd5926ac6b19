# SPDX-License-Identifier: Apache-2.0
"""Search for a small arena: greedy by size, then hill climbing over orders, then exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ferrule.memory.arena import Arena, Offsets
from ferrule.memory.bound import lower_bound
from ferrule.memory.exact import prove

_SHORT = 10
"""A first, short climb takes this part of the effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search; counted in steps of work, not in time, so that the same problem gives the same plan."""

    placements: int = 150_000
    """Storages placed while climbing."""
    nodes: int = 300_000
    """Storages that may come next in exact search, summed over its nodes."""
    looks: int = 250_000
    """Storages beside another one that are looked at: by simple rules, while climbing, and in exact search, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Offsets, what they take and what they must take at least, in bytes."""

    offsets: Offsets
    peak: int
    bound: int


class _Dice:
    """Numbers that look random and are the same on every machine and Python (a 64-bit xorshift, Marsaglia 2003)."""

    def __init__(self, seed: int = 0x9E37_79B9_7F4A_7C15) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        state = self._state
        state ^= (state << 13) & 0xFFFF_FFFF_FFFF_FFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFF_FFFF_FFFF_FFFF
        self._state = state
        return (state >> 11) % limit


def search(arena: Arena, effort: Effort) -> Layout:
    """Return the smallest layout found; its bound equals its peak where it is proved optimal."""
    bound = lower_bound(arena)
    offsets, order = _greedy(arena, range(len(arena.storages)), fixed=None, bound=bound, looks=effort.looks)
    climb = _Climb(arena, order, offsets, bound=bound, fixed=None)
    climb.run(effort, part=_SHORT)
    if climb.peak > bound:
        offsets, proved = prove(arena, climb.offsets, bound=bound, nodes=effort.nodes, looks=effort.looks)
        if proved:
            return Layout(offsets=offsets, peak=arena.peak(offsets), bound=arena.peak(offsets))
        climb.run(effort)
    offsets = min(climb.offsets, offsets, key=arena.peak)
    return Layout(offsets=offsets, peak=arena.peak(offsets), bound=bound)


def fill(arena: Arena, fixed: Offsets, effort: Effort) -> Offsets:
    """Place the storages that `fixed` leaves out, around those that it places."""
    free = [number for number, offset in enumerate(fixed) if offset < 0]
    bound = max(lower_bound(arena), arena.peak(fixed))
    offsets, order = _greedy(arena, free, fixed=fixed, bound=bound, looks=effort.looks)
    climb = _Climb(arena, order, offsets, bound=bound, fixed=fixed)
    climb.run(effort, part=_SHORT)
    return climb.offsets


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


def _by_offset(offsets: Offsets) -> list[int]:
    """An order in which each storage, placed as low as it goes, ends up no higher (but for overlaps)."""
    return sorted(range(len(offsets)), key=lambda number: (offsets[number], number))


def _greedy(
    arena: Arena, free: Sequence[int], *, fixed: Offsets | None, bound: int, looks: int
) -> tuple[Offsets, list[int]]:
    """Return the best of the layouts that simple rules give, and the order of placing that gives it.

    The first that reaches the bound ends the search, and so does the one with which `looks` are spent.
    """
    best: tuple[Offsets, list[int]] | None = None
    for order in _orders(arena, free, both_ends=fixed is None, height=bound):
        offsets = arena.place(order, fixed=fixed)
        if best is None or arena.peak(offsets) < arena.peak(best[0]):
            best = offsets, order
        looks -= 0 if arena.is_crowded else _looks(arena, order)
        if arena.peak(offsets) <= bound or looks < 0:
            break
    assert best is not None  # there are always orders
    return best


def _orders(arena: Arena, free: Sequence[int], *, both_ends: bool, height: int) -> Iterator[list[int]]:
    rules = _tie_orders(arena)
    orders = [sorted(free, key=key) for key in (rules[:1] + rules[3:4] if arena.is_crowded else rules)]
    yield from orders
    if both_ends and not arena.is_crowded:
        for order in orders:
            yield _by_offset(arena.place_from_both_ends(order, height))


def _looks(arena: Arena, order: Sequence[int]) -> int:
    """How many storages are looked at when these are placed."""
    return sum(len(arena.neighbours[number]) for number in order)


class _Climb:
    """Moves storages in an order as long as that does not raise the peak."""

    def __init__(self, arena: Arena, order: list[int], offsets: Offsets, *, bound: int, fixed: Offsets | None) -> None:
        self._arena = arena
        self._order = order
        self.offsets = offsets
        self.peak = arena.peak(offsets)
        self._bound = bound
        self._fixed = fixed
        self._dice = _Dice()

    def run(self, effort: Effort, part: int = 1) -> None:
        """Go on until the bound is reached or 1/`part` of the effort is spent."""
        if self.peak <= self._bound or self._arena.is_crowded:
            return
        looks = max(_looks(self._arena, self._order), 1)
        rounds = min(effort.placements // max(len(self._order), 1), effort.looks // looks)
        for _ in range(rounds // part):
            if self.peak <= self._bound:
                return
            changed = self._changed()
            found = self._arena.place_within(changed, self.peak, fixed=self._fixed)
            if found is not None:
                self._order, self.offsets, self.peak = changed, found, self._arena.peak(found)

    def _changed(self) -> list[int]:
        changed = list(self._order)
        one, two = self._culprit(), self._dice.below(len(changed))
        if self._dice.below(2):
            changed[one], changed[two] = changed[two], changed[one]
        else:
            changed.insert(two, changed.pop(one))
        return changed

    def _culprit(self) -> int:
        """A position in the order: mostly that of a storage at the peak or of one that lives beside it."""
        arena, order, dice = self._arena, self._order, self._dice
        top = [number for number in order if self.offsets[number] + arena.sizes[number] == self.peak]
        if dice.below(4) == 0 or not top:
            return dice.below(len(order))
        chosen = top[dice.below(len(top))]
        position = {number: place for place, number in enumerate(order)}
        near = [chosen, *(other for other, _, _ in arena.neighbours[chosen] if other in position)]
        return position[near[dice.below(len(near))]]
