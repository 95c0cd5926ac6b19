# SPDX-License-Identifier: Apache-2.0
"""Removes layers that change nothing, that no layer reads, or that repeat another layer."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import Graph, GraphEditor, Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.optimizer.simplify.acceptance import is_same


def remove_identities(editor: GraphEditor, layer: Layer) -> None:
    """Remove layers whose output has the elements of the input in the same order, shape and quantisation."""
    operator, source = OPERATORS.get(layer.type), layer.inputs[0] if layer.inputs else None
    if operator is None or source is None or len(layer.outputs) != 1:
        return
    if is_same(editor, layer) and operator.is_identity(layer.descriptor, Operands.of(editor, layer)):
        editor.bypass(layer, source)


def remove_dead_layers(graph: Graph) -> Graph:
    """Return the graph without the layers of which no output is read or is an output of the graph."""
    needed = {info.name for info in graph.results}
    alive = set()
    for layer in reversed(graph.layers):
        if needed & set(layer.outputs):
            alive.add(layer.name)
            needed |= set(layer.present_inputs)
    editor = GraphEditor(graph)
    for layer in graph.layers:
        if layer.name not in alive:
            editor.remove_layer(layer.name)
    return editor.finish()


def merge_twins(graph: Graph) -> Graph:
    """Return the graph in which the first of layers that compute the same from the same tensors replaces the others.

    Those with several outputs, or with an output of the graph, stay.
    """
    editor = GraphEditor(graph)
    seen: dict[object, Layer] = {}
    same: dict[str, str] = {}
    for layer in graph.layers:
        if len(layer.outputs) != 1 or layer.type is LayerType.DEBUG:
            continue
        output = layer.outputs[0]
        inputs = tuple(None if name is None else same.get(name, name) for name in layer.inputs)
        key = (layer.type, layer.descriptor, layer.rounding, inputs, replace(graph.info(output), name=""))
        first = seen.setdefault(key, layer)
        if first is not layer and not editor.is_output(output):
            same[output] = first.outputs[0]
            editor.remove_layer(layer.name)
    editor.rename(same)
    return editor.finish()
