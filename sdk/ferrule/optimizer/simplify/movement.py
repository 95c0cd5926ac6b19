# SPDX-License-Identifier: Apache-2.0
"""Joins neighbouring reshapes and transposes, and turns transposes that move no byte into reshapes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferrule.graph import Graph, GraphEditor, Layer, LayerType
from ferrule.operators.reshape import ReshapeDescriptor
from ferrule.operators.table import having
from ferrule.operators.transpose import TransposeDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReshapes:
    """Replace a reshape of a reshape by one reshape of the first one's input."""

    name: str = "join reshapes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph in which no view reads another view; views that are no longer read stay in the graph."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            before = _writer(editor, layer) if layer.type in having(view=True) else None
            if before is not None and before.type in having(view=True):
                shape = editor.info(layer.outputs[0]).shape
                editor.replace_layer(
                    replace(
                        layer,
                        type=LayerType.RESHAPE,
                        descriptor=ReshapeDescriptor(shape=shape),
                        inputs=before.inputs[:1],
                    )
                )
        return editor.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTransposes:
    """Replace a transpose of a transpose by one transpose of the first one's input."""

    name: str = "join transposes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph in which no transpose reads another."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            before = _writer(editor, layer) if layer.type is LayerType.TRANSPOSE else None
            if before is None or before.type is not LayerType.TRANSPOSE:
                continue
            first, second = _permutation(before), _permutation(layer)
            joined = TransposeDescriptor(permutation=tuple(first[axis] for axis in second))
            editor.replace_layer(replace(layer, descriptor=joined, inputs=before.inputs))
        return editor.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposesAsReshapes:
    """Replace each transpose that moves only axes of extent 1, and so no byte, by a reshape."""

    name: str = "transposes as reshapes"

    def run(self, graph: Graph) -> Graph:
        """Return the graph with these transposes replaced."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            if layer.type is not LayerType.TRANSPOSE or layer.inputs[0] is None:
                continue
            shape = editor.info(layer.inputs[0]).shape
            moved = [axis for axis in _permutation(layer) if shape[axis] != 1]
            if moved == sorted(moved) and list(_permutation(layer)) != sorted(_permutation(layer)):
                descriptor = ReshapeDescriptor(shape=editor.info(layer.outputs[0]).shape)
                editor.replace_layer(replace(layer, type=LayerType.RESHAPE, descriptor=descriptor))
        return editor.finish()


def _permutation(layer: Layer) -> tuple[int, ...]:
    assert isinstance(layer.descriptor, TransposeDescriptor)
    return layer.descriptor.permutation


def _writer(editor: GraphEditor, layer: Layer) -> Layer | None:
    source = layer.inputs[0]
    return None if source is None else editor.producer(source)
