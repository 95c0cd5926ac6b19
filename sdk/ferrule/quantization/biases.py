# SPDX-License-Identifier: Apache-2.0
"""Biases that the product of the scales of data and weights cannot represent: they get a larger scale of the weights.

A channel whose weights are all 0, or tiny beside its bias, as training leaves dead channels, gets a tiny scale by
its weights. Its bias in steps of the product of the scales is then beyond int32, and the sums would saturate or wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ferrule.graph import Array, Graph, GraphEditor, Layer, Tensor
from ferrule.graph.tensor import constant
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.interpreter import operator_of
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range

_MOST = 2.0**30
"""The largest magnitude of a bias that is left as it is: half of int32, the rest is for the products."""
_ZEROED = 2.0**28
"""The magnitude from which the library gets a bias of 0: it states ranges, and its own scales may differ from them."""
_WEIGHT_LIMIT = 127
"""Of symmetric weights, as TensorFlow Lite's specification of 8 bits restricts them."""


def without_large_biases(network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision]) -> Network:
    """Return a float network with 0 for each bias that its channel cannot represent by the scale of its weights.

    `precisions` are those of the layers by name. `with_representable_biases` puts the biases back.
    """
    editor = GraphEditor(network)
    for layer in editor.layers():
        precision, axis = precisions[layer.name], operator_of(layer.type).channel_axis
        if axis is None or precision is Precision.FLOAT or len(layer.present_inputs) != 3:
            continue
        source, weights, bias = map(editor.tensor, layer.present_inputs)
        if weights.data is None or bias.data is None or source.info.name not in ranges:
            continue
        step = ranges[source.info.name].quantization(precision).scales[0]
        others = tuple(place for place in range(weights.data.ndim) if place != axis)
        scales = np.abs(weights.data.astype(np.float64)).max(axis=others) / _WEIGHT_LIMIT
        large = np.abs(bias.data.ravel()) > _ZEROED * step * scales
        if large.any():
            zeroed = np.where(large.reshape(bias.data.shape), np.float32(0), bias.data)
            name = editor.add_tensor(constant(bias.info, zeroed))
            editor.replace_layer(replace(layer, inputs=(*layer.inputs[:2], name)))
    return network_of(editor.finish())


def with_representable_biases(network: Network, floats: Graph) -> Network:
    """Return a network in which each bias beside integers is within half of int32; `floats` is the float network."""
    editor = GraphEditor(network)
    for layer in editor.layers():
        before = floats.producer(layer.outputs[0])
        if before is None or before.type is not layer.type or not operator_of(layer.type).weighted:
            continue
        if len(layer.present_inputs) != 3 or len(before.present_inputs) != 3:
            continue
        source, weights, bias = map(editor.tensor, layer.present_inputs)
        exact, reals = (floats.tensor(name).data for name in before.present_inputs[1:])
        if weights.info.quantization is None or bias.info.quantization is None or exact is None or reals is None:
            continue
        _mend(editor, layer, (weights, bias), (exact, reals), source.info.scale)
    return network_of(editor.finish())


def _mend(
    editor: GraphEditor, layer: Layer, stored: tuple[Tensor, Tensor], exact: tuple[Array, Array], step: float
) -> None:
    """Give the weights of a layer larger scales where its bias needs them."""
    weights, bias = stored
    given, axis = weights.info.quantization, operator_of(layer.type).channel_axis
    assert given is not None
    assert axis is not None
    reals, scales = exact[1].astype(np.float64).ravel(), np.asarray(given.scales, np.float64)
    least = np.abs(reals) / (_MOST * step)
    least = least if given.per_channel else np.max(least, keepdims=True)
    least = least * (least > scales * (_ZEROED / _MOST / 2))  # those that the library may have got as 0
    small = least > 0
    if not small.any():
        return
    made = np.maximum(least.astype(np.float32).astype(np.float64), scales)
    shape = [-1 if place == axis and given.per_channel else 1 for place in range(exact[0].ndim)]
    steps = np.clip(np.rint(exact[0] / made.reshape(shape)), -_WEIGHT_LIMIT, _WEIGHT_LIMIT)
    products = (np.float32(step) * made.astype(np.float32)).astype(np.float64)
    whole = np.rint(reals / products).reshape(_data(bias).shape)
    parts = (
        (weights, np.where(small.reshape(shape), steps, _data(weights)), made),
        (bias, np.where(small, whole, _data(bias)), products),
    )
    names = [_added(editor, *part) for part in parts]
    editor.replace_layer(replace(layer, inputs=(layer.inputs[0], *names)))


def _data(tensor: Tensor) -> Array:
    assert tensor.data is not None
    return tensor.data


def _added(editor: GraphEditor, tensor: Tensor, data: Array, scales: NDArray[np.float64]) -> str:
    """Add a constant like another one, with other integers and scales."""
    given = tensor.info.quantization
    assert given is not None
    quantization = replace(given, scales=tuple(scales.tolist()))
    info = replace(tensor.info, quantization=quantization)
    return editor.add_tensor(constant(info, data.astype(info.dtype.numpy)))
