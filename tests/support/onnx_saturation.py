# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime computes of uint8 data and int8 weights on x86-64 processors without VNNI, by numpy alone.

There its matrix product has one instruction, `vpmaddubsw`, for two neighbouring products: their sum saturates to
int16, and only these sums are added up in int32. `session.x64quantprecision` makes the weights uint8, for which there
are other instructions, but it is a matter of the optimiser, and does not reach QLinearMatMul of opset 21.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = NDArray[Any]
PAIR = np.iinfo(np.int16)


def saturating(model: ModelProto, feeds: Mapping[str, Array]) -> Array | None:
    """Return the output of a model of one QLinearConv, QLinearMatMul or QGemm if each pair of products saturates.

    None for other models, for other types than uint8 and int8, and for a QLinearConv with `auto_pad`.
    """
    if len(model.graph.node) != 1:
        return None
    (node,) = model.graph.node
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    given: list[Any] = [feeds.get(name, constants.get(name)) if name else None for name in node.input]
    compute = {"QLinearConv": _convolution, "QLinearMatMul": _product, "QGemm": _general_product}.get(node.op_type)
    if compute is None or given[0].dtype != np.uint8 or given[3].dtype != np.int8:
        return None
    return compute(node, given)


def _product(node: NodeProto, given: Sequence[Any]) -> Array:
    data, scale, zero, weights, weights_scale, weights_zero, output_scale, output_zero = given
    sums = _sums(data, zero, weights, weights_zero)
    return _stored(sums, scale * weights_scale / output_scale, output_zero)


def _general_product(node: NodeProto, given: Sequence[Any]) -> Array | None:
    data, scale, zero, weights, weights_scale, weights_zero, bias, *output = given
    attributes = _attributes(node)
    if len(output) < 2:
        return None
    data = data.T if attributes.get("transA") else data
    weights = weights.T if attributes.get("transB") else weights
    sums = _sums(data, zero, weights, weights_zero) + (0 if bias is None else bias)
    factor = np.float32(attributes.get("alpha", 1.0)) * scale * weights_scale / output[0]
    return _stored(sums, factor, output[1])


def _convolution(node: NodeProto, given: Sequence[Any]) -> Array | None:
    """Multiply windows, the channels of a pixel one after another, with the filters of each group."""
    data, scale, zero, weights, weights_scale, weights_zero, output_scale, output_zero, *bias = given
    attributes, axes = _attributes(node), data.ndim - 2
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        return None
    groups, kernel = attributes.get("group", 1), weights.shape[2:]
    if len(weights) == data.shape[1] == groups:
        return None  # onnxruntime's depthwise convolution adds up one product after another, in int32
    pads = attributes.get("pads", [0] * 2 * axes)
    strides, dilations = (attributes.get(name, [1] * axes) for name in ("strides", "dilations"))
    around = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)]
    padded = np.moveaxis(np.pad(data, around, constant_values=zero), 1, -1)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(1, 1 + axes)))
    places = (slice(None), *(slice(None, None, step) for step in strides), slice(None))
    windows = windows[(*places, *(slice(None, None, step) for step in dilations))]
    windows = np.moveaxis(windows, 1 + axes, -1)
    parts = []
    for each, filters in zip(np.split(windows, groups, -1), np.split(weights, groups), strict=True):
        rows = each.reshape(*each.shape[: 1 + axes], -1)
        columns = np.moveaxis(filters, 1, -1).reshape(len(filters), -1).T
        parts.append((rows, columns))
    per_channel = np.broadcast_to(weights_zero, len(weights))
    sums = np.concatenate(
        [
            _sums(rows, zero, columns, zeros)
            for (rows, columns), zeros in zip(parts, np.split(per_channel, groups), strict=True)
        ],
        axis=-1,
    )
    sums = sums + (bias[0] if bias and bias[0] is not None else 0)
    return np.moveaxis(_stored(sums, scale * weights_scale / output_scale, output_zero), -1, 1)


def _sums(data: Array, zero: Array, weights: Array, weights_zero: Array) -> Array:
    """Return the matrix product without the zero points; the sums of two stored products saturate."""
    left, right, depth = data.astype(np.int64), weights.astype(np.int64), data.shape[-1]
    sums = np.zeros(
        (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]), np.int64
    )
    for first in range(0, depth, 2):
        pair = left[..., first : first + 2] @ right[..., first : first + 2, :]
        sums = sums + np.clip(pair, PAIR.min, PAIR.max)
    offset, weights_offset = int(zero), weights_zero.astype(np.int64)
    sums -= offset * right.sum(-2, keepdims=True) + weights_offset * left.sum(-1, keepdims=True)
    return np.asarray(sums + depth * offset * weights_offset)


def _stored(sums: Array, factor: Array, zero: Array) -> Array:
    limits = np.iinfo(zero.dtype)
    rounded = np.rint(sums.astype(np.int32).astype(np.float32) * np.asarray(factor, np.float32))
    return np.clip(rounded.astype(np.float64) + int(zero), limits.min, limits.max).astype(zero.dtype)


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
