# SPDX-License-Identifier: Apache-2.0
"""Where each tensor of a lowered graph lives: in the caller's buffers or in the arena, and which share storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.codegen.lowered import LoweredGraph
from ferrule.graph import Graph
from ferrule.memory import (
    Alias,
    AliasKind,
    BufferKind,
    Lifetime,
    Overlap,
    Plan,
    Region,
    Request,
    lifetimes,
    plan,
    scratch_name,
)

ARENA_ALIGNMENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlan:
    """The arena's plan, and the views that hold."""

    plan: Plan
    views: Mapping[str, str]
    """By the name of a layer's output: the input whose storage it shares; the layer then does nothing."""
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]

    def offset(self, buffer: str) -> int:
        """Return the offset of a tensor, or of a layer's scratch by `scratch_name`, in bytes."""
        return self.plan.placements[buffer].offset


def plan_storage(lowered: LoweredGraph, regions: Sequence[Region]) -> StoragePlan:
    """Lay out the arena for tensors and scratch together.

    Raises:
        ArenaOverflowError: they do not fit.
    """
    graph = lowered.graph
    order = [item.layer.name for item in lowered.layers]
    lives = {**lifetimes(graph, order), **_constant_outputs(graph, len(order))}
    names = tuple(region.name for region in regions)
    requests = [
        Request(
            name=name,
            size_bytes=graph.info(name).size_bytes,
            lifetime=life,
            regions=names,
            alignment=ARENA_ALIGNMENT,
        )
        for name, life in lives.items()
    ]
    requests += _scratch_requests(lowered, lives, names)
    views = _views(lowered)
    aliases = tuple(Alias(output=output, input=input_, kind=AliasKind.VIEW) for output, input_ in views.items())
    overlaps: list[Overlap] = [overlap for item in lowered.layers for overlap in item.op.overlaps]
    return StoragePlan(
        plan=plan(requests, regions, aliases=aliases, overlaps=overlaps),
        views=views,
        requests=tuple(requests),
        aliases=aliases,
    )


def _constant_outputs(graph: Graph, steps: int) -> dict[str, Lifetime]:
    """Return when outputs that are constants need their room: they are copied there at the end."""
    last = Lifetime(first=max(steps - 1, 0), last=max(steps - 1, 0))
    return {info.name: last for info in graph.outputs if graph.tensor(info.name).is_constant}


def _scratch_requests(lowered: LoweredGraph, lives: Mapping[str, Lifetime], names: tuple[str, ...]) -> list[Request]:
    requests = []
    for item in lowered.layers:
        if item.op.scratch_bytes:
            step = lives[item.layer.outputs[0]].first
            requests.append(
                Request(
                    name=scratch_name(item.layer.name),
                    size_bytes=item.op.scratch_bytes,
                    lifetime=Lifetime(first=step, last=step),
                    regions=names,
                    alignment=item.op.scratch_alignment,
                    kind=BufferKind.SCRATCH,
                )
            )
    return requests


def _views(lowered: LoweredGraph) -> dict[str, str]:
    """Return the views that hold.

    The caller chooses where inputs and outputs are, so a storage holds at most one of them; a view that would
    bring two together becomes a copy.
    """
    graph = lowered.graph
    given = {info.name for info in (*graph.inputs, *graph.outputs)}
    holder: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    views: dict[str, str] = {}
    for item in lowered.layers:
        if item.op.view_of is None:
            continue
        output = item.layer.outputs[0]
        root = holder.setdefault(item.op.view_of, item.op.view_of)
        mine = owners.setdefault(root, {root} & given)
        joined = mine | ({output} & given)
        if len(joined) <= 1:
            holder[output] = root
            owners[root] = joined
            views[output] = item.op.view_of
    return views
