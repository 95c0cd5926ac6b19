# SPDX-License-Identifier: Apache-2.0
"""The work of a lowered layer, from which its time is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferrule.backends.firmware import LoweredOp
from ferrule.graph import Graph, Layer
from ferrule.timing.planned import KernelWork


def planned_work(graph: Graph, layer: Layer, kernel: str, op: LoweredOp) -> tuple[KernelWork, ...]:
    """Return what kernels do in one inference for a layer that was lowered for the core; `kernel` is its only one."""
    if op.works:
        return op.works
    costs = next((each.costs for each in op.considered if each.chosen), None)
    names = (*layer.present_inputs, *layer.outputs)
    work = KernelWork(
        kernel=kernel,
        instructions=None if costs is None else costs.instructions,
        elements=max((graph.info(name).elements for name in names if not graph.tensor(name).is_constant), default=0),
        weight_bytes=sum(blob.data.nbytes for blob in op.blobs),
    )
    return (work,)


def summed(works: Iterable[tuple[KernelWork, int]]) -> tuple[KernelWork, ...]:
    """Return works that are done so often, as one for each kernel."""
    found: dict[tuple[str, bool], KernelWork] = {}
    for work, count in works:
        key = work.kernel, work.instructions is None
        before = found.get(key, KernelWork(kernel=work.kernel, instructions=None if key[1] else 0))
        found[key] = replace(
            before,
            instructions=None
            if before.instructions is None or work.instructions is None
            else before.instructions + count * work.instructions,
            elements=before.elements + count * work.elements,
            weight_bytes=max(before.weight_bytes, work.weight_bytes),
        )
    return tuple(found.values())
