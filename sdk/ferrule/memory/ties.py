# SPDX-License-Identifier: Apache-2.0
"""Joins storages that ties hold at fixed distances, and finds the ties that a plan can keep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.graph import Graph, Layer
from ferrule.memory.lifetimes import Lifetime
from ferrule.memory.region import Region
from ferrule.memory.request import Alias, Request, Tie, Untied
from ferrule.memory.storage import Part, Storage, group_names, merge, shared

_MOST_COMBINED = 4
"""With up to so many ties of a layer, all combinations are tried."""


class TieError(ValueError):
    """A tie contradicts the needs of the buffers or other ties; the message is the reason in a few words."""


@frozen
class _Body:
    """Storages at fixed distances from one another."""

    storages: Mapping[str, Storage]
    """By name, in the order of the storages."""
    offsets: Mapping[str, int]
    """By name; only their differences count."""

    def joined(self, other: _Body, distance: int) -> _Body:
        """Return both, with the offsets of the other one moved up by a distance."""
        moved = {name: offset + distance for name, offset in other.offsets.items()}
        return _Body(storages={**self.storages, **other.storages}, offsets={**self.offsets, **moved})

    def storage(self, ranks: Mapping[str, int]) -> Storage:
        """Return the body as one storage; TieError if no place suits all of its parts."""
        names = sorted(self.storages, key=ranks.__getitem__)
        chosen = [self.storages[name] for name in names]
        if len(chosen) == 1:
            return chosen[0]
        lowest = min(self.offsets.values())
        start = self._start(lowest)
        parts = tuple(Part(storage=self.storages[name], offset=self.offsets[name] - lowest + start) for name in names)
        lifetime, regions = shared(chosen)
        if not regions:
            raise TieError(f"no memory is allowed for all of {', '.join(names)}")
        return Storage(
            members=tuple(member for storage in chosen for member in storage.members),
            size_bytes=max(part.end for part in parts),
            alignment=math.lcm(*(storage.alignment for storage in chosen)),
            lifetime=lifetime,
            regions=regions,
            is_scratch=False,
            parts=parts,
        )

    def _start(self, lowest: int) -> int:
        """Return the least offset of the lowest part at which every part is aligned."""
        strictest = max(self.storages, key=lambda name: self.storages[name].alignment)
        grain = self.storages[strictest].alignment
        whole = math.lcm(*(storage.alignment for storage in self.storages.values()))
        for start in range((lowest - self.offsets[strictest]) % grain, whole, grain):
            if all(
                (self.offsets[name] - lowest + start) % storage.alignment == 0
                for name, storage in self.storages.items()
            ):
                return start
        raise TieError("the alignment of the tensor does not allow that place")


def tied(storages: Sequence[Storage], groups: Mapping[str, str], ties: Iterable[Tie]) -> list[Storage]:
    """Return the storages with those joined that ties hold together; `groups` maps each buffer to its storage's name.

    Raises:
        TieError: the ties contradict each other, or the alignments, or the allowed regions.
    """
    bodies = _Bodies(storages, groups)
    for tie in ties:
        bodies.join(tie)
    return bodies.joined()


class _Bodies:
    """Storages, of which more and more are tied."""

    def __init__(self, storages: Sequence[Storage], groups: Mapping[str, str]) -> None:
        self._ranks = {storage.name: rank for rank, storage in enumerate(storages)}
        self._groups = groups
        self._bodies = {
            storage.name: _Body(storages={storage.name: storage}, offsets={storage.name: 0}) for storage in storages
        }
        """By storage; those of one body have the same entry."""

    def joined(self) -> list[Storage]:
        """Return each body as a storage, in the order of their first parts."""
        found = {id(body): body for body in self._bodies.values()}
        return [body.storage(self._ranks) for body in found.values()]

    def join(self, tie: Tie) -> _Body:
        """Tie two buffers, and return the body that contains them; TieError if that is impossible."""
        buffer, scratch = self._groups[tie.buffer], self._groups[tie.scratch]
        inner, outer = self._bodies[buffer], self._bodies[scratch]
        if inner is outer:
            found = inner.offsets[buffer] - inner.offsets[scratch]
            if found != tie.offset:
                raise TieError(f"another layer needs it elsewhere, at byte {found} of this scratch")
            return inner
        body = outer.joined(inner, outer.offsets[scratch] + tie.offset - inner.offsets[buffer])
        body.storage(self._ranks)
        self._bodies.update(dict.fromkeys(body.storages, body))
        return body

    def try_all(self, ties: Sequence[Tie], may_share: Collection[frozenset[str]]) -> None:
        """Tie some buffers to one scratch; TieError, and no change, if parts would lose each other's bytes.

        `may_share` are the pairs of storages that may have bytes in common while both are live.
        """
        before = dict(self._bodies)
        try:
            for tie in ties:
                _check_apart(self.join(tie), may_share)
        except TieError:
            self._bodies = before
            raise


def _check_apart(body: _Body, may_share: Collection[frozenset[str]]) -> None:
    for one, two in itertools.combinations(body.storages, 2):
        first, second = body.storages[one], body.storages[two]
        apart = (
            body.offsets[one] + first.size_bytes <= body.offsets[two]
            or body.offsets[two] + second.size_bytes <= body.offsets[one]
        )
        if not apart and first.lifetime.meets(second.lifetime) and frozenset({one, two}) not in may_share:
            raise TieError(f"'{one}' and '{two}' would then share bytes while both are in use")


def aligned_to_regions(requests: Sequence[Request], regions: Sequence[Region], ties: Sequence[Tie]) -> list[Request]:
    """Return the requests, those of tied buffers with the alignment of every region that they may lie in."""
    alignments = {region.name: region.alignment for region in regions}
    names = {name for tie in ties for name in (tie.buffer, tie.scratch)}
    return [
        replace(each, alignment=math.lcm(each.alignment, *(alignments.get(name, 1) for name in each.regions)))
        if each.name in names
        else each
        for each in requests
    ]


def kept_ties(
    ties: Sequence[Tie],
    requests: Sequence[Request],
    regions: Sequence[Region],
    aliases: Sequence[Alias],
    refused: Mapping[Tie, str],
    first: Collection[str] = (),
) -> tuple[tuple[Tie, ...], tuple[Untied, ...]]:
    """Return the ties that a plan can keep, and the others with the reasons, both in the order given.

    `refused` are ties that the run does not allow, with the reasons. Ties with the scratch named in `first` are
    preferred, and then those of larger buffers.
    """
    if not ties:
        return (), ()
    aligned = aligned_to_regions(requests, regions, ties)
    groups = group_names((request.name for request in requests), aliases)
    bodies = _Bodies(merge(aligned, aliases), groups)
    sizes = {request.name: request.size_bytes for request in requests}
    reasons = dict(refused)
    may_share: set[frozenset[str]] = set()
    allowed: dict[str, list[Tie]] = {}
    """By scratch."""
    for tie in ties:
        if tie not in reasons:
            allowed.setdefault(tie.scratch, []).append(tie)
    totals = {scratch: sum(sizes[tie.buffer] for tie in mine) for scratch, mine in allowed.items()}
    for scratch in sorted(allowed, key=lambda each: (each not in first, -totals[each])):
        mine = allowed[scratch]
        chosen: tuple[Tie, ...] = ()
        for candidate in sorted(_subsets(mine), key=lambda each: -sum(sizes[tie.buffer] for tie in each)):
            with suppress(TieError):
                bodies.try_all(candidate, may_share | _sharing(candidate, groups))
                chosen = candidate
                break
        for tie in (tie for tie in mine if tie not in chosen):
            try:
                bodies.try_all((tie,), may_share | _sharing((*chosen, tie), groups))
                chosen = (*chosen, tie)
            except TieError as error:
                reasons[tie] = str(error)
        may_share |= _sharing(chosen, groups)
    return (
        tuple(tie for tie in ties if tie not in reasons),
        tuple(Untied(tie=tie, reason=reasons[tie]) for tie in ties if tie in reasons),
    )


def _subsets(ties: Sequence[Tie]) -> Iterator[tuple[Tie, ...]]:
    """Yield the sets of ties of one layer that are tried before single ones."""
    for count in range(len(ties), 0, -1) if len(ties) <= _MOST_COMBINED else (len(ties),):
        yield from itertools.combinations(ties, count)


def _sharing(ties: Sequence[Tie], groups: Mapping[str, str]) -> set[frozenset[str]]:
    """Return the pairs that may have bytes in common: scratch with its buffers, and buffers that are not preserved."""
    lost = [groups[tie.buffer] for tie in ties if not tie.preserved]
    found = {frozenset(pair) for pair in itertools.combinations(lost, 2)}
    return found | {frozenset({groups[tie.buffer], groups[tie.scratch]}) for tie in ties}


def forbidden_ties(
    graph: Graph,
    order: Sequence[str],
    aliases: Sequence[Alias],
    ties: Mapping[str, Sequence[Tie]],
    lives: Mapping[str, Lifetime],
    ends: Mapping[str, int],
) -> dict[Tie, str]:
    """Return the ties that would lose bytes in a run, with the reasons; `ties` is by layer.

    A layer may overwrite an input that is not preserved. So nothing else may need it then, or later.
    """
    group = group_names(lives, aliases)
    members: dict[str, list[str]] = {}
    for name, root in group.items():
        members.setdefault(root, []).append(name)
    steps = {layer: step for step, layer in enumerate(order)}
    results = {info.name for info in graph.results}
    found: dict[Tie, str] = {}

    def at_work(layers: Iterable[Layer | None], step: int) -> str:
        """Return the first of some layers that is at work at a step or after it; "" if none is."""
        names = (each.name for each in layers if each is not None)
        return next((each for each in names if ends.get(each, steps[each]) >= step), "")

    for name, mine in ties.items():
        layer, step = graph.layer(name), steps[name]
        for tie in mine:
            others = members[group[tie.buffer]]
            first, last = min(lives[each].first for each in others), max(lives[each].last for each in others)
            if tie.buffer in layer.outputs:
                if first < step:
                    found[tie] = "it shares its bytes with a tensor that is in use before"
                continue
            apart = {each.buffer for each in mine if each.offset == tie.offset and each.scratch == tie.scratch}
            twice = next((each for each in layer.present_inputs if each in others and each not in apart), None)
            if twice is not None:
                found[tie] = f"the layer also reads its bytes as '{twice}'"
            elif not tie.preserved:
                readers = (each for tensor in others for each in graph.consumers(tensor) if each.name != name)
                late, writer = at_work(readers, step), at_work(map(graph.producer, others), step)
                if writer:
                    found[tie] = f"layer '{writer}' may still be at work on it, and this layer may overwrite it"
                elif late or results.intersection(others) or last > ends.get(name, step):
                    reader = f"layer '{late}' reads it later" if late else "it is needed after the run"
                    found[tie] = f"{reader}, and this layer may overwrite it"
    return found
