# SPDX-License-Identifier: Apache-2.0
"""Layers that show what flows through a network."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import Layer, LayerType
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer.draft import Draft
from ferrule.optimizer.names import Names
from ferrule.optimizer.rewriting import rebuilt, tensors_of


def insert_debug_layers(draft: Draft) -> None:
    """Put a DEBUG layer behind every output of every layer; it belongs to the backend and device that wrote it.

    The DEBUG layer writes the tensor under its old name, so that readers and the graph's outputs stay as they are.
    """
    names = Names(draft.graph)
    tensors = tensors_of(draft.graph)
    layers: list[Layer] = []
    added: dict[str, str] = {}
    for layer in draft.graph.layers:
        raw = tuple(names.take(f"{name}_raw") for name in layer.outputs)
        layers.append(replace(layer, outputs=raw))
        for index, (name, source) in enumerate(zip(layer.outputs, raw, strict=True)):
            tensors[source] = replace(tensors[name], info=replace(tensors[name].info, name=source))
            label = names.take(f"debug-{index}-{layer.name}")
            added[label] = layer.name
            descriptor = DebugDescriptor(layer=layer.name, output=index)
            layers.append(
                Layer(name=label, type=LayerType.DEBUG, descriptor=descriptor, inputs=(source,), outputs=(name,))
            )
    draft.replace_graph(rebuilt(draft.graph, layers, tensors))
    for label, layer_name in added.items():
        draft.assignment[label] = draft.assignment[layer_name]
