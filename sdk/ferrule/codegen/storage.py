# SPDX-License-Identifier: Apache-2.0
"""Plans the storage of each tensor of a lowered graph: with the caller, in the arena or in a device; and the views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ferrule.codegen.device_use import DeviceUse
from ferrule.codegen.lowered import LoweredGraph, LoweredLayer, scratches
from ferrule.codegen.plan import CORE, STATE
from ferrule.errors import FerruleError
from ferrule.memory import (
    Access,
    Alias,
    AliasKind,
    ArenaOverflowError,
    GraphPlan,
    MemoryPlan,
    Region,
    Requirements,
    ScratchNeed,
    Tie,
    Untied,
    home,
    plan_graph,
    scratch_name,
)

ARENA_ALIGNMENT = 16
_CALLER = "caller"
"""The region of an input that is given row by row: memory of the caller's own, which no plan counts."""


@dataclass(frozen=True, kw_only=True)
class StoragePlan(GraphPlan):
    """The plan of the arena and of the devices' own memories, with the views in use.

    Its `ties` are the tensors that lie inside the scratch of a layer that expects them there, and the core copies those
    of `untied` before or after the layer.
    """

    lowered: LoweredGraph = field(compare=False, repr=False)
    """The graph, in the order in which its layers run."""
    views: Mapping[str, str]
    """By name of a layer's output: the input whose storage it shares; such a layer does nothing."""
    regions: tuple[Region, ...]
    """The memory of the core's workspace, others that it shares with devices, and the devices' own memories."""
    others: tuple[Region, ...] = ()
    """The memories besides that of the workspace in which the plan puts tensors that the core shares with devices."""
    state: Region | None = None
    """The region of the states, in the memory of the workspace; None for a model without state."""

    @property
    def blocks(self) -> tuple[Region, ...]:
        """The regions for which a caller gives the executor memory: the arenas, and the states'."""
        return self.arenas if self.state is None else (*self.arenas, self.state)

    @property
    def state_bytes(self) -> int:
        """Bytes that live from run to run; 0 for a model without state."""
        return 0 if self.state is None else self.plan.region(self.state.name).peak_bytes

    @property
    def arenas(self) -> tuple[Region, ...]:
        """The memories in which the executor needs arenas: that of the workspace, and the others."""
        return (self.regions[0], *self.others)

    def is_state(self, tensor: str) -> bool:
        """Whether the bytes of a tensor are those of a state, as its old value or as its new one in the same place."""
        return self.state is not None and self.region(tensor) is self.state

    def region(self, buffer: str) -> Region:
        """Return the region that holds a tensor, or a layer's scratch."""
        return self._regions[self.plan.placements[buffer].region]

    @cached_property
    def _regions(self) -> Mapping[str, Region]:
        return {region.name: region for region in self.regions}

    def alignment(self, arena: Region) -> int:
        """Alignment of an arena, in bytes."""
        return math.lcm(ARENA_ALIGNMENT, self.plan.region(arena.name).alignment)

    @cached_property
    def tied(self) -> frozenset[str]:
        """The roots of the tensors inside scratch; those of the caller are copied to or from the workspace."""
        return frozenset(self.root(tie.buffer) for tie in self.ties)

    def is_tied(self, tensor: str) -> bool:
        """Whether a tensor's storage lies inside scratch while some layer runs."""
        return self.root(tensor) in self.tied

    def scratches(self, layer: str) -> tuple[str, ...]:
        """Return the names of a layer's scratch in the plan."""
        return self._scratches[layer]

    @cached_property
    def _scratches(self) -> Mapping[str, tuple[str, ...]]:
        return {item.layer.name: tuple(scratches(item)) for item in self.lowered.layers}

    def untied_of(self, layer: str) -> tuple[Untied, ...]:
        """Return the tensors that the core copies to or from the scratch of a layer, with the reasons."""
        return tuple(each for each in self.untied if each.tie.scratch == scratch_name(layer))

    def copies(self, layer: str) -> tuple[Tie, ...]:
        """Return the tensors that the core copies to or from the scratch of a layer."""
        return tuple(each.tie for each in self.untied_of(layer))

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

    def is_view(self, item: LoweredLayer) -> bool:
        """Whether a layer does nothing, since its output shares the storage of its input."""
        return item.layer.outputs[0] in self.views

    def offset(self, buffer: str) -> int:
        """Return the offset in bytes of a tensor, or of a layer's scratch, which is named by `scratch_name`."""
        return self.plan.placements[buffer].offset


