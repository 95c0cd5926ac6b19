# SPDX-License-Identifier: Apache-2.0
"""A graph planned as a whole: order, lifetimes, aliases, placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.graph import Graph
from ferrule.memory.aliases import views
from ferrule.memory.lifetimes import Lifetime, lifetimes
from ferrule.memory.ordering import Ordering, measure_order, order_layers
from ferrule.memory.placement import Plan
from ferrule.memory.planner import plan
from ferrule.memory.region import Region
from ferrule.memory.request import Alias, BufferKind, Overlap, Request
from ferrule.memory.search import Effort

DEFAULT_ALIGNMENT = 16
"""In bytes; what TensorFlow Lite Micro aligns to, so that figures can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPlan:
    """The order of a graph's layers and where their buffers lie."""

    ordering: Ordering
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]
    overlaps: tuple[Overlap, ...]
    plan: Plan


def scratch_name(layer: str) -> str:
    """Return the name of a layer's scratch buffer in a plan."""
    return f"{layer}:scratch"


def plan_graph(
    graph: Graph,
    regions: Sequence[Region],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
    scratch_bytes: Mapping[str, int] | None = None,
    allowed: Mapping[str, tuple[str, ...]] | None = None,
    in_place: Sequence[Alias] = (),
    overlaps: Sequence[Overlap] = (),
    order: Sequence[str] | None = None,
    effort: Effort | None = None,
) -> GraphPlan:
    """Choose an order of the layers (unless `order` is given) and lay out all tensors that are not constants.

    `scratch_bytes` is by layer; its buffer is called `scratch_name(layer)`. `allowed` has the regions of a buffer by
    its name, for those that may not live in any; the first one is preferred. Views are found, what a kernel does
    `in_place` is told.

    Raises:
        ArenaOverflowError: see `plan`.
        ModelError: `order` is not an order of the graph.
    """
    needed = {layer: size for layer, size in (scratch_bytes or {}).items() if size > 0}
    aliases = (*views(graph), *in_place)
    ordering = (
        order_layers(graph, aliases=aliases, scratch_bytes=needed, alignment=alignment)
        if order is None
        else measure_order(graph, order, aliases=aliases, scratch_bytes=needed, alignment=alignment)
    )
    requests = _requests(graph, ordering.layers, regions, alignment, needed, allowed or {})
    found = plan(requests, regions, aliases=aliases, overlaps=overlaps, effort=effort)
    return GraphPlan(ordering=ordering, requests=requests, aliases=aliases, overlaps=tuple(overlaps), plan=found)


def _requests(
    graph: Graph,
    order: Sequence[str],
    regions: Sequence[Region],
    alignment: int,
    scratch_bytes: Mapping[str, int],
    allowed: Mapping[str, tuple[str, ...]],
) -> tuple[Request, ...]:
    anywhere = tuple(region.name for region in regions)
    tensors = [
        Request(
            name=name,
            size_bytes=graph.info(name).size_bytes,
            alignment=alignment,
            lifetime=lifetime,
            regions=allowed.get(name, anywhere),
        )
        for name, lifetime in lifetimes(graph, order).items()
    ]
    scratch = [
        Request(
            name=scratch_name(layer),
            size_bytes=scratch_bytes[layer],
            alignment=alignment,
            lifetime=Lifetime(first=step, last=step),
            regions=allowed.get(scratch_name(layer), anywhere),
            kind=BufferKind.SCRATCH,
        )
        for step, layer in enumerate(order)
        if layer in scratch_bytes
    ]
    return (*tensors, *scratch)
