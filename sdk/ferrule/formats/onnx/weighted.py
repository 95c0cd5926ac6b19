# SPDX-License-Identifier: Apache-2.0
"""Rows of operators with weights: convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value, joined
from ferrule.formats.onnx.functions import clipped, hard_sigmoid, leaky_relu
from ferrule.formats.onnx.layout import Layout, identity
from ferrule.formats.onnx.node import MICROSOFT, elements
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.windows import as_input, image, padding_of, window_of
from ferrule.graph import Array, Descriptor, LayerType, Shape
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.movement.slice import SliceDescriptor
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor


def _kernel(call: Call) -> Shape:
    """Return the shape of the weights as that of an image."""
    shape, rank = call.shape(1), call.rank()
    if len(shape) != rank:
        raise ModelError(f"its weights have shape {list(shape)}, expected {rank} axes as its image has")
    return shape if rank == 4 else (*shape[:2], 1, *shape[2:])


def _conv(call: Call) -> Value:
    x, kernel = image(call), _kernel(call)
    channels, groups = x.shape[3], call.node.integer("group", 1)
    outputs, depth, *extents = kernel
    if groups < 1 or depth * groups != channels or outputs % groups:
        raise ModelError(f"its weights {list(kernel)} in {groups} groups do not fit an image with {channels} channels")
    rows, columns = window = window_of(call, extents[4 - call.rank() :])
    steps: dict[str, Any] = {
        "stride_h": rows.stride,
        "stride_w": columns.stride,
        "dilation_h": rows.dilation,
        "dilation_w": columns.dilation,
        "padding": padding_of(window, x.shape),
    }
    bias = call.tensor(2) if call.node.has_input(2) else None
    descriptor: Descriptor = Conv2dDescriptor(**steps)
    order = 0, 2, 3, 1
    if groups == channels and groups > 1:
        descriptor, order = DepthwiseConv2dDescriptor(depth_multiplier=outputs // channels, **steps), (1, 2, 3, 0)
    return as_input(x.then(descriptor, call.tensor(1, order, kernel), bias))


_ACTIVATIONS: Mapping[str, tuple[int, Callable[..., Value]]] = {
    "": (0, lambda x: x),
    "Clip": (2, clipped),
    "HardSigmoid": (2, hard_sigmoid),
    "LeakyRelu": (1, leaky_relu),
    "Relu": (0, lambda x: x.then(LayerType.RELU)),
    "Sigmoid": (0, lambda x: x.then(LayerType.LOGISTIC)),
    "Tanh": (0, lambda x: x.then(LayerType.TANH)),
}
"""The functions of a FusedConv by their names: how many numbers they take, and what they return."""


def _fused_conv(call: Call) -> Value:
    """Add the Conv, the sum with a fourth input and the activation that onnxruntime's optimiser has joined."""
    node, result = call.node, _conv(call)
    if node.has_input(3):
        if call.shape(3) != result.layout.shape:
            raise ModelError(f"its addend has shape {list(call.shape(3))}, expected {list(result.layout.shape)}")
        result += call.tensor(3, result.order) if call.rank() == 4 else call.tensor(3, None, result.shape)
    name = node.text("activation", "")
    if name not in _ACTIVATIONS:
        known = ", ".join(filter(None, _ACTIVATIONS))
        raise UnsupportedError(f"its attribute 'activation' is '{name}', expected {known}")
    count, function = _ACTIVATIONS[name]
    given = node.attributes.get("activation_params", ())
    numbers = given if isinstance(given, tuple) else ()
    if len(numbers) != count or not all(isinstance(each, int | float) for each in numbers):
        raise ModelError(f"its attribute 'activation_params' has {len(numbers)} numbers, expected {count} for {name}")
    layout = result.axes
    return function(result, *numbers).ordered(layout)


