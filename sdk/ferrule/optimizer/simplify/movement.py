# SPDX-License-Identifier: Apache-2.0
"""Joins neighbouring reshapes and transposes, and turns transposes that move no byte into reshapes."""

from __future__ import annotations

from dataclasses import replace

from ferrule.graph import GraphEditor, Layer, LayerType
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.table import having


def join_reshapes(editor: GraphEditor, layer: Layer) -> None:
    """Replace a reshape of a reshape by one reshape of the first one's input."""
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


def join_transposes(editor: GraphEditor, layer: Layer) -> None:
    """Replace a transpose of a transpose by one transpose of the first one's input."""
    before = _writer(editor, layer) if layer.type is LayerType.TRANSPOSE else None
    if before is None or before.type is not LayerType.TRANSPOSE:
        return
    first, second = permutation(before), permutation(layer)
    joined = TransposeDescriptor(permutation=tuple(first[axis] for axis in second))
    editor.replace_layer(replace(layer, descriptor=joined, inputs=before.inputs))


def transposes_as_reshapes(editor: GraphEditor, layer: Layer) -> None:
    """Replace each transpose that moves only axes of extent 1, and so no byte, by a reshape."""
    if layer.type is not LayerType.TRANSPOSE or layer.inputs[0] is None:
        return
    shape = editor.info(layer.inputs[0]).shape
    moved = [axis for axis in permutation(layer) if shape[axis] != 1]
    if moved == sorted(moved) and list(permutation(layer)) != sorted(permutation(layer)):
        descriptor = ReshapeDescriptor(shape=editor.info(layer.outputs[0]).shape)
        editor.replace_layer(replace(layer, type=LayerType.RESHAPE, descriptor=descriptor))


def permutation(layer: Layer) -> tuple[int, ...]:
    """Return the permutation of a TRANSPOSE."""
    assert isinstance(layer.descriptor, TransposeDescriptor)
    return layer.descriptor.permutation


def _writer(editor: GraphEditor, layer: Layer) -> Layer | None:
    source = layer.inputs[0]
    return None if source is None else editor.producer(source)
