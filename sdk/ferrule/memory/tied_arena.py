# SPDX-License-Identifier: Apache-2.0
"""The storages of one region of which some consist of parts: tensors at fixed places inside the scratch of a layer.

A part takes its bytes only while it is live, so another storage may lie where the scratch is at another time. Two
storages keep their distance if all their parts do that are live at the same time. The places of one beside the other
are then those outside of several intervals, not of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ferrule._typing import override
from ferrule.memory.arena import Arena, Lap, Offsets
from ferrule.memory.storage import Storage, pieces, shared


class TiedArena(Arena):
    """An arena with storages that consist of parts."""

    def __init__(
        self,
        storages: Sequence[Storage],
        *,
        alignment: int = 1,
        overlaps: Mapping[tuple[str, str], Lap] | None = None,
    ) -> None:
        """Prepare the distances; `overlaps` is by the names of parts, or of storages without parts."""
        super().__init__(storages, alignment=alignment)
        self._by_name = dict(overlaps or {})
        self._owners: list[int] = []
        """By piece, which is a part or a whole storage: the storage."""
        self._places: list[int] = []
        """By piece: its first byte in the storage."""
        parts: list[Storage] = []
        for number, storage in enumerate(storages):
            for part in pieces(storage):
                parts.append(part.storage)
                self._owners.append(number)
                self._places.append(part.offset)
        self._pieces = Arena(parts, alignment=alignment, overlaps=overlaps)
        pairs = ((self._owners[one], self._owners[two]) for one, two in self._pieces.overlaps)
        self.overlaps = tuple(dict.fromkeys((one, two) for one, two in pairs if one != two))
        for piece in self._pieces.stepped:
            self.stepped[self._owners[piece]] = []  # only the keys count here: see `_steps`

    @cached_property
    @override
    def is_crowded(self) -> bool:
        """Always false: a network whose layers are compiled ahead of time has few tensors."""
        return False

    @cached_property
    @override
    def neighbours(self) -> list[list[tuple[int, int, int]]]:
        """Per storage b: each c that is live at the same time, as in `Arena`, once per interval of forbidden places."""
        found: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self.storages]
        for piece, beside in enumerate(self._pieces.neighbours):
            one, place = self._owners[piece], self._places[piece]
            for other, below, above in beside:
                two, shift = self._owners[other], place - self._places[other]
                if two != one and below + above > 0:
                    found[one].setdefault(two, []).append((-below - shift, above - shift))
        return [
            [(two, -low, high) for two, intervals in each.items() for low, high in _joined(intervals)] for each in found
        ]

    def activations(self) -> Arena:
        """Return the arena of the tensors alone, without scratch; ties between tensors stay."""
        storages = [_without_scratch(storage) for storage in self.storages if storage.parts or not storage.is_scratch]
        kind = TiedArena if any(storage.parts for storage in storages) else Arena
        return kind(storages, alignment=self._alignment, overlaps=self._by_name)

    # ---- the bound

    @cached_property
    @override
    def starts(self) -> list[int]:
        """The steps at which a part becomes live, in ascending order."""
        return self._pieces.starts

    def most_at(self, step: int) -> int:
        """Return the bytes of the pieces that are live at a step, rounded up generously."""
        pieces = self._pieces
        return sum(pieces.sizes[each] + pieces.alignments[each] - 1 for each in pieces.live_at(step))

    def blocks_at(self, step: int) -> tuple[tuple[int, ...], list[int], list[int]]:
        """Return the storages that use bytes at a step, and the sizes and alignments of their blocks of such bytes."""
        used: dict[int, list[tuple[int, int]]] = {}
        for piece in self._pieces.live_at(step):
            start = self._places[piece]
            used.setdefault(self._owners[piece], []).append((start, start + self._pieces.sizes[piece]))
        sizes, alignments = [], []
        for number, intervals in used.items():
            for low, high in _joined(intervals, touching=True):
                sizes.append(high - low)
                alignments.append(math.gcd(self.alignments[number], low))
        return tuple(used), sizes, alignments

    def pairs_at(self, step: int) -> tuple[Arena, list[tuple[int, int]]]:
        """Return the arena of the pieces, and its pairs that are allowed to overlap at a step."""
        pairs = self._pieces.overlaps_at.get(step, ())
        return self._pieces, [(one, two) for one, two in pairs if self._owners[one] != self._owners[two]]

    # ---- overlaps at multiples of a step

    @cached_property
    def _steps(self) -> dict[int, list[tuple[int, int, int]]]:
        """By storage: its pieces that may overlap another piece at multiples of a step only."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        for piece, others in self._pieces.stepped.items():
            for other, step in others:
                if self._owners[piece] != self._owners[other]:
                    found.setdefault(self._owners[piece], []).append((piece, other, step))
        return found

    @override
    def _grids(self, storage: int, offsets: Offsets) -> Iterator[tuple[int, int, int, int]]:
        sizes = self._pieces.sizes
        for piece, other, step in self._steps.get(storage, ()):
            if offsets[self._owners[other]] >= 0:
                base = offsets[self._owners[other]] + self._places[other] - self._places[piece]
                yield base, step, base - sizes[piece], base + sizes[other]


def _without_scratch(storage: Storage) -> Storage:
    """Return a storage without its parts for scratch."""
    kept = [part for part in storage.parts if not part.storage.is_scratch]
    if len(kept) < 2:
        return kept[0].storage if kept else storage
    start = min(part.offset for part in kept) // storage.alignment * storage.alignment
    parts = tuple(replace(part, offset=part.offset - start) for part in kept)
    lifetime, _ = shared([part.storage for part in kept])
    return replace(storage, parts=parts, size_bytes=max(part.end for part in parts), lifetime=lifetime)


def _joined(intervals: Sequence[tuple[int, int]], *, touching: bool = False) -> list[tuple[int, int]]:
    """Return the union of intervals, in ascending order; with `touching`, those that only touch are joined, too."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if found and (low < found[-1][1] or (touching and low == found[-1][1])):
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
