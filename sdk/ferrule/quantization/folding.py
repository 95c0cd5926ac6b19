# SPDX-License-Identifier: Apache-2.0
"""Folds what a float layer does with each channel, as batch normalisation does, into the weights beside it.

A layer y = m x + a with constants per channel is an ADD, SUB, MUL or DIV. After sums of products, m multiplies the
weights and the bias, and a is added to the bias; before them, m multiplies the weights that read the channel, and the
products of a with the weights are added to the bias. The network computes the same function; its float32 results
change by the rounding of the new constants, which are computed in float64.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import DataType, Descriptor, Graph, GraphEditor, Layer, LayerType
from ferrule.operators.activation import Activation, fused_activation
from ferrule.optimizer.simplify import each_layer, simplify
from ferrule.optimizer.simplify.fusion import with_activation
from ferrule.quantization.weights import Numbers, Weights, inputs_per_channel, is_padded, with_constants


def folded(graph: Graph) -> Graph:
    """Return a float graph that is simplified, and whose affine layers are part of the weights beside them."""
    graph = simplify(graph)
    while True:
        changed = _fold_behind(_fold_before(graph))
        if changed is graph or changed.layers == graph.layers:
            return graph
        graph = simplify(changed)


@frozen
class _Affine:
    """What a layer does with each channel, the last axis of its data: factor * x + offset."""

    source: str
    factor: Numbers
    """One number, or one per channel."""
    offset: Numbers

    def spread(self, channels: int) -> tuple[Numbers, Numbers]:
        """Return the factors and the offsets of so many channels."""
        return np.broadcast_to(self.factor, channels), np.broadcast_to(self.offset, channels)


def _affine(editor: GraphEditor, layer: Layer) -> _Affine | None:
    """Return what a layer does with each channel; None if it does something else."""
    if layer.type not in {LayerType.ADD, LayerType.SUB, LayerType.MUL, LayerType.DIV}:
        return None
    names = layer.present_inputs
    places = [index for index, name in enumerate(names) if editor.tensor(name).is_constant]
    output = editor.info(layer.outputs[0])
    if len(places) != 1 or output.dtype is not DataType.FLOAT32 or not output.shape:
        return None
    source, data = names[1 - places[0]], editor.tensor(names[places[0]]).data
    assert data is not None
    if editor.info(source).shape != output.shape or data.size not in {1, data.shape[-1] if data.shape else 1}:
        return None
    values, zero, one = data.astype(np.float64).ravel(), np.zeros(1), np.ones(1)
    if layer.type is LayerType.ADD:
        return _Affine(source=source, factor=one, offset=values)
    if layer.type is LayerType.MUL:
        return _Affine(source=source, factor=values, offset=zero)
    if layer.type is LayerType.SUB:
        first = places[0] == 0
        return _Affine(source=source, factor=-one if first else one, offset=values if first else -values)
    if places[0] == 0 or not values.all():
        return None
    return _Affine(source=source, factor=1 / values, offset=zero)


def _fold_behind_sums(editor: GraphEditor, layer: Layer) -> None:
    """Fold an affine layer into the sums of products that it reads."""
    affine = _affine(editor, layer)
    before = None if affine is None else editor.producer(affine.source)
    if affine is None or before is None or editor.only_consumer(affine.source) is not layer:
        return
    own = Weights.of(editor, before)
    if own is None or _clamps(before):
        return
    activation = fused_activation(layer.descriptor)
    descriptor: Descriptor | None = before.descriptor
    if activation is not None and activation is not Activation.NONE:
        descriptor = with_activation(before.descriptor, activation)
    output = editor.info(before.outputs[0])
    if descriptor is None or own.channels != output.shape[-1] or not _fits(affine, own.channels):
        return
    changed = replace(before, outputs=layer.outputs, descriptor=descriptor)
    _replace(editor, changed, own.scaled(*affine.spread(own.channels)), gone=layer)


def _fold_before_sums(editor: GraphEditor, layer: Layer) -> None:
    """Fold an affine layer into the sums of products that alone read it."""
    affine = _affine(editor, layer)
    reader = None if affine is None else editor.only_consumer(layer.outputs[0])
    if affine is None or reader is None or _clamps(layer):
        return
    own = Weights.of(editor, reader)
    if own is None or reader.inputs[0] != layer.outputs[0]:
        return
    channels = editor.info(affine.source).shape[-1]
    each = inputs_per_channel(reader, own, channels)
    if each is None or not _fits(affine, channels):
        return
    if is_padded(reader) and affine.offset.any():  # pixels of the padding are 0 after the layer, not before it
        return
    factor, offset = (np.repeat(numbers, each) for numbers in affine.spread(channels))
    axes = tuple(axis for axis in range(own.weights.ndim) if axis != own.axis)
    added = np.sum(own.weights * offset, axis=axes)
    bias = added if own.bias is None else own.bias + added
    if own.bias is None and not affine.offset.any():
        made = replace(own, weights=own.weights * factor)
    else:
        made = replace(own, weights=own.weights * factor, bias=bias)
    _replace(editor, replace(reader, inputs=(affine.source, *reader.inputs[1:])), made, gone=layer)


def _clamps(layer: Layer) -> bool:
    """Return whether a layer has an activation."""
    return fused_activation(layer.descriptor) not in {None, Activation.NONE}


def _fits(affine: _Affine, channels: int) -> bool:
    return affine.factor.size in {1, channels} and affine.offset.size in {1, channels}


def _replace(editor: GraphEditor, changed: Layer, made: Weights, *, gone: Layer) -> None:
    """Give a layer other constants, and remove the affine one, unless a constant is beyond the range of float32."""
    stored = made.stored()
    if stored is not None:
        made_layer = with_constants(editor, changed, stored)
        editor.remove_layer(gone.name)
        editor.replace_layer(made_layer)


_fold_behind = each_layer(_fold_behind_sums)
_fold_before = each_layer(_fold_before_sums)
