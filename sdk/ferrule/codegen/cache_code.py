# SPDX-License-Identifier: Apache-2.0
"""Finds where an executor maintains the core's data cache around the operators of devices.

A device that reads and writes the core's memory does not see the cache. So the executor cleans a tensor that the core
wrote before a device reads it, and drops the lines of a device's output before the device writes it, since a dirty line
could be written over the result. The core may load such lines on its own while the device runs. So the executor drops
them again after the operator, if the core reads the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule.codegen.lowered import scratches
from ferrule.codegen.storage import StoragePlan


@frozen
class Upkeep:
    """The cache maintenance around one operator, by names of tensors, and of scratch as `scratch_name` names it."""

    clean: tuple[str, ...] = ()
    """Inputs that the core wrote, written back before the device reads them."""
    claim: tuple[str, ...] = ()
    """Outputs and scratch, dropped before the device writes them."""
    invalidate: tuple[str, ...] = ()
    """Outputs that the core reads, dropped after the device wrote them."""


def upkeep(storage: StoragePlan) -> tuple[Upkeep, ...]:
    """Return the maintenance around each operator, in the order in which they run; nothing without a cache."""
    lowered = storage.lowered
    if not any(region.line_bytes for region in storage.arenas):
        return tuple(Upkeep() for _ in lowered.layers)
    read = _read_by_core(storage)
    dirty = {storage.root(info.name) for info in lowered.graph.sources}
    steps = []
    for item in lowered.layers:
        outputs = item.layer.outputs
        if not item.is_shared:
            if not storage.is_view(item):
                dirty.update(storage.root(name) for name in outputs if name not in lowered.memories)
            steps.append(Upkeep())
            continue
        copied = {tie.buffer for tie in storage.copies(item.layer.name)}
        outputs = tuple(name for name in outputs if name not in copied)
        inputs = {storage.root(name): name for name in item.layer.present_inputs if name not in copied}
        steps.append(
            Upkeep(
                clean=tuple(name for root, name in inputs.items() if root in dirty and storage.region(name).line_bytes),
                claim=tuple(name for name in (*outputs, *scratches(item)) if storage.region(name).line_bytes),
                invalidate=tuple(
                    name for name in outputs if storage.root(name) in read and storage.region(name).line_bytes
                ),
            )
        )
        dirty -= inputs.keys()
        dirty.update(storage.root(name) for name in item.layer.outputs if name in copied)
    return tuple(steps)


def written_by_devices(storage: StoragePlan) -> frozenset[str]:
    """Return the roots of the tensors in the core's memory that devices write."""
    return frozenset(
        storage.root(name)
        for item in storage.lowered.layers
        if item.is_shared
        for name in item.layer.outputs
        if name not in {tie.buffer for tie in storage.copies(item.layer.name)}
    )


def _read_by_core(storage: StoragePlan) -> frozenset[str]:
    """Return the roots of the tensors that the core reads, or the caller after the run."""

    def names() -> Iterator[str]:
        yield from (info.name for info in storage.lowered.graph.results)
        yield from (each.tie.buffer for each in storage.untied)
        for item in storage.lowered.layers:
            if not (item.is_shared or storage.is_view(item)):
                yield from item.layer.present_inputs

    return frozenset(map(storage.root, names()))
