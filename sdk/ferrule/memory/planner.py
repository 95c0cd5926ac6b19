# SPDX-License-Identifier: Apache-2.0
"""The planner: turns requests and regions into offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.errors import unknown_name
from ferrule.memory.arena import Lap
from ferrule.memory.assignment import assign
from ferrule.memory.layout import RegionLayout
from ferrule.memory.lifetimes import Lifetime
from ferrule.memory.placement import MemoryPlan, Placement
from ferrule.memory.region import Region
from ferrule.memory.request import Alias, Overlap, Request, Tie
from ferrule.memory.search import Effort
from ferrule.memory.storage import group_names, merge, pieces
from ferrule.memory.ties import aligned_to_regions, tied


def plan(
    requests: Sequence[Request],
    regions: Sequence[Region],
    *,
    aliases: Sequence[Alias] = (),
    overlaps: Sequence[Overlap] = (),
    ties: Sequence[Tie] = (),
    effort: Effort | None = None,
) -> MemoryPlan:
    """Lay out all buffers; the same arguments always produce the same plan.

    Each storage goes to the first of its allowed regions, or to a later one if a region overflows. In each region the
    activations are laid out first, on their own, and scratch is placed around them. If the result exceeds the proved
    bound, both are also laid out together, and the smaller total wins. Scratch with tied buffers counts as one of the
    activations there.

    Raises:
        ArenaOverflowError: no choice of regions was found that holds all buffers.
        FerruleError: a request names a region that is not given, or aliases have no region in common.
        ValueError: the requests contradict each other; see `ferrule.memory.storage.merge`. A TieError if ties do.
    """
    _check_regions(requests, regions)
    groups = group_names((request.name for request in requests), aliases)
    storages = tied(merge(aligned_to_regions(requests, regions, ties), aliases), groups, ties)
    laps = _laps(overlaps, groups, {request.name: request.lifetime for request in requests})

    layouts = assign(storages, regions, laps, effort or Effort())
    return MemoryPlan(
        placements=_placements(requests, layouts),
        regions=tuple(layout.summary() for layout in layouts),
    )


def _check_regions(requests: Sequence[Request], regions: Sequence[Region]) -> None:
    names = [region.name for region in regions]
    if len(set(names)) != len(names):
        raise ValueError("two regions of a plan have the same name")
    for request in requests:
        for name in request.regions:
            if name not in names:
                raise unknown_name("memory region", name, names)


def _laps(
    overlaps: Sequence[Overlap], groups: Mapping[str, str], lifetimes: Mapping[str, Lifetime]
) -> dict[tuple[str, str], Lap]:
    """Return how storages may overlap, for the overlaps whose input is last live at the output's first step.

    The layer uses all buffers that are last live at its step, so an overlap must be stated for each one that has the
    input's bytes: a layer may read a tensor and also a view of it.
    """
    ending: dict[tuple[str, int], list[str]] = {}
    """By group and step: the buffers that are last live there."""
    for name, group in groups.items():
        ending.setdefault((group, lifetimes[name].last), []).append(name)
    stated = {(overlap.output, overlap.input) for overlap in overlaps}
    found: dict[tuple[str, str], Lap] = {}
    for overlap in overlaps:
        output, source = overlap.output, overlap.input
        if output not in groups or source not in groups:
            raise ValueError(f"overlap of '{output}' and '{source}' names a buffer that is not requested")
        step = lifetimes[output].first
        used = ending.get((groups[source], step), ())
        if source in used and all((output, name) in stated for name in used):
            pair = groups[output], groups[source]
            found[pair] = found[pair].joined(_lap(overlap)) if pair in found else _lap(overlap)
    return found


def _lap(overlap: Overlap) -> Lap:
    """Return an overlap as a rule for places; a kernel that can run backward does so if its output lies above."""
    forward, backward = overlap.distance_bytes, overlap.backward_bytes
    if backward is not None:
        forward = None if forward is None else max(forward, 0)
        backward = max(backward, 1)
    return Lap(forward=forward, backward=backward, step=overlap.step_bytes)


def _placements(requests: Sequence[Request], layouts: Sequence[RegionLayout]) -> dict[str, Placement]:
    found = {}
    for layout in layouts:
        for storage, offset in zip(layout.arena.storages, layout.offsets, strict=True):
            for part in pieces(storage):
                place = Placement(region=layout.region.name, offset=offset + part.offset)
                found.update(dict.fromkeys(part.storage.members, place))
    return {request.name: found[request.name] for request in requests}