def plan_storage(lowered: LoweredGraph, views: Mapping[str, str] | None = None) -> StoragePlan:
    """Lay out tensors and scratch in the core's region and in the memories of the devices that have their own.

    `views` are those that an earlier plan has used, by default as many as possible.

    Raises:
        ArenaOverflowError: the buffers do not fit.
    """
    core, fed = lowered.plan.core, lowered.fed
    devices = {use.name: _region(use) for use in lowered.devices if use.has_memory}
    own = (Region(name=_CALLER, size_bytes=lowered.graph.info(fed).size_bytes),) if fed else ()
    regions = (core, *lowered.others, *devices.values(), *own)
    state = replace(core, name=STATE) if lowered.graph.states else None
    views = _views(lowered) if views is None else views
    allowed, accesses = _placed(lowered, devices, _roots(views))
    if fed:
        allowed[fed] = (_CALLER,)
        accesses.pop(fed)
    needs = Requirements(
        alignment=ARENA_ALIGNMENT,
        scratch={
            item.layer.name: [
                ScratchNeed(part=each.name, size_bytes=each.size_bytes, alignment=each.alignment) for each in found
            ]
            for item in lowered.layers
            if (found := scratches(item).values())
        },
        allowed=allowed,
        accesses=accesses,
        shared=[Alias(output=output, input=source, kind=AliasKind.VIEW) for output, source in views.items()],
        overlaps=[overlap for item in lowered.layers for overlap in item.op.overlaps],
        ties={item.layer.name: _ties(item) for item in lowered.layers if item.op.placed},
        order=[item.layer.name for item in lowered.layers],
        ends=lowered.ends,
        queues={
            item.layer.name: item.use.name
            for item in lowered.layers
            if item.use is not None and item.layer.name in lowered.ends
        },
        constant_outputs=True,
        state=state,
    )
    planned = plan_graph(lowered.graph, regions, needs)
    if state is not None:
        _check_together(planned.plan, core, state)
    return StoragePlan(
        lowered=lowered,
        ordering=planned.ordering,
        plan=planned.plan,
        views=views,
        requests=planned.requests,
        aliases=planned.aliases,
        overlaps=planned.overlaps,
        regions=regions if state is None else (*regions, state),
        state=state,
        others=tuple(each for each in lowered.others if planned.plan.region(each.name).peak_bytes),
        ties=planned.ties,
        untied=planned.untied,
    )


def _ties(item: LoweredLayer) -> list[Tie]:
    scratch = scratch_name(item.layer.name)
    return [
        Tie(buffer=each.tensor, scratch=scratch, offset=each.offset, preserved=each.preserved)
        for each in item.op.placed
    ]


def _check_together(plan: MemoryPlan, core: Region, state: Region) -> None:
    """Raise ArenaOverflowError if the memory of the workspace cannot hold the workspace and the states."""
    kept = plan.region(state.name).peak_bytes
    need = plan.region(core.name).peak_bytes + kept
    if need > core.size_bytes:
        raise ArenaOverflowError(need=need, have=core.size_bytes, region=core.name, worst=(f"{kept} B of states",))


def _region(use: DeviceUse) -> Region:
    """Return the region of a device's memory; its name cannot collide with a region of the core."""
    return Region(
        name=f"device {use.device.name}",
        size_bytes=use.driver.memory_bytes,
        alignment=use.driver.alignment,
        reachable_by=frozenset({use.device.name}),
    )


def _roots(views: Mapping[str, str]) -> dict[str, str]:
    roots: dict[str, str] = {}
    for output, source in views.items():  # in order of execution: sources come first
        roots[output] = roots.get(source, source)
    return roots


