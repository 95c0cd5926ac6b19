# SPDX-License-Identifier: Apache-2.0
"""Builds a graph from layers given in any order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from ferrule.errors import ModelError
from ferrule.graph.graph import Graph
from ferrule.graph.layer import Layer
from ferrule.graph.state import State
from ferrule.graph.tensor import Tensor


def assemble(
    name: str,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    layers: Iterable[Layer],
    tensors: Mapping[str, Tensor],
    states: Sequence[State] = (),
) -> Graph:
    """Return a finished graph of `layers`, reordered only as needed so that each comes after those that it reads from.

    `tensors` has all tensors by name; constants that neither a layer nor a result uses are left out.

    Raises:
        ModelError: the layers form a cycle, or read a tensor that has no writer.
    """
    graph = Graph(name)
    pending = list(layers)
    read = {tensor for layer in pending for tensor in layer.present_inputs} | set(outputs)
    read |= {state.result for state in states}
    for tensor in inputs:
        graph.add_input(tensors[tensor].info)
    for state in states:
        graph.add_state(tensors[state.source].info, state.initial, name=state.name)
    for key, tensor_ in tensors.items():
        if tensor_.data is not None and key in read:
            graph.add_constant(tensor_.info, tensor_.data)
    for layer in _sorted(pending):
        graph.add_layer(layer, [tensors[output].info for output in layer.outputs])
    graph.set_outputs(outputs)
    for state in states:
        graph.set_state(state.name, state.result)
    graph.freeze(assembled=True)
    return graph


def _sorted(layers: Sequence[Layer]) -> list[Layer]:
    writer = {output: index for index, layer in enumerate(layers) for output in layer.outputs}
    before = [{writer[name] for name in layer.present_inputs if name in writer} for layer in layers]
    after: list[list[int]] = [[] for _ in layers]
    for index, sources in enumerate(before):
        for source in sources:
            after[source].append(index)
    missing = [len(sources) for sources in before]
    ready = [index for index, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(layers[index])
        for reader in after[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    if len(order) != len(layers):
        stuck = [layer.name for index, layer in enumerate(layers) if missing[index]]
        raise ModelError(f"the layers {stuck} form a cycle")
    return order
