# SPDX-License-Identifier: Apache-2.0
"""Shortens the time that devices stay open: copies out of a device move earlier, copies into it later.

The order of the layers is chosen for the least memory. If no memory grows, a copy is best placed next to the layer
that writes its source or reads its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.codegen.lowered import LoweredGraph
from ferrule.codegen.schedule import Call
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.graph import Graph, Layer

MOST_COPIES = 32
"""Limit on the copies tried: each requires a new plan of the memories, which takes some tens of milliseconds."""
_MOST_HARD = 2
"""Limit on the plans that are not proved optimal, since each of these takes the whole effort of a search, seconds."""
_MOST_PLANNED = 200 * MOST_COPIES
"""Limit on the layers planned in total, so that fewer copies are tried in longer networks."""


def with_copies_close(lowered: LoweredGraph) -> StoragePlan:
    """Return the plan of a graph with each copy at another place in the order if no memory grows by that.

    Raises:
        ArenaOverflowError: the graph does not fit in its original order.
    """
    storage = plan_storage(lowered)
    hard = int(_is_hard(storage))
    copies = [item for item in lowered.layers if item.is_copy]
    for item in copies[: min(MOST_COPIES, _MOST_PLANNED // max(len(lowered.layers), 1))]:
        names = [other.layer.name for other in storage.lowered.layers]
        order = _with_copy_close(lowered.graph, names, item.layer, out=item.call is Call.COPY_FROM)
        if order == names or hard >= _MOST_HARD:
            continue
        planned = plan_storage(replace(lowered, layers=lowered.in_order(order)))
        hard += _is_hard(planned)
        if all(planned.plan.region(part.region).peak_bytes <= part.peak_bytes for part in storage.plan.regions):
            storage = planned
    return storage


def _is_hard(storage: StoragePlan) -> bool:
    return any(part.peak_bytes > part.bound_bytes for part in storage.plan.regions)


def _with_copy_close(graph: Graph, order: Sequence[str], layer: Layer, *, out: bool) -> list[str]:
    """Return the order with a copy right after its writer (if `out` is set) or right before its first reader."""
    others = [name for name in order if name != layer.name]
    beside = [graph.producer(layer.present_inputs[0])] if out else graph.consumers(layer.outputs[0])
    first = min((others.index(each.name) for each in beside if each is not None), default=len(others))
    place = first + 1 if out else first
    return [*others[:place], layer.name, *others[place:]]
