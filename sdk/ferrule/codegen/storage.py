# SPDX-License-Identifier: Apache-2.0
"""Plans the storage of each tensor of a lowered graph: with the caller, in the arena or in a device; and the views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.lowered import LoweredGraph
from ferrule.memory import Access, Alias, AliasKind, Overlap, Plan, Region, Request, plan_graph, scratch_name

ARENA_ALIGNMENT = 16
CORE = "cpu"
"""The core among the bus masters, as in board.toml."""


@dataclass(frozen=True, kw_only=True)
class StoragePlan:
    """The plan of the arena and of the devices' own memories, with the views in use."""

    plan: Plan
    views: Mapping[str, str]
    """By name of a layer's output: the input whose storage it shares; such a layer does nothing."""
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]
    overlaps: tuple[Overlap, ...] = ()
    regions: tuple[Region, ...]
    """The core's memory, and the devices' own memories."""

    @property
    def core(self) -> Region:
        """The region of the core's memory."""
        return self.regions[0]

    @property
    def alignment(self) -> int:
        """Alignment of the workspace in the core's memory, in bytes."""
        return math.lcm(ARENA_ALIGNMENT, self.plan.region(self.core.name).alignment)

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """By output of a view: the tensor at the root of its chain of views, whose storage it shares."""
        return _roots(self.views)

    def root(self, tensor: str) -> str:
        """Return the tensor whose storage a tensor shares: itself unless it is a view."""
        return self.roots.get(tensor, tensor)

    @cached_property
    def _alignments(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for request in self.requests:
            if request.access is not None:
                root = self.root(request.name)
                found[root] = math.lcm(found.get(root, 1), request.access.alignment)
        return found

    def device_alignment(self, tensor: str) -> int:
        """Return the alignment, in bytes, that the devices need of a tensor's storage; 1 if none has a rule."""
        return self._alignments.get(self.root(tensor), 1)

    def offset(self, buffer: str) -> int:
        """Return the offset in bytes of a tensor, or of a layer's scratch, which is named by `scratch_name`."""
        return self.plan.placements[buffer].offset


def plan_storage(lowered: LoweredGraph, core: Region) -> StoragePlan:
    """Lay out tensors and scratch in the core's region and in the memories of the devices that have their own.

    Raises:
        ArenaOverflowError: the buffers do not fit.
    """
    devices = {use.name: _region(use) for use in lowered.devices if use.has_memory}
    regions = (core, *devices.values())
    views = _views(lowered)
    scratch = {item.layer.name: item.op for item in lowered.layers if item.op.scratch_bytes}
    planned = plan_graph(
        lowered.graph,
        regions,
        alignment=ARENA_ALIGNMENT,
        scratch_bytes={layer: op.scratch_bytes for layer, op in scratch.items()},
        scratch_alignment={layer: op.scratch_alignment for layer, op in scratch.items()},
        allowed=_homes(lowered, core, devices),
        accesses=_accesses(lowered, core, _roots(views)),
        shared=[Alias(output=output, input=source, kind=AliasKind.VIEW) for output, source in views.items()],
        overlaps=[overlap for item in lowered.layers for overlap in item.op.overlaps],
        order=[item.layer.name for item in lowered.layers],
        constant_outputs=True,
    )
    return StoragePlan(
        plan=planned.plan,
        views=views,
        requests=planned.requests,
        aliases=planned.aliases,
        overlaps=planned.overlaps,
        regions=regions,
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


def _roots(views: Mapping[str, str]) -> dict[str, str]:
    roots: dict[str, str] = {}
    for output, source in views.items():  # in order of execution: sources come first
        roots[output] = roots.get(source, source)
    return roots


def _accesses(lowered: LoweredGraph, core: Region, roots: Mapping[str, str]) -> dict[str, Access]:
    """Return, by buffer, the masters that use its storage, with all views of it, and their needs.

    A device without memory of its own uses its tensors and its scratch in the core's memory, where the core's data
    cache may hold lines of them. A copy between memories is the work of the core.
    """
    users: dict[str, dict[str, DeviceUse]] = {}
    scratch: dict[str, Access] = {}
    for item in lowered.layers:
        if item.use is None:
            continue
        shared = item.use.is_master
        if shared:
            for name in (*item.layer.present_inputs, *item.layer.outputs):
                users.setdefault(roots.get(name, name), {})[item.use.device.name] = item.use
        scratch[scratch_name(item.layer.name)] = Access(
            masters=frozenset({item.use.device.name, *((CORE,) if shared else ())}),
            line_bytes=max(core.line_bytes, 1) if shared else 1,
        )
    found = {}
    for tensor in lowered.graph.tensors:
        name = tensor.info.name
        home, mine = lowered.memories.get(name), users.get(roots.get(name, name), {})
        found[name] = Access(
            masters=frozenset({home.device.name} if home is not None else {CORE, *mine}),
            alignment=math.lcm(*(use.driver.tensor_alignment for use in mine.values())),
            line_bytes=max(core.line_bytes, 1) if mine else 1,
        )
    return found | scratch


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
