# SPDX-License-Identifier: Apache-2.0
"""The range of values that each channel of an int8 tensor can have, for any input of the network.

Trained networks have dead channels, which always have the same value. A lowering omits the weights of dead channels,
and the weights by which later layers multiply them, without changing the result in any tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.streaming.chain import streamed
from ferrule.graph import Array, DataType, Graph, Layer, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range, factor_arrays, rescale
from ferrule.operators.arithmetic.window import NO_PADDING
from ferrule.operators.operator import Operands, optional_array, values_of
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import bias_info, centred, factors, folded_bias


@frozen(eq=False)
class Ranges:
    """The lowest and highest stored value of each channel (the last axis), as int64."""

    low: Array
    high: Array

    @property
    def constant(self) -> Array:
        """bool, one per channel: whether it can have only one value."""
        found: Array = self.low == self.high
        return found


_KNOWN: WeakKeyDictionary[Graph, dict[str, Ranges]] = WeakKeyDictionary()
"""By graph and tensor; each kernel of each layer asks, and a search goes back to the inputs of the network."""


def channel_ranges(graph: Graph, tensor: str) -> Ranges:
    """Return the ranges of an int8 tensor's channels; a scalar counts as one channel."""
    known = _KNOWN.setdefault(graph, {})
    chain: list[str] = []
    name: str | None = tensor
    while name is not None and name not in known:
        chain.append(name)
        layer = graph.producer(name)
        name = None if layer is None or _rule_of(layer) is None else layer.inputs[0]
    for name in reversed(chain):
        known[name] = _ranges_of(graph, name, known)
    return known[tensor]


def seed_ranges(graph: Graph, tensor: str, ranges: Ranges) -> None:
    """State the ranges of an input of a graph that is a part of another one; without them, they are the whole ones."""
    _KNOWN.setdefault(graph, {})[tensor] = ranges


def _ranges_of(graph: Graph, tensor: str, known: Mapping[str, Ranges]) -> Ranges:
    layer, info = graph.producer(tensor), graph.info(tensor)
    rule = None if layer is None else _rule_of(layer)
    if layer is None or rule is None or not layer.inputs or layer.inputs[0] is None or info.dtype is not DataType.INT8:
        return _whole(info)
    return rule(graph, layer, known[layer.inputs[0]]) or _whole(info)


def _rule_of(layer: Layer) -> Callable[[Graph, Layer, Ranges], Ranges | None] | None:
    """Return the function that finds a layer's output ranges; layers that requantise by other rules have weights."""
    operator = OPERATORS.get(layer.type)
    if operator is None:
        return _chain
    if operator.weighted:
        return _weighted
    if layer.rounding is not Rounding.TFLM:
        return None
    return _view if operator.view else _pool


def _whole(info: TensorInfo) -> Ranges:
    channels = info.shape[-1] if info.shape else 1
    return Ranges(low=np.full(channels, -128, np.int64), high=np.full(channels, 127, np.int64))


def product_ranges(layer: Layer, data: TensorInfo, weights: TensorInfo, given: Ranges) -> Ranges | None:
    """Return the ranges of the data in each product of a weighted layer, as [channels or 1, products].

    None if the products do not correspond to the data's channels. Padded pixels have the value of the zero point.
    """
    match layer.descriptor:
        case Conv2dDescriptor(padding=padding) if groups_of(data, weights) == 1:
            taps = weights.shape[1] * weights.shape[2]
            low, high = np.tile(given.low, taps)[None, :], np.tile(given.high, taps)[None, :]
        case DepthwiseConv2dDescriptor(padding=padding, depth_multiplier=multiplier):
            low, high = np.repeat(given.low, multiplier)[:, None], np.repeat(given.high, multiplier)[:, None]
        case FullyConnectedDescriptor() if data.shape[-1] == weights.shape[1]:
            padding = NO_PADDING
            low, high = given.low[None, :], given.high[None, :]
        case _:
            return None
    if padding != NO_PADDING:
        low, high = np.minimum(low, data.zero_point), np.maximum(high, data.zero_point)
    return Ranges(low=low, high=high)


def product_matrix(layer: Layer, weights: Array) -> Array:
    """Return the weights of a weighted layer as [channels, products]."""
    axis = channel_axis(layer)
    return np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)


def channel_axis(layer: Layer) -> int:
    """Return the axis of a weighted layer's weights that corresponds to the output's channels."""
    axis = OPERATORS[layer.type].channel_axis
    assert axis is not None, "it is weighted"
    return axis


def stored_ranges(operands: Operands, activation: Activation, channel_axis: int, sums: tuple[Array, Array]) -> Ranges:
    """Return the ranges of an output, given the lowest and the highest sum of each channel; sums include the bias."""
    output = operands.output
    low, high = activation_range(activation, output)
    multipliers, shifts = factor_arrays(factors(operands, channel_axis))
    lowest, highest = (
        np.clip(rescale(total, multipliers, shifts, operands.rounding) + output.zero_point, low, high) for total in sums
    )
    # Stored values increase monotonically with the sums unless the sums or the left shift wrap.
    reach = np.maximum(np.abs(sums[0]), np.abs(sums[1])).astype(np.float64)
    whole = reach * np.exp2(np.maximum(shifts, 0)) < 2.0**31
    return Ranges(low=np.where(whole, lowest, low), high=np.where(whole, highest, high))


def extreme_sums(matrix: Array, bias: Array, given: Ranges) -> tuple[Array, Array]:
    """Return the lowest and the highest sum of bias and products for each channel."""
    wide = matrix.astype(np.int64)
    at_low, at_high = wide * given.low, wide * given.high
    return bias + np.minimum(at_low, at_high).sum(axis=1), bias + np.maximum(at_low, at_high).sum(axis=1)


def _weighted(graph: Graph, layer: Layer, given: Ranges) -> Ranges | None:
    descriptor = layer.descriptor
    operands, values = Operands.of(graph, layer), values_of(graph, layer)
    weights, bias = values[1], optional_array(values, 2)
    if weights is None or (bias is None and bias_info(operands) is not None):
        return None
    if not isinstance(descriptor, Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor):
        return None
    products = product_ranges(layer, operands.source, operands.input(1), given)
    if products is None:
        return None
    matrix = product_matrix(layer, centred(weights, operands.input(1)))
    folded = folded_bias(matrix.sum(axis=1, dtype=np.int64), bias, operands.source.zero_point)
    return stored_ranges(operands, descriptor.activation, channel_axis(layer), extreme_sums(matrix, folded, products))


def _pool(graph: Graph, layer: Layer, given: Ranges) -> Ranges | None:
    if not isinstance(layer.descriptor, Pool2dDescriptor):
        return None
    low, high = activation_range(layer.descriptor.activation, graph.info(layer.outputs[0]))
    return Ranges(low=given.low.clip(low, high), high=given.high.clip(low, high))


def _view(graph: Graph, layer: Layer, given: Ranges) -> Ranges | None:
    shape = graph.info(layer.outputs[0]).shape
    return given if shape and shape[-1] == given.low.size else None


def _chain(graph: Graph, layer: Layer, given: Ranges) -> Ranges | None:
    """Return the ranges behind a chain of layers that runs row by row."""
    del graph
    payload = streamed(layer)
    if payload is None:
        return None
    inside = payload.layers
    seed_ranges(inside, inside.inputs[0].name, given)
    return channel_ranges(inside, inside.outputs[0].name)
