# SPDX-License-Identifier: Apache-2.0
"""Search for a small arena: greedy by size, then hill climbing over orders, then exact search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ferrule.memory.arena import Arena, Offsets
from ferrule.memory.bound import lower_bound
from ferrule.memory.exact import prove


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search; counted in steps of work, not in time, so that the same problem gives the same plan."""

    placements: int = 150_000
    """Storages placed while climbing."""
    nodes: int = 300_000
    """Storages looked at in exact search."""


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
    offsets, order = _greedy(arena, range(len(arena.storages)), fixed=None)
    if arena.peak(offsets) > bound:
        offsets = _climb(arena, order, offsets, bound=bound, effort=effort, fixed=None)
    if arena.peak(offsets) > bound:
        offsets, proved = prove(arena, offsets, bound=bound, nodes=effort.nodes)
        if proved:
            bound = arena.peak(offsets)
    return Layout(offsets=offsets, peak=arena.peak(offsets), bound=bound)


def fill(arena: Arena, fixed: Offsets, effort: Effort) -> Offsets:
    """Place the storages that `fixed` leaves out, around those that it places."""
    free = [number for number, offset in enumerate(fixed) if offset < 0]
    bound = max(lower_bound(arena), arena.peak(fixed))
    offsets, order = _greedy(arena, free, fixed=fixed)
    if arena.peak(offsets) > bound:
        offsets = _climb(arena, order, offsets, bound=bound, effort=effort, fixed=fixed)
    return offsets


def _tie_orders(arena: Arena) -> list[Callable[[int], tuple[int, ...]]]:
    lives = [storage.lifetime for storage in arena.storages]
    sizes = arena.sizes
    return [
        lambda n: (-sizes[n], n),
        lambda n: (-sizes[n], -n),
        lambda n: (-sizes[n], lives[n].first - lives[n].last, n),
        lambda n: (-sizes[n] * (lives[n].last - lives[n].first + 1), n),
        lambda n: (-sum(sizes[other] for other, _, _ in arena.neighbours[n]) - sizes[n], n),
        lambda n: (lives[n].first, -sizes[n], n),
    ]


def _greedy(arena: Arena, free: Sequence[int], fixed: Offsets | None) -> tuple[Offsets, list[int]]:
    tried = []
    for key in _tie_orders(arena):
        order = sorted(free, key=key)
        tried.append((arena.place(order, fixed=fixed), order))
    return min(tried, key=lambda one: arena.peak(one[0]))


def _climb(
    arena: Arena, order: list[int], offsets: Offsets, *, bound: int, effort: Effort, fixed: Offsets | None
) -> Offsets:
    """Move storages in the order as long as that does not raise the peak; stop at the bound."""
    dice = _Dice()
    peak = arena.peak(offsets)
    for _ in range(effort.placements // max(len(order), 1)):
        changed = list(order)
        one = _culprit(arena, order, offsets, peak, dice)
        two = dice.below(len(order))
        if dice.below(2):
            changed[one], changed[two] = changed[two], changed[one]
        else:
            changed.insert(two, changed.pop(one))
        found = arena.place_within(changed, peak, fixed=fixed)
        if found is None:
            continue
        order, offsets, peak = changed, found, arena.peak(found)
        if peak <= bound:
            break
    return offsets


def _culprit(arena: Arena, order: Sequence[int], offsets: Offsets, peak: int, dice: _Dice) -> int:
    """A position in the order: mostly that of a storage at the peak or of one that lives beside it."""
    if dice.below(4) == 0:
        return dice.below(len(order))
    top = [number for number in order if offsets[number] + arena.sizes[number] == peak]
    if not top:
        return dice.below(len(order))
    chosen = top[dice.below(len(top))]
    position = {number: place for place, number in enumerate(order)}
    near = [chosen, *(other for other, _, _ in arena.neighbours[chosen] if other in position)]
    return position[near[dice.below(len(near))]]
