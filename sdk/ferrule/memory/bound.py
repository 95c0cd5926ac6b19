# SPDX-License-Identifier: Apache-2.0
"""Proved lower bounds on an arena."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ferrule.memory.arena import Arena, round_up


def lower_bound(arena: Arena) -> int:
    """Return the most bytes that must be there at one step; no layout of the arena is smaller.

    Storages that live at one step and are aligned to g lie at multiples of g, so each but the topmost takes its size
    rounded up to g.
    """
    changes = sorted({storage.lifetime.first for storage in arena.storages})
    return max((_bound_at(arena, live_at(arena, step)) for step in changes), default=0)


def fullest(arena: Arena) -> list[int]:
    """The storages that live at the step that gives the bound, the first such step."""
    steps = sorted({storage.lifetime.first for storage in arena.storages})
    crowds = [live_at(arena, step) for step in steps]
    return max(crowds, key=lambda crowd: _bound_at(arena, crowd), default=[])


def live_at(arena: Arena, step: int) -> list[int]:
    """The storages that live at a step."""
    return [
        number
        for number, storage in enumerate(arena.storages)
        if storage.lifetime.first <= step <= storage.lifetime.last
    ]


def _bound_at(arena: Arena, live: Sequence[int]) -> int:
    members = set(live)
    overlaps = [pair for pair in arena.overlaps if members.issuperset(pair)]
    if overlaps:
        return sum(arena.sizes[number] for number in live) - _saved(arena, overlaps)
    grains = {arena.alignments[number] for number in live}
    grains.add(math.gcd(*grains))
    return max(_aligned_sum(arena, live, grain) for grain in grains)


def _aligned_sum(arena: Arena, live: Sequence[int], grain: int) -> int:
    sizes = [arena.sizes[number] for number in live if arena.alignments[number] % grain == 0]
    rounded = [round_up(size, grain) for size in sizes]
    return sum(rounded) - max(up - size for up, size in zip(rounded, sizes, strict=True))


def _saved(arena: Arena, overlaps: Sequence[tuple[int, int]]) -> int:
    """At most how many bytes the overlaps of one step can save: an output's bytes are each saved once."""
    saved: dict[int, int] = {}
    for output, source in overlaps:
        most = min(arena.sizes[output] - max(arena.overlaps[output, source], 0), arena.sizes[source])
        saved[output] = saved.get(output, 0) + max(most, 0)
    return sum(min(most, arena.sizes[output]) for output, most in saved.items())