def _conv_transpose(call: Call) -> Value:
    node, kernel = call.node, _kernel(call)
    x, groups, spatial = image(call), node.integer("group", 1), call.rank() - 2
    channels = x.shape[3]
    if groups < 1 or kernel[0] != channels or channels % groups:
        raise ModelError(f"its weights {list(kernel)} in {groups} groups do not fit an image of {channels} channels")
    window = window_of(call, kernel[4 - spatial :])
    extra, wanted = node.integers("output_padding", (0,) * spatial), node.integers("output_shape", ())
    if len(extra) != spatial or len(wanted) not in {0, spatial}:
        raise ModelError(f"its attributes output_padding and output_shape need {spatial} numbers each")
    extra, wanted = (0,) * (2 - spatial) + extra, (1,) * (2 - spatial) + wanted if wanted else ()
    extents = x.shape[1:3]
    (height, top), (width, left) = (
        slide.transposed_size(axis, extents[axis], extra[axis], wanted[axis] if wanted else None)
        for axis, slide in enumerate(window)
    )
    descriptor = TransposeConvDescriptor(
        output_h=height,
        output_w=width,
        stride_h=window[0].stride,
        stride_w=window[1].stride,
        pad_top=top,
        pad_left=left,
    )
    bias = call.tensor(2) if node.has_input(2) else None
    dilations = [slide.dilation for slide in window]
    if groups == 1 and dilations == [1, 1]:
        result = x.then(descriptor, call.tensor(1, (1, 2, 3, 0), kernel), bias)
    else:
        result = _transposed_groups(descriptor, x, _dilated(call, kernel, dilations), groups)
    return as_input(result)


def _dilated(call: Call, kernel: Shape, dilations: Sequence[int]) -> Array:
    """Return the constant weights with zeros between the pixels of the window."""
    weights = call.parameter(1, "weights, with groups or dilations,")
    assert weights is not None
    spread = [(extent - 1) * step + 1 for extent, step in zip(kernel[2:], dilations, strict=True)]
    size = weights.itemsize * elements((*kernel[:2], *spread))
    afford(Resource.BYTES, size, f"its window, which spans {spread} pixels,")
    result = np.zeros((*kernel[:2], *spread), weights.dtype)
    result[:, :, :: dilations[0], :: dilations[1]] = weights.reshape(kernel)
    return result


def _transposed_groups(descriptor: TransposeConvDescriptor, x: Value, weights: Array, groups: int) -> Value:
    """Return a TRANSPOSE_CONV for each group of channels, and the CONCATENATION of their results."""
    call, parts = x.call, []
    bias = call.parameter(2, "bias")
    if bias is not None and bias.shape != (weights.shape[1] * groups,):
        raise ModelError(f"its bias has shape {list(bias.shape)}, expected {weights.shape[1] * groups} numbers")
    depth = weights.shape[0] // groups
    for group in range(groups):
        chosen = weights[group * depth : (group + 1) * depth].transpose(1, 2, 3, 0)
        key = ("group", group, groups)
        weight = call.variant(1, chosen, key, axis=1)
        addend = None if bias is None else call.variant(2, np.split(bias, groups)[group], key, axis=0)
        if groups == 1:
            return x.then(descriptor, weight, addend)
        part = x.then(SliceDescriptor(begin=(0, 0, 0, group * depth), size=(*x.shape[:3], depth)))
        parts.append(part.then(descriptor, weight, addend))
    return joined(ConcatenationDescriptor(axis=3), parts)


def _gemm(call: Call) -> Value:
    node = call.node
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if call.rank() != 2 or call.rank(1) != 2:
        raise ModelError(f"its inputs have {call.rank()} and {call.rank(1)} axes, expected 2 each")
    turned = node.flag("transA"), node.flag("transB")
    addend = node.has_input(2) and beta != 0
    if call.constant(1) is None or turned[0]:
        result = call.tensor(0).then(BatchMatmulDescriptor(adj_x=turned[0], adj_y=turned[1]), call.tensor(1))
    else:
        columns = 0 if turned[1] else 1
        bias = _bias(call, call.shape(1)[columns], beta) if addend else None
        result = _dense(call, columns, alpha, bias)
        alpha, addend = 1.0, addend and bias is None
    if alpha != 1:
        result *= alpha
    if addend:
        third = call.tensor(2)
        result += third if beta == 1 else third * beta
    return result


