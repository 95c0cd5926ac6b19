# SPDX-License-Identifier: Apache-2.0
"""Plans the storage of each tensor of a lowered graph: with the caller, in the arena or in a device; and the views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.lowered import LoweredGraph
from ferrule.memory import Alias, AliasKind, Overlap, Plan, Region, Request, plan_graph, scratch_name

ARENA_ALIGNMENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlan:
    """The plan of the arena and of the devices' own memories, with the views in use."""

    plan: Plan
    views: Mapping[str, str]
    """By name of a layer's output: the input whose storage it shares; such a layer does nothing."""
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]
    overlaps: tuple[Overlap, ...] = ()

    def offset(self, buffer: str) -> int:
        """Return the offset in bytes of a tensor, or of a layer's scratch, which is named by `scratch_name`."""
        return self.plan.placements[buffer].offset


def plan_storage(lowered: LoweredGraph, core: Region) -> StoragePlan:
    """Lay out tensors and scratch in the core's region and in the memories of the devices that have their own.

    Raises:
        ArenaOverflowError: the buffers do not fit.
    """
    devices = {use.name: _region(use) for use in lowered.devices if use.has_memory}
    views = _views(lowered)
    scratch = {item.layer.name: item.op for item in lowered.layers if item.op.scratch_bytes}
    planned = plan_graph(
        lowered.graph,
        [core, *devices.values()],
        alignment=ARENA_ALIGNMENT,
        scratch_bytes={layer: op.scratch_bytes for layer, op in scratch.items()},
        scratch_alignment={layer: op.scratch_alignment for layer, op in scratch.items()},
        allowed=_homes(lowered, core, devices),
        shared=[Alias(output=output, input=source, kind=AliasKind.VIEW) for output, source in views.items()],
        overlaps=[overlap for item in lowered.layers for overlap in item.op.overlaps],
        order=[item.layer.name for item in lowered.layers],
        constant_outputs=True,
    )
    return StoragePlan(
        plan=planned.plan, views=views, requests=planned.requests, aliases=planned.aliases, overlaps=planned.overlaps
    )


def _region(use: DeviceUse) -> Region:
    """Return the region of a device's memory; its name cannot collide with a region of the core."""
    return Region(
        name=f"device {use.device.name}",
        size_bytes=use.driver.memory_bytes,
        alignment=use.driver.alignment,
        reachable_by=frozenset({use.device.name}),
    )


def _homes(lowered: LoweredGraph, core: Region, devices: Mapping[str, Region]) -> dict[str, tuple[str, ...]]:
    """Return the only region allowed for each buffer."""
    homes: dict[str, tuple[str, ...]] = {}
    for tensor in lowered.graph.tensors:
        use = lowered.memories.get(tensor.info.name)
        homes[tensor.info.name] = ((core if use is None else devices[use.name]).name,)
    for item in lowered.layers:
        region = devices.get(item.use.name, core) if item.use is not None else core
        homes[scratch_name(item.layer.name)] = (region.name,)
    return homes


def _views(lowered: LoweredGraph) -> dict[str, str]:
    """Return the views that can share storage, from output to input.

    The caller chooses the places of inputs and outputs, so a storage can contain at most one of them. A view that would
    put two of them into one storage becomes a copy.
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
