# SPDX-License-Identifier: Apache-2.0
"""Rows of operators with weights: convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.layout import Layout, identity
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.windows import Window, finish_image, image
from ferrule.graph import Array, Descriptor, LayerType, Shape
from ferrule.operators.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.transpose_conv import TransposeConvDescriptor


def _kernel(shape: Shape, rank: int) -> Shape:
    """Return the shape of a kernel as that of an image, and the rank that it must have."""
    if len(shape) != rank:
        raise ModelError(f"its weights have shape {list(shape)}, expected {rank} axes as its image has")
    return shape if rank == 4 else (*shape[:2], 1, *shape[2:])


def _conv(call: Call) -> None:
    source, kernel = image(call, 0), _kernel(call.shape(1), call.rank(0))
    channels, groups = call.info(source).shape[3], call.node.integer("group", 1)
    outputs, depth, *extents = kernel
    if groups < 1 or depth * groups != channels or outputs % groups:
        raise ModelError(f"its weights {list(kernel)} in {groups} groups do not fit an image with {channels} channels")
    window = Window.of(call, (extents[0], extents[1]))
    pads = window.padding(call.info(source).shape)
    bias = call.tensor(2) if call.node.has_input(2) else None
    strides, dilations = window.strides, window.dilations
    if groups == channels and groups > 1:
        weights = call.tensor(1, (1, 2, 3, 0), kernel)
        descriptor = DepthwiseConv2dDescriptor(
            depth_multiplier=outputs // channels,
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h=dilations[0],
            dilation_w=dilations[1],
            padding=pads,
        )
        finish_image(call, LayerType.DEPTHWISE_CONV_2D, descriptor, source, weights, bias)
        return
    conv = Conv2dDescriptor(
        stride_h=strides[0], stride_w=strides[1], dilation_h=dilations[0], dilation_w=dilations[1], padding=pads
    )
    finish_image(call, LayerType.CONV_2D, conv, source, call.tensor(1, (0, 2, 3, 1), kernel), bias)


def _conv_transpose(call: Call) -> None:
    node, source, kernel = call.node, image(call, 0), _kernel(call.shape(1), call.rank(0))
    info, groups = call.info(source), node.integer("group", 1)
    if groups != 1:
        raise UnsupportedError(
            f"its attribute 'group' is {groups}, expected 1", hint="divide it into one ConvTranspose for each group"
        )
    window = Window.of(call, (kernel[2], kernel[3]))
    if window.dilations != (1, 1):
        raise UnsupportedError(f"its attribute 'dilations' is {list(window.dilations)}, expected 1 along each axis")
    extra = node.integers("output_padding", (0,) * (call.rank(0) - 2))
    wanted = node.integers("output_shape", ())
    spatial = call.rank(0) - 2
    if len(extra) != spatial or len(wanted) not in {0, spatial}:
        raise ModelError(f"its attributes output_padding and output_shape need {spatial} numbers each")
    extra, wanted = (0,) * (2 - spatial) + extra, (1,) * (2 - spatial) + wanted if wanted else ()
    sizes, starts = [], []
    for axis in range(2):
        size, start = window.transposed_size(axis, info.shape[1 + axis], extra[axis], wanted[axis] if wanted else None)
        sizes.append(size)
        starts.append(start)
    descriptor = TransposeConvDescriptor(
        output_h=sizes[0],
        output_w=sizes[1],
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        pad_top=starts[0],
        pad_left=starts[1],
    )
    bias = call.tensor(2) if node.has_input(2) else None
    finish_image(call, LayerType.TRANSPOSE_CONV, descriptor, source, call.tensor(1, (1, 2, 3, 0), kernel), bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """A layer that multiplies matrices."""

    type: LayerType
    descriptor: Descriptor
    inputs: tuple[str | None, ...]
    order: tuple[int, ...]
    """The order of the axes of its result."""


def _gemm(call: Call) -> None:
    node = call.node
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if call.rank(0) != 2 or call.rank(1) != 2:
        raise ModelError(f"its inputs have {call.rank(0)} and {call.rank(1)} axes, expected 2 each")
    turned = node.integer("transA", 0) != 0, node.integer("transB", 0) != 0
    addend = node.has_input(2) and beta != 0
    if call.constant(1) is None or turned[0]:
        inputs = call.tensor(0), call.tensor(1)
        descriptor = BatchMatmulDescriptor(adj_x=turned[0], adj_y=turned[1])
        product = _Product(type=LayerType.BATCH_MATMUL, descriptor=descriptor, inputs=inputs, order=(0, 1))
    else:
        columns = 0 if turned[1] else 1
        bias = _bias(call, call.shape(1)[columns], beta) if addend else None
        product = _dense(call, columns, alpha, bias)
        alpha, addend = 1.0, addend and bias is None
    _finish_product(call, product, alpha, beta if addend else 0.0)


def _finish_product(call: Call, product: _Product, alpha: float, beta: float) -> None:
    """Add the layers of alpha * product + beta * third input."""
    if alpha == 1 and beta == 0:
        call.finish(product.type, product.descriptor, *product.inputs, order=product.order)
        return
    result = call.add(product.type, product.descriptor, *product.inputs)
    if alpha != 1:
        factor = call.number(alpha, result)
        if beta == 0:
            call.finish(LayerType.MUL, BinaryDescriptor(), result, factor, order=product.order)
            return
        result = call.add(LayerType.MUL, BinaryDescriptor(), result, factor)
    third = call.tensor(2)
    if beta != 1:
        third = call.add(LayerType.MUL, BinaryDescriptor(), third, call.number(beta, third))
    call.finish(LayerType.ADD, BinaryDescriptor(), result, third)


def _bias(call: Call, outputs: int, factor: float) -> str | None:
    """Return the third input as a bias per output; None unless it is constant and the same for all rows."""
    addend = call.constant(2)
    if addend is None or addend.size not in {1, outputs} or (addend.size > 1 and addend.shape[-1] != outputs):
        return None
    data = np.broadcast_to(addend.reshape(-1), (outputs,))
    if factor != 1:
        data = _scaled(data, factor)
    return call.variant(2, data, ("bias", factor, outputs), axis=addend.ndim - 1)


def _scaled(data: Array, factor: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        result: Array = (data * np.float32(factor)).astype(data.dtype)
    return result


def _dense(call: Call, columns: int, factor: float, bias: str | None) -> _Product:
    """Return the FULLY_CONNECTED of the first input and a constant matrix, whose axis `columns` has the outputs.

    If the first input is an image that was flattened, its pixels stay where they are, and the matrix is permuted.
    """
    matrix = call.constant(1)
    assert matrix is not None
    shape = call.shape(0)
    if not shape or shape[-1] != matrix.shape[1 - columns]:
        raise ModelError(f"its inputs have shapes {list(shape)} and {list(matrix.shape)}, which do not fit")
    weights = matrix if columns == 0 else matrix.T
    key: tuple[object, ...] = ("weights", columns, factor)
    source, layout = call.place(0)
    front = len(shape) - 1
    order = identity(len(shape))
    if layout.is_pending and layout.split[:front] == shape[:front] and layout.order[:front] == order[:front]:
        parts = weights.reshape(-1, *layout.split[front:])
        inner = tuple(1 + axis - front for axis in layout.order[front:])
        weights, key = parts.transpose(0, *inner).reshape(weights.shape), (*key, layout)
        source = call.reshaped(source, shape)
    else:
        source, order = call.ordered(0)
        if order[-1] != front:
            source, order = call.tensor(0), identity(len(shape))
    if factor != 1:
        weights = _scaled(weights, factor)
    descriptor = FullyConnectedDescriptor(keep_num_dims=len(shape) != 2)
    inputs = (source, call.variant(1, weights, key, axis=columns), bias)
    return _Product(type=LayerType.FULLY_CONNECTED, descriptor=descriptor, inputs=inputs, order=order)


def _matmul(call: Call) -> None:
    left, right = call.shape(0), call.shape(1)
    if not left or not right:
        raise ModelError("one of its inputs is a scalar, expected matrices")
    matrix = call.constant(1)
    if matrix is not None and matrix.ndim == 2 and call.constant(0) is None and len(left) > 1:
        _finish_product(call, _dense(call, 1, 1.0, None), 1.0, 0.0)
        return
    a, adj_x = _matrices(call, 0, (1, *left) if len(left) == 1 else left)
    b, adj_y = _matrices(call, 1, (*right, 1) if len(right) == 1 else right)
    descriptor = BatchMatmulDescriptor(adj_x=adj_x, adj_y=adj_y)
    split = call.infer(LayerType.BATCH_MATMUL, descriptor, a, b)
    shape = split[:-2] + split[-2:-1] * (len(left) > 1) + split[-1:] * (len(right) > 1)
    layout = Layout(order=identity(len(split)), split=split, shape=shape)
    call.finish(LayerType.BATCH_MATMUL, descriptor, a, b, layout=layout)


def _matrices(call: Call, position: int, shape: Shape) -> tuple[str, bool]:
    """Return an input as matrices in the last two axes, and whether these are transposed."""
    if len(call.shape(position)) > 1 and call.constant(position) is None:
        tensor, order = call.ordered(position)
        if order == (*identity(len(order) - 2), len(order) - 1, len(order) - 2):
            return tensor, True
    return call.tensor(position, None, shape), False


ROWS: Mapping[str, Row] = {
    "Conv": Row(emit=_conv, inputs=range(2, 4)),
    "ConvTranspose": Row(emit=_conv_transpose, inputs=range(2, 4)),
    "Gemm": Row(emit=_gemm, inputs=range(2, 4)),
    "MatMul": Row(emit=_matmul, inputs=range(2, 3)),
}
