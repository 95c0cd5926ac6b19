# SPDX-License-Identifier: Apache-2.0
"""Inserts DEBUG layers, which show the tensors of a network as they are computed."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import GraphEditor, Layer, LayerType, renamed
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer.decisions import Decisions


def insert_debug_layers(decisions: Decisions) -> None:
    """Insert a DEBUG layer after every output of every layer, assigned to the backend and device of that layer.

    The DEBUG layer writes the tensor under its old name, so the readers and the graph's outputs do not change.
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
