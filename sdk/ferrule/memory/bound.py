# SPDX-License-Identifier: Apache-2.0
"""Proved lower bounds on the size of an arena."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ferrule.memory.arena import Arena, round_up
from ferrule.memory.tied_arena import TiedArena

_MOST_STACKED = 8
"""Limit on the blocks whose orders are all compared, which takes time and memory that double with each block."""


def lower_bound(arena: Arena) -> int:
    """Return the most bytes that are needed at any one step; no layout of the arena is smaller."""
    return fullest(arena)[0]


def fullest(arena: Arena) -> tuple[int, tuple[int, ...]]:
    """Return the bound, and the storages that are live at the first step that attains it.

    Steps that cannot exceed the best found are skipped.
    """
    best, first = 0, -1
    crowd: tuple[int, ...] = ()
    if isinstance(arena, TiedArena):
        return _fullest_tied(arena)
    for most, step in sorted(zip(_mosts(arena), arena.starts, strict=True), key=lambda one: (-one[0], one[1])):
        if most < best:
            break
        live = arena.live_at(step)
        bytes_ = bound_at(arena, step, live)
        if bytes_ > best or (bytes_ == best and step < first) or first < 0:
            best, first, crowd = bytes_, step, live
    return best, crowd


def _fullest_tied(arena: TiedArena) -> tuple[int, tuple[int, ...]]:
    """Return the bound and its storages for an arena with ties, whose storages do not use all their bytes at once."""
    largest = max(range(len(arena.sizes)), key=lambda number: (arena.sizes[number], -number))
    best = arena.sizes[largest]
    crowd: tuple[int, ...] = (largest,)
    for step in arena.starts:
        if arena.most_at(step) <= best:
            continue
        live, sizes, alignments = arena.blocks_at(step)
        pieces, pairs = arena.pairs_at(step)
        bytes_ = sum(sizes) - _saved(pieces, pairs) if pairs else _height(sizes, alignments)
        if bytes_ > best:
            best, crowd = bytes_, live
    return best, crowd


def _mosts(arena: Arena) -> list[int]:
    """Return an upper estimate of the bound at each step at which a storage becomes live."""
    pairs = list(zip(arena.sizes, arena.alignments, strict=True))
    if len(set(arena.alignments)) == 1:
        weights = [round_up(size, alignment) for size, alignment in pairs]
    else:
        weights = [size + alignment - 1 for size, alignment in pairs]
    return arena.load(weights, arena.starts, arena.starts)


def bound_at(arena: Arena, step: int, live: Sequence[int]) -> int:
    """Return a lower bound on the bytes that the storages live at one step need together."""
    overlaps = arena.overlaps_at.get(step)
    if overlaps:
        return sum(arena.sizes[number] for number in live) - _saved(arena, overlaps)
    return _height([arena.sizes[number] for number in live], [arena.alignments[number] for number in live])


def _height(sizes: Sequence[int], alignments: Sequence[int]) -> int:
    """Return a lower bound on the height of blocks that do not overlap."""
    grains = set(alignments)
    if len(grains) > 1 and len(sizes) <= _MOST_STACKED:
        return _stacked(sizes, alignments)
    grains.add(math.gcd(*grains))
    return max(_aligned_sum(sizes, alignments, grain) for grain in grains)


def _stacked(sizes: Sequence[int], alignments: Sequence[int]) -> int:
    """Return the least height of a stack of blocks over all orders, which differ in their alignment padding."""
    ends = [0] * (1 << len(sizes))
    for chosen in range(1, len(ends)):
        ends[chosen] = min(
            round_up(ends[chosen & ~(1 << place)], alignments[place]) + size
            for place, size in enumerate(sizes)
            if chosen >> place & 1
        )
    return ends[-1]


def _aligned_sum(sizes: Sequence[int], alignments: Sequence[int], grain: int) -> int:
    """Return the height of the blocks aligned to `grain`: each except the topmost takes its size rounded up."""
    chosen = [size for size, alignment in zip(sizes, alignments, strict=True) if alignment % grain == 0]
    rounded = [round_up(size, grain) for size in chosen]
    return sum(rounded) - max(up - size for up, size in zip(rounded, chosen, strict=True))


def _saved(arena: Arena, overlaps: Sequence[tuple[int, int]]) -> int:
    """Return the most bytes that the overlaps of one step can save; each byte of an output is saved at most once."""
    saved: dict[int, int] = {}
    for output, source in overlaps:
        saved[output] = saved.get(output, 0) + max(_common(arena, output, source), _common(arena, source, output))
    return sum(min(most, arena.sizes[output]) for output, most in saved.items())


def _common(arena: Arena, below: int, above: int) -> int:
    """Return the most bytes that two storages can have in common if the second does not start below the first."""
    return min(arena.sizes[below] - max(arena.distance(below, above), 0), arena.sizes[above])
