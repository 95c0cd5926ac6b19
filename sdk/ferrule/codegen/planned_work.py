# SPDX-License-Identifier: Apache-2.0
"""The work of a lowered layer, from which its time is planned."""

from __future__ import annotations

from ferrule.backends.firmware import LoweredOp
from ferrule.graph import Graph, Layer
from ferrule.timing.planned import KernelWork


def planned_work(graph: Graph, layer: Layer, kernel: str, op: LoweredOp) -> KernelWork:
    """Return what a kernel does in one inference for a layer that was lowered for the core."""
    costs = next((each.costs for each in op.considered if each.chosen), None)
    names = (*layer.present_inputs, *layer.outputs)
    return KernelWork(
        kernel=kernel,
        instructions=None if costs is None else costs.instructions,
        elements=max((graph.info(name).elements for name in names if not graph.tensor(name).is_constant), default=0),
        weight_bytes=sum(blob.data.nbytes for blob in op.blobs),
    )
