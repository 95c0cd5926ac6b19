# SPDX-License-Identifier: Apache-2.0
"""Storages: groups of buffers that alias each other and are placed as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.memory.lifetimes import Lifetime
from ferrule.memory.request import Alias, AliasKind, BufferKind, Request


@frozen
class Storage:
    """The bytes of one buffer, or of several that alias each other."""

    members: tuple[str, ...]
    """Names of the buffers, in the order of the requests."""
    size_bytes: int
    alignment: int
    lifetime: Lifetime
    """From the earliest first step to the latest last step of any member."""
    regions: tuple[str, ...]
    is_scratch: bool
    parts: tuple[Part, ...] = ()
    """The storages that ties hold together, each with its own lifetime; empty for a storage without ties."""

    @property
    def name(self) -> str:
        """The first member's name."""
        return self.members[0]


@frozen
class Part:
    """A storage at a fixed place inside a larger one."""

    storage: Storage
    offset: int
    """Bytes from the start of the larger one."""

    @property
    def end(self) -> int:
        """Bytes from the start of the larger one to the end of the part."""
        return self.offset + self.storage.size_bytes


def pieces(storage: Storage) -> tuple[Part, ...]:
    """Return the parts of a storage, which is its only one if no tie holds it."""
    return storage.parts or (Part(storage=storage, offset=0),)


def group_names(names: Iterable[str], aliases: Iterable[Alias]) -> dict[str, str]:
    """Return the group of each name; a group has the name of its first member in the order of `names`.

    Raises:
        ValueError: an alias names an unknown buffer.
    """
    rank = {name: index for index, name in enumerate(names)}
    parent = {name: name for name in rank}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for alias in aliases:
        if alias.output not in parent or alias.input not in parent:
            raise ValueError(f"alias of '{alias.output}' and '{alias.input}' names a buffer that is not requested")
        low, high = sorted((root(alias.output), root(alias.input)), key=rank.__getitem__)
        parent[high] = low
    return {name: root(name) for name in rank}


def shared(members: Sequence[Request | Storage]) -> tuple[Lifetime, tuple[str, ...]]:
    """Return the shortest lifetime that contains those of all members, and the regions allowed for each of them."""
    lifetime = reduce(Lifetime.hull, (each.lifetime for each in members))
    regions = (name for name in members[0].regions if all(name in each.regions for each in members))
    return lifetime, tuple(regions)


def merge(requests: Sequence[Request], aliases: Sequence[Alias]) -> list[Storage]:
    """Return the storages, in the order of their first members.

    Raises:
        ValueError: two requests have the same name, an alias names an unknown buffer or joins buffers of different
            kinds, or a buffer is still live after another one has replaced it in place.
        FerruleError: no region is allowed for all members of a group.
    """
    by_name = {request.name: request for request in requests}
    if len(by_name) != len(requests):
        raise ValueError("two buffers of a plan have the same name")
    groups: dict[str, list[Request]] = {}
    for name, group in group_names(by_name, aliases).items():
        groups.setdefault(group, []).append(by_name[name])
    replacing = {alias.output: alias for alias in aliases if alias.kind is not AliasKind.VIEW}
    for members in groups.values():
        _check_in_place(members, replacing)
    return [_merged(members) for members in groups.values()]


def _check_in_place(members: Sequence[Request], replacing: Mapping[str, Alias]) -> None:
    """Check that no buffer of a group is live after its replacement; `replacing` maps outputs to aliases."""
    by_name = {member.name: member for member in members}
    for alias in (replacing[name] for name in by_name if name in replacing):
        step = by_name[alias.output].lifetime.first
        for member in members:
            if member.name != alias.output and member.lifetime.first <= step < member.lifetime.last:
                raise ValueError(
                    f"'{alias.output}' replaces '{alias.input}' in place at step {step}, but '{member.name}', "
                    f"which has the same bytes, lives to step {member.lifetime.last}"
                )


def _merged(members: Sequence[Request]) -> Storage:
    if len({member.kind for member in members}) > 1:
        raise ValueError(f"scratch and an activation alias each other: {[member.name for member in members]}")
    lifetime, regions = shared(members)
    if not regions:
        names = ", ".join(f"'{member.name}'" for member in members)
        raise FerruleError(
            f"buffers {names} share storage, but there is no region that all of them may live in",
            hint="allow them a common region, or do not alias them",
        )
    return Storage(
        members=tuple(member.name for member in members),
        size_bytes=max(member.size_bytes for member in members),
        alignment=math.lcm(*(member.alignment for member in members)),
        lifetime=lifetime,
        regions=regions,
        is_scratch=members[0].kind is BufferKind.SCRATCH,
    )
