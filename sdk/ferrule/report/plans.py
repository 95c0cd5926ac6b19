# SPDX-License-Identifier: Apache-2.0
"""Describes memory plans as data: the place and the lifetime of each buffer, by region."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.codegen import Artifact
from ferrule.graph import Graph
from ferrule.memory import BufferKind, GraphPlan, MemoryPlan, Request
from ferrule.report.base import part_of
from ferrule.report.picture import BufferPart, RegionPlanPart


def firmware_plan(artifact: Artifact) -> tuple[RegionPlanPart, ...]:
    """Return the plan of each region of a firmware's workspace that has buffers, with kernel scratch."""
    storage = artifact.storage
    kept = "" if storage.state is None else storage.state.name
    steps = tuple(record.layer for record in artifact.operators)
    return _regions(artifact.graph, storage.plan, storage.requests, steps, kept)


def activation_parts(graph: Graph, planned: GraphPlan) -> tuple[RegionPlanPart, ...]:
    """Return a plan of a graph's activations alone, without scratch."""
    return _regions(graph, planned.plan, planned.requests, planned.ordering.layers, "state")


def _regions(
    graph: Graph, plan: MemoryPlan, requests: Sequence[Request], steps: tuple[str, ...], kept: str
) -> tuple[RegionPlanPart, ...]:
    states = {name for state in graph.states for name in (state.name, state.source)}
    inputs = {info.name for info in graph.inputs}
    outputs = {info.name for info in graph.outputs}

    def kind(request: Request) -> str:
        name = request.name
        if request.kind is BufferKind.SCRATCH:
            return "scratch"
        if name in states or plan.placements[name].region == kept:
            return "state"
        return "input" if name in inputs else "output" if name in outputs else "activation"

    found: dict[str, list[BufferPart]] = {}
    for request in requests:
        place = plan.placements[request.name]
        found.setdefault(place.region, []).append(
            part_of(
                BufferPart,
                request,
                kind=kind(request),
                offset=place.offset,
                first=request.lifetime.first,
                last=request.lifetime.last,
            )
        )
    return tuple(
        part_of(
            RegionPlanPart,
            region,
            name=region.region,
            steps=steps,
            buffers=tuple(sorted(found[region.region], key=lambda each: (each.first, each.offset, each.name))),
        )
        for region in plan.regions
        if region.region in found
    )
