# SPDX-License-Identifier: Apache-2.0
"""Removes layers that change nothing, that no layer reads, or that repeat another layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferrule.graph import Graph, GraphEditor, Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.optimizer.simplify.acceptance import is_same


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveIdentities:
    """Remove layers whose output has the elements of the input in the same order, shape and quantisation."""

    name: str = "remove identities"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without these layers."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            operator, source = OPERATORS.get(layer.type), layer.inputs[0] if layer.inputs else None
            if operator is None or source is None or len(layer.outputs) != 1:
                continue
            if is_same(editor, layer) and operator.is_identity(layer.descriptor, Operands.of(editor, layer)):
                editor.bypass(layer, source)
        return editor.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDeadLayers:
    """Remove layers with no output that is read or is an output of the graph."""

    name: str = "remove dead layers"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without these layers."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTwins:
    """Merge layers that compute the same from the same tensors: the first replaces the others."""

    name: str = "merge twins"

    def run(self, graph: Graph) -> Graph:
        """Return the graph without the twins that have one output which is not an output of the graph."""
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
