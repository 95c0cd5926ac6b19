# SPDX-License-Identifier: Apache-2.0
"""Keeps devices open for a shorter time: copies out of a device come early, copies into it late.

The order of the layers is chosen for the least memory. Where no memory becomes larger by it, a copy stands best beside
the layer that writes or reads the device's end of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ferrule.codegen.lowered import LoweredGraph
from ferrule.codegen.schedule import Call
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.graph import Graph, Layer
from ferrule.memory import Region

MOST_COPIES = 32
"""How many copies are looked at: each takes a plan of the memories, some tens of milliseconds."""
_MOST_PLANNED = 200 * MOST_COPIES
"""How many layers are planned in all, so that fewer copies are looked at in longer networks."""


def with_copies_close(lowered: LoweredGraph, core: Region) -> tuple[LoweredGraph, StoragePlan]:
    """Return the graph with copies moved where every memory is planned as small as before, and its plan.

    Raises:
        ArenaOverflowError: it does not fit as it is.
    """
    storage = plan_storage(lowered, core)
    copies = [item for item in lowered.layers if item.call in {Call.COPY_TO, Call.COPY_FROM}]
    for item in copies[: min(MOST_COPIES, _MOST_PLANNED // max(len(lowered.layers), 1))]:
        names = [other.layer.name for other in lowered.layers]
        moved = list(_moved(lowered.graph, names, item.layer, out=item.call is Call.COPY_FROM))
        if moved == names:
            continue
        by_name = {other.layer.name: other for other in lowered.layers}
        candidate = replace(lowered, layers=tuple(by_name[name] for name in moved))
        planned = plan_storage(candidate, core)
        if all(planned.plan.region(part.region).peak_bytes <= part.peak_bytes for part in storage.plan.regions):
            lowered, storage = candidate, planned
    return lowered, storage


def _moved(graph: Graph, order: Sequence[str], layer: Layer, *, out: bool) -> Iterator[str]:
    """Yield the order with a copy right behind its writer, or right before its first reader."""
    writer = graph.producer(layer.present_inputs[0])
    readers = {reader.name for reader in graph.consumers(layer.outputs[0])}
    done = False
    for name in order:
        if not out and not done and name in readers:
            yield layer.name
            done = True
        if name != layer.name:
            yield name
        if out and writer is not None and name == writer.name:
            yield layer.name
            done = True
    if not done:
        yield layer.name
