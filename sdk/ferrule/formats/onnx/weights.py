# SPDX-License-Identifier: Apache-2.0
"""Weights and biases of quantised convolutions and products of matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.encoding import Encoding
from ferrule.formats.onnx.integers import Held, Integers
from ferrule.formats.onnx.node import Node
from ferrule.graph import Array
from ferrule.graph.real_values import ieee_floats, overflowing_floats

_INT8 = np.iinfo(np.int8)
_INT32 = np.iinfo(np.int32)
_SCALE_TOLERANCE = 2.0**-20
"""How far a bias may be from a whole number of steps, relative to it: scales are rounded to float32 in several ways."""


def on_integers(node: Node, tensors: Integers) -> Node | None:
    """Return a convolution or a product of matrices with integers as inputs; None if it has to stay one of floats.

    Raises:
        UnsupportedError: networks have no such weights or no such bias.
    """
    if len(node.inputs) < 2:
        return None
    data, weights = (tensors.reals.get(name) for name in node.inputs[:2])
    if data is None or weights is None or not data.encoding.is_byte:
        return None
    alpha = node.number("alpha", 1.0)
    if node.integer("transA", 0) or not np.isfinite(np.float32(alpha)) or alpha <= 0:
        return None
    if weights.data is None or data.data is not None:
        simple = alpha == 1 and not node.has_input(2)
        if not simple or node.op not in {"MatMul", "Gemm"} or not weights.encoding.is_byte:
            return None
        return node.reading((tensors.integers(data), tensors.integers(weights)))
    axis = _channel_axis(node, weights.data)
    if axis is None or (weights.encoding.per_channel and weights.encoding.axis != axis):
        return None
    with overflowing_floats():
        scales = tuple(float(np.float32(alpha) * np.float32(scale)) for scale in weights.encoding.scales)
    if not all(0 < scale < np.inf for scale in scales):
        return None
    scaled = _centred(replace(weights, encoding=replace(weights.encoding, scales=scales)))
    if not scaled.encoding.is_symmetric and not _takes_zero_point(node, weights.data):
        return None
    names = [tensors.integers(data), ""]
    if node.has_input(2):
        if node.number("beta", 1.0) != 1:
            return None
        groups = node.integer("group", 1) if node.op == "ConvTranspose" else 1
        bias = _bias(node, tensors, data.encoding, scaled.encoding, weights.data.shape[axis] * groups)
        if bias is None:
            return None
        names.append(bias)
    names[1] = tensors.integers(scaled)
    attributes = {name: value for name, value in node.attributes.items() if name not in {"alpha", "beta"}}
    return replace(node.reading(names), attributes=attributes)


def _takes_zero_point(node: Node, weights: Array) -> bool:
    """Whether the layer of int8 has weights with a zero point: not with groups of several channels."""
    if node.op != "Conv":
        return node.op != "ConvTranspose"
    return node.integer("group", 1) == 1 or weights.shape[1] == 1


def _channel_axis(node: Node, weights: Array) -> int | None:
    """Return the axis of the outputs; None if there is none."""
    is_matrix = node.op in {"Gemm", "MatMul"}
    if weights.ndim < 2 or (weights.ndim == 2) != is_matrix:
        return None
    return 0 if node.op == "Conv" or (node.op == "Gemm" and node.flag("transB")) else 1


def _centred(weights: Held) -> Held:
    """Return weights without zero points where int8 can hold them; UnsupportedError for others per channel."""
    encoding, data = weights.encoding, weights.data
    assert data is not None
    if encoding.is_symmetric:
        return weights
    moved = data.astype(np.int64) - encoding.along(data.ndim)[1]
    if moved.min(initial=0) >= _INT8.min and moved.max(initial=0) <= _INT8.max:
        points = (0,) * len(encoding.scales)
        return replace(
            weights,
            name=f"{weights.name}_centred",
            encoding=replace(encoding, type="int8", zero_points=points),
            data=moved.astype(np.int8),
        )
    if encoding.per_channel:
        raise UnsupportedError(
            f"its weights '{weights.name}' have zero points per channel, expected symmetric weights, or one scale",
            hint="quantize_static(..., weight_type=QuantType.QInt8, extra_options={'WeightSymmetric': True})",
        )
    return weights


def _bias(node: Node, tensors: Integers, data: Encoding, weights: Encoding, outputs: int) -> str | None:
    """Return the bias as int32 in steps of the product of the scales; None if it is not a constant per output.

    Real numbers are divided by the step and rounded to even, as onnxruntime does.
    """
    name = node.inputs[2]
    held, numbers = tensors.reals.get(name), tensors.numbers(name)
    if numbers is None or numbers.size not in {1, outputs} or (numbers.size > 1 and numbers.shape[-1] != outputs):
        return None
    with overflowing_floats():
        steps = np.float32(data.scales[0]) * np.array(weights.scales, np.float32)
    if not np.all(steps > 0) or not np.all(np.isfinite(steps)):
        raise UnsupportedError("the product of the scales of its data and weights is no positive number of float32")
    if held is not None and held.data is not None:
        exact = _steps_of(held, steps, name)
    else:
        with ieee_floats():
            exact = np.rint(numbers.astype(np.float32).reshape(-1) / steps).astype(np.float64)
    whole = np.broadcast_to(exact, (outputs,))
    if np.any(whole < _INT32.min) or np.any(whole > _INT32.max) or not np.all(np.isfinite(whole)):
        raise UnsupportedError(
            f"its bias '{name}' needs more than 32 bits in steps of {float(steps.min()):g}, the product of the scales",
            hint="quantise the model with larger scales, or export it with a smaller bias",
        )
    scales = tuple(map(float, steps))
    encoding = Encoding(type="int32", scales=scales, zero_points=(0,) * len(scales))
    original = held.name if held is not None else name
    return tensors.constant(original, whole.astype(np.int32), encoding)


def _steps_of(held: Held, steps: Array, name: str) -> Array:
    """Return integers with another scale in steps; UnsupportedError if they are not whole."""
    assert held.data is not None
    own = np.array(held.encoding.scales, np.float32)
    if own.size not in {1, held.data.size}:
        raise ModelError(f"its bias '{name}' has {own.size} scales and {held.data.size} elements")
    values = (held.data.astype(np.int64).reshape(-1) - np.array(held.encoding.zero_points, np.int64)).astype(np.float64)
    if own.size in {1, steps.size} and np.all(own == steps):
        return np.asarray(values)
    scaled = values * own.astype(np.float64) / steps.astype(np.float64)
    whole = np.rint(scaled)
    if np.any(np.abs(scaled - whole) > _SCALE_TOLERANCE * np.maximum(np.abs(whole), 1)):
        raise UnsupportedError(
            f"its bias '{name}' has the scale {float(own[0]):g}, expected {float(steps[0]):g}, the product of the "
            "scales of data and weights",
            hint="quantise the bias with that scale, as quantize_static does, or leave it in float32",
        )
    return np.asarray(whole)
