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
    before = writer(editor, layer) if layer.type in having(view=True) else None
    if before is not None and before.type in having(view=True):
        editor.replace_layer(replace(as_reshape(editor, layer), inputs=before.inputs[:1]))


def join_transposes(editor: GraphEditor, layer: Layer) -> None:
    """Replace a transpose of a transpose by one transpose of the first one's input."""
    before = writer(editor, layer) if layer.type is LayerType.TRANSPOSE else None
    if before is not None and before.type is LayerType.TRANSPOSE:
        editor.replace_layer(replace(joined_transpose(before, layer), inputs=before.inputs))


def transposes_as_reshapes(editor: GraphEditor, layer: Layer) -> None:
    """Replace each transpose that moves only axes of extent 1, and so no byte, by a reshape."""
    if layer.type is not LayerType.TRANSPOSE or layer.inputs[0] is None:
        return
    shape = editor.info(layer.inputs[0]).shape
    moved = [axis for axis in permutation(layer) if shape[axis] != 1]
    if moved == sorted(moved) and list(permutation(layer)) != sorted(permutation(layer)):
        editor.replace_layer(as_reshape(editor, layer))


def permutation(layer: Layer) -> tuple[int, ...]:
    """Return the permutation of a TRANSPOSE."""
    assert isinstance(layer.descriptor, TransposeDescriptor)
    return layer.descriptor.permutation


def as_reshape(editor: GraphEditor, layer: Layer) -> Layer:
    """Return a layer that moves no byte as a RESHAPE."""
    descriptor = ReshapeDescriptor(shape=editor.info(layer.outputs[0]).shape)
    return replace(layer, type=LayerType.RESHAPE, descriptor=descriptor)


def joined_transpose(first: Layer, second: Layer) -> Layer:
    """Return the second of two TRANSPOSE layers with the permutations of both."""
    before = permutation(first)
    return replace(second, descriptor=TransposeDescriptor(permutation=tuple(before[n] for n in permutation(second))))


def writer(editor: GraphEditor, layer: Layer) -> Layer | None:
    """Return the layer that writes the first input of another one; None if there is none."""
    source = layer.inputs[0] if layer.inputs else None
    return None if source is None else editor.producer(source)