def _placed(
    lowered: LoweredGraph, devices: Mapping[str, Region], roots: Mapping[str, str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Access]]:
    """Return, by buffer, its only allowed region, and the masters that use its storage with their needs.

    A device without memory of its own uses its tensors and its scratch in the first of the core's memories that it
    reaches, where the core's data cache may hold lines of them. A copy between memories is the work of the core.

    Raises:
        FerruleError: no memory is reached by all masters that use a storage.
    """
    core, cores = lowered.plan.core, (lowered.plan.core, *lowered.others)
    users: dict[str, dict[str, DeviceUse]] = {}
    for name, mine in _users(lowered).items():
        users.setdefault(roots.get(name, name), {}).update(mine)
    allowed: dict[str, tuple[str, ...]] = {}
    accesses: dict[str, Access] = {}

    def place(buffer: str, masters: Mapping[str, DeviceUse], alignment: int, named: Region | None = None) -> None:
        region = home(cores, {CORE, *masters}) if named is None else named
        if region is None:
            raise FerruleError(
                f"'{buffer}' is used by the core and by {', '.join(sorted(masters))}, which reach no memory in common",
                hint="see `masters` in board.toml and `regions` of the devices",
            )
        allowed[buffer] = (region.name,)
        accesses[buffer] = Access(
            masters=frozenset({CORE, *masters}),
            alignment=alignment,
            line_bytes=max(region.line_bytes, 1) if masters else 1,
        )

    def keep(buffer: str, use: DeviceUse) -> None:
        allowed[buffer] = (devices[use.name].name,)
        accesses[buffer] = Access(masters=frozenset({use.device.name}))

    olds = {state.source: state.name for state in lowered.graph.states}
    for tensor in lowered.graph.tensors:
        name = tensor.info.name
        use, mine = lowered.memories.get(name), users.get(roots.get(name, name), {})
        if use is not None:
            keep(name, use)
        else:
            place(name, mine, math.lcm(*(each.driver.tensor_alignment for each in mine.values())))
        if name in olds and allowed[name] != (core.name,):
            raise FerruleError(
                f"state '{olds[name]}' is used by {', '.join(sorted(mine))}, which the memory of the workspace lacks",
                hint="states lie there; see `masters` in board.toml and `regions` of the devices",
            )
    for item in lowered.layers:
        masters = {} if item.use is None else {item.use.device.name: item.use}
        for name, scratch in scratches(item).items():
            if item.use is not None and item.is_apart:
                keep(name, item.use)
            else:
                place(name, masters, 1, lowered.plan.names[scratch.memory] if scratch.memory else None)
    return allowed, accesses


def _users(lowered: LoweredGraph) -> dict[str, dict[str, DeviceUse]]:
    """Return, by tensor, the devices that use it in the core's memory, by their names."""
    users: dict[str, dict[str, DeviceUse]] = {}
    for item in lowered.layers:
        if item.use is not None and item.is_shared:
            for name in (*item.layer.present_inputs, *item.layer.outputs):
                users.setdefault(name, {})[item.use.device.name] = item.use
    return users


def _views(lowered: LoweredGraph) -> dict[str, str]:
    """Return the views that can share storage, from output to input.

    The caller chooses the places of inputs and outputs, and a state's old value has its own, so a storage can contain
    at most one of them; and all masters that use a storage must reach it. A view against these rules becomes a copy.
    """
    graph, users, cores = lowered.graph, _users(lowered), (lowered.plan.core, *lowered.others)
    given = {info.name for info in (*graph.sources, *graph.outputs)}
    holder: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    masters: dict[str, set[str]] = {}
    views: dict[str, str] = {}
    for item in lowered.layers:
        if item.op.view_of is None:
            continue
        output = item.layer.outputs[0]
        root = holder.setdefault(item.op.view_of, item.op.view_of)
        mine = owners.setdefault(root, {root} & given)
        joined = mine | ({output} & given)
        together = masters.setdefault(root, {CORE, *users.get(root, {})}) | users.get(output, {}).keys()
        if len(joined) <= 1 and home(cores, together) is not None:
            holder[output] = root
            owners[root] = joined
            masters[root] = together
            views[output] = item.op.view_of
    return views
