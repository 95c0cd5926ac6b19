# SPDX-License-Identifier: Apache-2.0
"""Folds factors and addends per channel into the float32 weights and biases of the layers before them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.graph import Array, DataType, GraphEditor, Layer, LayerType, TensorInfo, constant
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.table import OPERATORS, having


@positional
class _Affine:
    """factor * x + addend, each a number or one for each channel."""

    source: str
    factor: Array
    addend: Array


def with_affine_folded(network: Network) -> Network:
    """Return a network in which no layer with weights has a constant factor or addend per channel behind it.

    Batch normalisation becomes part of the layer before it. The network is returned unchanged if it has none.
    """
    if not any(isinstance(layer.descriptor, BinaryDescriptor) for layer in network.layers):
        return network
    editor = GraphEditor(network)
    for layer in editor.layers():
        if not isinstance(layer.descriptor, BinaryDescriptor) or (found := _affine(editor, layer)) is None:
            continue
        before = _weighted(editor, found.source, layer)
        if before is not None:
            _fold(editor, before, layer, found)
    return network_of(editor.finish())


def _affine(editor: GraphEditor, layer: Layer) -> _Affine | None:
    """Return what a layer computes if one of its inputs is constant; None unless that is the same for all pixels."""
    left, right = layer.present_inputs
    constants = [editor.tensor(name).data for name in (left, right)]
    output = editor.info(layer.outputs[0])
    for source, data, first in ((left, constants[1], True), (right, constants[0], False)):
        if data is None or editor.info(source).shape != output.shape or data.dtype != np.float32:
            continue
        if data.shape[-1:] not in {(), (data.size,)}:
            continue
        values, one, zero = data.reshape(-1).astype(np.float64), np.ones(1), np.zeros(1)
        match layer.type:
            case LayerType.ADD:
                return _Affine(source, one, values)
            case LayerType.SUB:
                return _Affine(source, one, -values) if first else _Affine(source, -one, values)
            case LayerType.MUL:
                return _Affine(source, values, zero)
        return _Affine(source, 1 / values, zero) if first and np.all(values) else None
    return None


def _weighted(editor: GraphEditor, source: str, reader: Layer) -> tuple[Layer, ...] | None:
    """Return the layer with constant weights that writes a tensor only for one reader, and a RESHAPE between them."""
    before = editor.producer(source)
    if before is None or editor.only_consumer(source) is not reader:
        return None
    if before.type is LayerType.RESHAPE:
        inner = before.present_inputs[0]
        same = editor.info(inner).shape[-1:] == editor.info(source).shape[-1:]
        plain = fused_activation(reader.descriptor) in {None, Activation.NONE}
        found = _weighted(editor, inner, before) if same and plain else None
        return None if found is None or len(found) > 1 else (*found, before)
    if before.type not in having(weighted=True) or fused_activation(before.descriptor) is not Activation.NONE:
        return None
    return (before,) if all(editor.tensor(name).data is not None for name in before.present_inputs[1:]) else None


def _fold(editor: GraphEditor, chain: tuple[Layer, ...], layer: Layer, affine: _Affine) -> None:
    """Give the first layer of a chain other weights and biases in place of a layer behind it."""
    before = chain[0]
    names = before.present_inputs
    weights = _data(editor, names[1])
    axis = OPERATORS[before.type].channel_axis
    assert axis is not None, "it has weights"
    channels = weights.shape[axis]
    shape = [1] * weights.ndim
    shape[axis] = -1
    bias = _data(editor, names[2]) if len(names) > 2 else np.zeros(channels)
    with np.errstate(all="ignore"):
        new_weights = (weights * affine.factor.reshape(shape)).astype(np.float32)
        new_bias = (bias * affine.factor + affine.addend).astype(np.float32)
    inputs = [names[0], names[1]]
    if np.any(affine.factor != 1):
        inputs[1] = _constant(editor, names[1], new_weights)
    name = names[2] if len(names) > 2 else editor.fresh(f"{before.outputs[0]}_bias")
    inputs.append(_constant(editor, name, new_bias))
    descriptor: Any = before.descriptor
    descriptor = replace(descriptor, activation=fused_activation(layer.descriptor))
    editor.remove_layer(layer.name)
    folded = replace(before, descriptor=descriptor, inputs=tuple(inputs))
    if len(chain) > 1:
        editor.replace_layer(folded)
        folded = chain[1]
    editor.replace_layer(replace(folded, outputs=layer.outputs))


def _data(editor: GraphEditor, name: str) -> Array:
    data = editor.tensor(name).data
    assert data is not None
    return data.astype(np.float64)


def _constant(editor: GraphEditor, name: str, data: Array) -> str:
    """Replace a constant that only one layer reads, or add another one, and return its name."""
    if len(editor.consumers(name)) > 1 or editor.is_output(name):
        name = editor.fresh(name)
    editor.set_tensor(constant(TensorInfo(name, data.shape, DataType.FLOAT32), data))
    return name
