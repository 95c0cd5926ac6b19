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
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, Descriptor, Graph, GraphEditor, Layer, LayerType, TensorInfo
from ferrule.graph.tensor import constant
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.arithmetic.window import NO_PADDING
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.optimizer.simplify import each_layer, simplify
from ferrule.optimizer.simplify.fusion import with_activation

_Numbers = NDArray[np.float64]


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
    factor: _Numbers
    """One number, or one per channel."""
    offset: _Numbers

    def spread(self, channels: int) -> tuple[_Numbers, _Numbers]:
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


@frozen
class _Weights:
    """The constants of a layer that sums products."""

    weights: _Numbers
    bias: _Numbers | None
    axis: int
    """That of the weights with the channels of the output."""

    @classmethod
    def of(cls, editor: GraphEditor, layer: Layer) -> _Weights | None:
        """Return the constants of a layer; None if it has none, or is none of float32."""
        operator = OPERATORS.get(layer.type)
        if operator is None or operator.channel_axis is None or len(layer.inputs) not in {2, 3}:
            return None
        if editor.info(layer.outputs[0]).dtype is not DataType.FLOAT32:
            return None
        tensors = [None if name is None else editor.tensor(name) for name in layer.inputs[1:]]
        if any(tensor is not None and tensor.data is None for tensor in tensors):
            return None
        weights, *biases = (None if tensor is None or tensor.data is None else tensor.data for tensor in tensors)
        if weights is None:
            return None
        bias = biases[0] if biases else None
        return cls(
            weights=weights.astype(np.float64),
            bias=None if bias is None else bias.astype(np.float64).ravel(),
            axis=operator.channel_axis,
        )

    @property
    def channels(self) -> int:
        """The number of channels of the output."""
        return int(self.weights.shape[self.axis])

    def scaled(self, factor: _Numbers, offset: _Numbers) -> _Weights:
        """Return the constants of factor * sum + offset, by channel of the output."""
        shape = [1] * self.weights.ndim
        shape[self.axis] = self.channels
        bias = offset if self.bias is None else self.bias * factor + offset
        return replace(self, weights=self.weights * factor.reshape(shape), bias=bias)


def _fold_behind_sums(editor: GraphEditor, layer: Layer) -> None:
    """Fold an affine layer into the sums of products that it reads."""
    affine = _affine(editor, layer)
    before = None if affine is None else editor.producer(affine.source)
    if affine is None or before is None or editor.only_consumer(affine.source) is not layer:
        return
    own = _Weights.of(editor, before)
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
    _replace(editor, before, changed, own.scaled(*affine.spread(own.channels)), gone=layer)


def _fold_before_sums(editor: GraphEditor, layer: Layer) -> None:
    """Fold an affine layer into the sums of products that alone read it."""
    affine = _affine(editor, layer)
    reader = None if affine is None else editor.only_consumer(layer.outputs[0])
    if affine is None or reader is None or _clamps(layer):
        return
    own = _Weights.of(editor, reader)
    if own is None or reader.inputs[0] != layer.outputs[0]:
        return
    match reader.descriptor:
        case Conv2dDescriptor():
            channels, by_channel, padding = own.weights.shape[3], own.weights, reader.descriptor.padding
        case FullyConnectedDescriptor():
            channels, by_channel, padding = own.weights.shape[1], own.weights, NO_PADDING
        case DepthwiseConv2dDescriptor():
            channels, by_channel, padding = own.channels, own.weights, reader.descriptor.padding
        case _:
            return
    shape = editor.info(affine.source).shape
    depthwise = isinstance(reader.descriptor, DepthwiseConv2dDescriptor)
    if channels % shape[-1] or (channels != shape[-1] and not depthwise) or not _fits(affine, shape[-1]):
        return
    if padding != NO_PADDING and affine.offset.any():  # pixels of the padding are 0 after the layer, not before it
        return
    factor, offset = (np.repeat(each, channels // shape[-1]) for each in affine.spread(shape[-1]))
    axes = tuple(axis for axis in range(own.weights.ndim) if axis != own.axis)
    added = np.sum(by_channel * offset, axis=axes)
    bias = added if own.bias is None else own.bias + added
    if own.bias is None and not affine.offset.any():
        made = replace(own, weights=own.weights * factor)
    else:
        made = replace(own, weights=own.weights * factor, bias=bias)
    _replace(editor, reader, replace(reader, inputs=(affine.source, *reader.inputs[1:])), made, gone=layer)


def _clamps(layer: Layer) -> bool:
    """Return whether a layer has an activation."""
    return fused_activation(layer.descriptor) not in {None, Activation.NONE}


def _fits(affine: _Affine, channels: int) -> bool:
    return affine.factor.size in {1, channels} and affine.offset.size in {1, channels}


def _replace(editor: GraphEditor, old: Layer, changed: Layer, made: _Weights, *, gone: Layer) -> None:
    """Give a layer other constants, and remove the affine one, unless a constant is beyond the range of float32."""
    arrays = [made.weights] if made.bias is None else [made.weights, made.bias]
    with np.errstate(over="ignore"):
        stored = [np.asarray(array.astype(np.float32)) for array in arrays]
    if not all(np.isfinite(array).all() for array in stored):
        return
    roles = ("weights", "bias")
    names = [_added(editor, f"{old.name}_{role}", array) for role, array in zip(roles, stored, strict=False)]
    editor.remove_layer(gone.name)
    editor.replace_layer(replace(changed, inputs=(changed.inputs[0], *names)))


def _added(editor: GraphEditor, wanted: str, array: Array) -> str:
    return editor.add_tensor(constant(TensorInfo(wanted, array.shape, DataType.FLOAT32), array))


_fold_behind = each_layer(_fold_behind_sums)
_fold_before = each_layer(_fold_before_sums)