def _bias(call: Call, outputs: int, factor: float) -> Value | None:
    """Return the third input as a bias per output; None unless it is constant and the same for all rows."""
    addend = call.constant(2)
    if addend is None or addend.size not in {1, outputs} or (addend.size > 1 and addend.shape[-1] != outputs):
        return None
    data = np.broadcast_to(addend.reshape(-1), (outputs,))
    if factor != 1:
        data = _scaled(data, factor)
    return call.variant(2, data, ("bias", factor, outputs), axis=addend.ndim - 1)


def _scaled(data: Array, factor: float) -> Array:
    with ieee_floats():
        result: Array = (data * np.float32(factor)).astype(data.dtype)
    return result


def _dense(call: Call, columns: int, factor: float, bias: Value | None) -> Value:
    """Return the FULLY_CONNECTED of the first input and a constant matrix, whose axis `columns` has the outputs.

    If the first input is an image that was flattened, its pixels stay where they are, and the matrix is permuted.
    """
    matrix = call.constant(1)
    assert matrix is not None
    shape = call.shape()
    if not shape or shape[-1] != matrix.shape[1 - columns]:
        raise ModelError(f"its inputs have shapes {list(shape)} and {list(matrix.shape)}, which do not fit")
    weights = matrix if columns == 0 else matrix.T
    key: tuple[object, ...] = ("weights", columns, factor)
    x = call.value()
    layout, front, order = x.layout, len(shape) - 1, identity(len(shape))
    if layout.is_pending and layout.split[:front] == shape[:front] and layout.order[:front] == order[:front]:
        parts = weights.reshape(-1, *layout.split[front:])
        inner = tuple(1 + axis - front for axis in layout.order[front:])
        weights, key = parts.transpose(0, *inner).reshape(weights.shape), (*key, layout)
        x = x.reshaped(shape)
    else:
        x = call.ordered()
        if x.order[-1] != front:
            x = call.tensor(0)
    if factor != 1:
        weights = _scaled(weights, factor)
    descriptor = FullyConnectedDescriptor(keep_num_dims=len(shape) != 2)
    return x.then(descriptor, call.variant(1, weights, key, axis=columns), bias)


def _matmul(call: Call) -> Value:
    left, right = call.shape(), call.shape(1)
    if not left or not right:
        raise ModelError("one of its inputs is a scalar, expected matrices")
    matrix = call.constant(1)
    if matrix is not None and matrix.ndim == 2 and call.constant(0) is None and len(left) > 1:
        return _dense(call, 1, 1.0, _bias(call, matrix.shape[1], 1.0) if call.node.has_input(2) else None)
    a, adj_x = _matrices(call, 0, (1, *left) if len(left) == 1 else left)
    b, adj_y = _matrices(call, 1, (*right, 1) if len(right) == 1 else right)
    product = a.then(BatchMatmulDescriptor(adj_x=adj_x, adj_y=adj_y), b)
    split = product.shape
    shape = split[:-2] + split[-2:-1] * (len(left) > 1) + split[-1:] * (len(right) > 1)
    return product.ordered(Layout(order=identity(len(split)), split=split, shape=shape))


def _matrices(call: Call, position: int, shape: Shape) -> tuple[Value, bool]:
    """Return an input as matrices in the last two axes, and whether these are transposed."""
    if len(call.shape(position)) > 1 and call.constant(position) is None:
        x = call.ordered(position)
        rank = len(x.order)
        if x.order == (*identity(rank - 2), rank - 1, rank - 2):
            return x, True
    return call.tensor(position, None, shape), False


ROWS: Mapping[str, Row] = {
    "Conv": Row(_conv, 2, 3, layer=LayerType.CONV_2D),
    "ConvTranspose": Row(_conv_transpose, 2, 3, layer=LayerType.TRANSPOSE_CONV),
    "Gemm": Row(_gemm, 2, 3, layer=LayerType.FULLY_CONNECTED),
    f"{MICROSOFT}::FusedConv": Row(_fused_conv, 2, 4),
    "MatMul": Row(_matmul, 2, layer=LayerType.BATCH_MATMUL, joined=3),
}
