# SPDX-License-Identifier: Apache-2.0
"""Assigns storages to regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ferrule.memory.arena import Arena, Lap
from ferrule.memory.bound import fullest, lower_bound
from ferrule.memory.layout import RegionLayout
from ferrule.memory.placement import ArenaOverflowError
from ferrule.memory.region import Region
from ferrule.memory.search import Effort
from ferrule.memory.storage import Storage
from ferrule.memory.tied_arena import TiedArena

_MOST_CHOICES = 5_000
_MOST_COMPARISONS = 400_000
"""Limit on the pairs of storages in all tries, since each try may compare every pair."""
_MOST_MOVABLE = 200
"""Limit on the storages with a choice, for each of which one call is nested in another."""

Choice = dict[str, int]
"""By storage: the index of its region in the list of regions allowed for it."""
Rule = Callable[[Storage, int], tuple[int, int]]
_RULES: Sequence[Rule] = (
    lambda storage, excess: (1, -storage.size_bytes) if storage.size_bytes >= excess else (0, storage.size_bytes),
    lambda storage, _: (0, storage.size_bytes),
    lambda storage, _: (storage.lifetime.last - storage.lifetime.first, storage.size_bytes),
)
"""Of the storages that may leave a region with an excess of bytes, the one with the highest value leaves.

That is the smallest that helps, or the largest if none does; the largest; the one that lives longest.
"""


def assign(
    storages: Sequence[Storage], regions: Sequence[Region], laps: Mapping[tuple[str, str], Lap], effort: Effort
) -> list[RegionLayout]:
    """Return all regions laid out, each storage in the first of its allowed regions that can hold it.

    Several rules choose the storages that leave a full region, and the result that moves the fewest bytes wins. If
    every rule fails, choices are tried one by one, up to a limit.

    Raises:
        ArenaOverflowError: none of the choices tried fits.
    """
    assigner = _Assigner(storages=storages, regions=regions, laps=laps, effort=effort)
    found: list[tuple[int, Choice]] = []
    stuck: list[ArenaOverflowError] = []
    for rule in _RULES:
        try:
            choice = assigner.spill(rule)
        except ArenaOverflowError as overflow:
            stuck.append(overflow)
            continue
        cost = sum(storage.size_bytes * choice[storage.name] for storage in storages)
        found.append((cost, choice))
        if cost == 0:
            break
    if found:
        return assigner.results(min(found, key=lambda pair: pair[0])[1])
    enumerated = assigner.enumerate()
    if enumerated is None:
        raise min(stuck, key=lambda overflow: overflow.need - overflow.have)
    return assigner.results(enumerated)


@dataclass(slots=True, kw_only=True)
class _Assigner:
    storages: Sequence[Storage]
    regions: Sequence[Region]
    laps: Mapping[tuple[str, str], Lap]
    effort: Effort
    _tries: int = 0
    _known: dict[tuple[str, tuple[str, ...]], RegionLayout] = field(default_factory=dict)

    def results(self, choice: Mapping[str, int]) -> list[RegionLayout]:
        """Return every region laid out."""
        return [self._result(region, self._arena_of(region, choice)) for region in self.regions]

    def _arena_of(self, region: Region, choice: Mapping[str, int]) -> Arena:
        chosen = [
            storage
            for storage in self.storages
            if storage.name in choice and storage.regions[choice[storage.name]] == region.name
        ]
        kind = TiedArena if any(storage.parts for storage in chosen) else Arena
        return kind(chosen, alignment=region.alignment, overlaps=self.laps)

    def _result(self, region: Region, arena: Arena) -> RegionLayout:
        key = region.name, tuple(storage.name for storage in arena.storages)
        if key not in self._known:
            self._known[key] = RegionLayout(region, arena, self.effort)
        return self._known[key]

    def spill(self, rule: Rule) -> Choice:
        """Start with the preferred regions and move storages to their next regions until no region overflows.

        Raises:
            ArenaOverflowError: no storage can leave a full region.
        """
        choice = {storage.name: 0 for storage in self.storages}
        while full := next((found for region in self.regions if (found := self._overflow(region, choice))), None):
            crowd, overflow = full
            movable = [storage for storage in crowd if choice[storage.name] + 1 < len(storage.regions)]
            if not movable:
                raise overflow
            excess = overflow.need - overflow.have
            choice[max(movable, key=lambda storage: rule(storage, excess)).name] += 1
        return choice

    def _overflow(self, region: Region, choice: Choice) -> tuple[list[Storage], ArenaOverflowError] | None:
        """Return the conflicting storages of an overfull region, and the error for it; None if the region fits.

        These are the storages live at the fullest step if they alone exceed the region; otherwise they are all storages
        live at the same time as one that ends outside the region.
        """
        arena = self._arena_of(region, choice)
        need, full = fullest(arena)
        if need > region.size_bytes:
            return [arena.storages[number] for number in full], _error(region, arena, need, full)
        result = self._result(region, arena)
        if result.peak <= region.size_bytes:
            return None
        outside = [
            number
            for number, offset in enumerate(result.offsets)
            if offset + result.arena.sizes[number] > region.size_bytes
        ]
        crowd = sorted({other for number in outside for other in arena.beside(number)})
        return [arena.storages[number] for number in crowd], _error(region, arena, result.peak, crowd)

    def enumerate(self) -> Choice | None:
        """Try choices in order of preference, the largest storages first; return None if no choice tried fits."""
        choice = {storage.name: 0 for storage in self.storages if len(storage.regions) == 1}
        movable = [storage for storage in self.storages if storage.name not in choice]
        if not movable or len(movable) > _MOST_MOVABLE:
            return None
        self._tries = min(_MOST_CHOICES, _MOST_COMPARISONS // len(self.storages) ** 2)
        return self._extend(choice, sorted(movable, key=lambda storage: -storage.size_bytes))

    def _extend(self, choice: Choice, left: Sequence[Storage]) -> Choice | None:
        if not left:
            return dict(choice) if all(self._overflow(region, choice) is None for region in self.regions) else None
        storage = left[0]
        for index, name in enumerate(storage.regions):
            self._tries -= 1
            if self._tries < 0:
                return None
            choice[storage.name] = index
            region = next(region for region in self.regions if region.name == name)
            if lower_bound(self._arena_of(region, choice)) <= region.size_bytes:
                found = self._extend(choice, left[1:])
                if found is not None:
                    return found
            del choice[storage.name]
        return None


def _error(region: Region, arena: Arena, need: int, crowd: Sequence[int]) -> ArenaOverflowError:
    largest_first = sorted((arena.storages[number] for number in crowd), key=lambda storage: -storage.size_bytes)
    return ArenaOverflowError(
        need=need,
        have=region.size_bytes,
        region=region.name,
        worst=[f"{storage.name} ({storage.size_bytes} B)" for storage in largest_first],
    )
