# SPDX-License-Identifier: Apache-2.0
"""Layers that show what flows through a network."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import GraphEditor, Layer, LayerType, renamed
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer.decisions import Decisions


def insert_debug_layers(decisions: Decisions) -> None:
    """Put a DEBUG layer behind every output of every layer; it belongs to the backend and device that wrote it.

    The DEBUG layer writes the tensor under its old name, so that readers and the graph's outputs stay as they are.
    """
    editor = GraphEditor(decisions.graph)
    added: dict[str, str] = {}
    for layer in decisions.graph.layers:
        raw = {name: editor.fresh(f"{name}_raw") for name in layer.outputs}
        editor.replace_layer(replace(editor.layer(layer.name), outputs=tuple(raw.values())))
        last = layer.name
        for index, (name, source) in enumerate(raw.items()):
            editor.set_tensor(renamed(editor.tensor(name), source))
            label = editor.fresh(f"debug-{index}-{layer.name}")
            descriptor = DebugDescriptor(layer=layer.name, output=index)
            editor.add_layer(
                Layer(name=label, type=LayerType.DEBUG, descriptor=descriptor, inputs=(source,), outputs=(name,)),
                behind=last,
            )
            added[label] = layer.name
            last = label
    decisions.replace_graph(editor.finish())
    for label, layer_name in added.items():
        decisions.assignment[label] = decisions.assignment[layer_name]
