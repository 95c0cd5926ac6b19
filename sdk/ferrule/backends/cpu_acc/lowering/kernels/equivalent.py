# SPDX-License-Identifier: Apache-2.0
"""Weighted layers as layers of another type that compute the same bytes, and for which there are better kernels.

docs/running.md has the table. Only shapes and the order of constant weights change: image, output and bias keep their
bytes, so that the rest of the network does not notice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import Ranges, channel_ranges, seed_ranges
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array, DataType, Descriptor, Graph, LayerType, Shape, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import NO_PADDING, Padding
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import has_zero_point
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

_MEMO = "equivalent"
"""The key in `LoweringContext.memo`."""
_Windowed = Conv2dDescriptor | DepthwiseConv2dDescriptor


@frozen
class _Form:
    """A layer by its descriptor and the shapes of its tensors."""

    type: LayerType
    descriptor: Descriptor
    image: Shape
    weights: Shape
    output: Shape
    ordered: Callable[[Array], Array] | None = None
    """Returns constant weights in their new order; None if the order stays, as it must for weights from run time."""


def equivalent(context: LoweringContext) -> LoweringContext:
    """Return the context of the layer of another type; the given context if there is none that is better.

    Operators differ in the types that they accept: DEPTHWISE_CONV_2D takes no bias of 32 bits with data of 16.
    The layer is changed once: the costs, the lowering and the bound ask for it.
    """
    if _MEMO not in context.memo:
        found = _equivalent(context)
        context.memo[_MEMO] = None if found is context else found
    changed: LoweringContext | None = context.memo[_MEMO]
    return context if changed is None else replace(changed, spare_bytes=context.spare_bytes, codes=context.codes)


def _equivalent(context: LoweringContext) -> LoweringContext:
    while (form := _form_of(context)) is not None:
        changed = _changed(context, form)
        if not OPERATORS[form.type].accepts(form.descriptor, changed.operands):
            return context
        context = changed
    return context


def in_groups(context: LoweringContext) -> LoweringContext:
    """Return the context of a DEPTHWISE_CONV_2D as a CONV_2D of groups of one channel, for kernels that repeat it."""
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, DepthwiseConv2dDescriptor)
    shapes = (info.shape for info in (*context.operands.pair, context.output))
    return _changed(context, _in_groups(descriptor, *shapes))


def _form_of(context: LoweringContext) -> _Form | None:
    layer = context.layer
    rule = _RULES.get(layer.type)
    if rule is None or has_zero_point(context.input(1)) or len(set(layer.inputs)) < len(layer.inputs):
        return None
    if layer.type is LayerType.BATCH_MATMUL and not _is_packable(context):
        return None
    form = rule(layer.descriptor, *(info.shape for info in (*context.operands.pair, context.output)))
    return None if form is None or (form.ordered is not None and not context.is_constant(1)) else form


def _is_packable(context: LoweringContext) -> bool:
    """Return whether the kernels of layers with weights can pack the right matrix of a BATCH_MATMUL, which is constant.

    They do not pack -128, which is rare among weights.
    """
    matrix = context.constant(1) if context.is_constant(1) else None
    return matrix is not None and matrix.dtype == np.int8 and bool((matrix > -128).all())


def _changed(context: LoweringContext, form: _Form) -> LoweringContext:
    """Return the context with a graph of the changed layer alone, whose tensors keep their names."""
    layer = replace(context.layer, type=form.type, descriptor=form.descriptor)
    graph, given = Graph(context.graph.name), context.graph
    for name in layer.present_inputs:
        info, data = given.info(name), given.tensor(name).data
        if name == layer.inputs[0]:
            info = replace(info, shape=form.image)
        elif name == layer.inputs[1]:
            info = _weights_info(info, form)
            data = form.ordered(data) if form.ordered is not None and data is not None else data
        if data is None:
            graph.add_input(info)
        else:
            graph.add_constant(info, np.ascontiguousarray(data.reshape(info.shape)))
    graph.add_layer(layer, [replace(context.output, shape=form.output)])
    graph.set_outputs(layer.outputs)
    source = context.source
    if source.dtype is DataType.INT8:
        ranges = channel_ranges(given, source.name)
        times, rest = divmod(form.image[-1], ranges.low.size)
        if not rest:  # an image of fewer, longer rows repeats the channels
            seed_ranges(graph, source.name, Ranges(low=np.tile(ranges.low, times), high=np.tile(ranges.high, times)))
    return replace(context, graph=graph, layer=layer)


def _weights_info(info: TensorInfo, form: _Form) -> TensorInfo:
    quantization = info.quantization
    if quantization is not None and quantization.per_channel:
        axis = OPERATORS[form.type].channel_axis
        assert axis is not None, "it is weighted"
        quantization = replace(quantization, axis=axis)
    return replace(info, shape=form.weights, quantization=quantization)


def _of_rows(activation: Activation, rows: int, weights: Shape) -> _Form:
    """Return the product of a matrix of rows with weights [outputs, inputs]."""
    channels, depth = weights
    if rows == 1:
        return _Form(
            type=LayerType.FULLY_CONNECTED,
            descriptor=FullyConnectedDescriptor(activation=activation),
            image=(1, depth),
            weights=weights,
            output=(1, channels),
        )
    return _Form(
        type=LayerType.CONV_2D,
        descriptor=Conv2dDescriptor(activation=activation),
        image=(1, 1, rows, depth),
        weights=(channels, 1, 1, depth),
        output=(1, 1, rows, channels),
    )


def _batch_matmul(descriptor: BatchMatmulDescriptor, image: Shape, weights: Shape, _: Shape) -> _Form | None:
    if descriptor.adj_x or math.prod(weights[:-2]) != 1:
        return None
    matrix = weights[-2:]
    channels, depth = matrix if descriptor.adj_y else matrix[::-1]
    return replace(
        _of_rows(Activation.NONE, math.prod(image) // depth, (channels, depth)),
        ordered=lambda data: data.reshape(matrix) if descriptor.adj_y else data.reshape(matrix).T,
    )


def _fully_connected(descriptor: FullyConnectedDescriptor, image: Shape, weights: Shape, _: Shape) -> _Form | None:
    rows = math.prod(image) // weights[1]
    return _of_rows(descriptor.activation, rows, weights) if rows > 1 else None


def _conv_2d(descriptor: Conv2dDescriptor, image: Shape, weights: Shape, output: Shape) -> _Form | None:
    outputs, height, width, depth = weights
    batch, *extents, channels = image
    if [height, width] == extents and output[1:3] == (1, 1) and depth == channels and _is_dense(descriptor):
        return _of_rows(descriptor.activation, batch, (outputs, height * width * depth))
    if depth == 1 and (channels > 1 or outputs == 1):
        return _Form(
            type=LayerType.DEPTHWISE_CONV_2D,
            descriptor=_like(DepthwiseConv2dDescriptor(depth_multiplier=outputs // channels), descriptor),
            image=image,
            weights=(1, height, width, outputs),
            output=output,
            ordered=_exchanged,
        )
    return _as_row(LayerType.CONV_2D, descriptor, image, weights, output)


def _depthwise(descriptor: DepthwiseConv2dDescriptor, image: Shape, weights: Shape, output: Shape) -> _Form | None:
    if image[3] == 1 and weights[3] > 1:
        return _in_groups(descriptor, image, weights, output)
    return _as_row(LayerType.DEPTHWISE_CONV_2D, descriptor, image, weights, output)


def _in_groups(descriptor: DepthwiseConv2dDescriptor, image: Shape, weights: Shape, output: Shape) -> _Form:
    """Return a depthwise convolution as one of groups of a channel."""
    _, height, width, outputs = weights
    return _Form(
        type=LayerType.CONV_2D,
        descriptor=_like(Conv2dDescriptor(), descriptor),
        image=image,
        weights=(outputs, height, width, 1),
        output=output,
        ordered=_exchanged,
    )


def _transpose_conv(descriptor: TransposeConvDescriptor, image: Shape, weights: Shape, output: Shape) -> _Form | None:
    _, height, width, _ = weights
    top, left = height - 1 - descriptor.pad_top, width - 1 - descriptor.pad_left
    bottom, right = output[1] - image[1] - top + height - 1, output[2] - image[2] - left + width - 1
    if (descriptor.stride_h, descriptor.stride_w) != (1, 1) or min(top, left, bottom, right) < 0:
        return None
    return _Form(
        type=LayerType.CONV_2D,
        descriptor=Conv2dDescriptor(
            padding=Padding(top=top, bottom=bottom, left=left, right=right), activation=descriptor.activation
        ),
        image=image,
        weights=weights,
        output=output,
        ordered=lambda data: data[:, ::-1, ::-1],
    )


def _as_row(type_: LayerType, descriptor: _Windowed, image: Shape, weights: Shape, output: Shape) -> _Form | None:
    """Return a layer over an image of one column as the same over one row, whose pixels are neighbours, too."""
    padding = descriptor.padding
    if image[1] == 1 or (image[2], weights[2], output[2]) != (1, 1, 1) or padding.left or padding.right:
        return None
    turned = replace(
        descriptor,
        stride_h=descriptor.stride_w,
        stride_w=descriptor.stride_h,
        dilation_h=descriptor.dilation_w,
        dilation_w=descriptor.dilation_h,
        padding=Padding(left=padding.top, right=padding.bottom),
    )
    image, weights, output = ((shape[0], shape[2], shape[1], shape[3]) for shape in (image, weights, output))
    return _Form(type=type_, descriptor=turned, image=image, weights=weights, output=output)


def _exchanged(weights: Array) -> Array:
    """Return weights [outputs, height, width, 1] as [1, height, width, outputs], or the other way round."""
    return weights.transpose(3, 1, 2, 0)


def _is_dense(descriptor: Conv2dDescriptor) -> bool:
    """Return whether the elements under a window that is as large as the image are the image."""
    return descriptor.padding == NO_PADDING and descriptor.dilation_h == descriptor.dilation_w == 1


def _like(made: _Windowed, descriptor: _Windowed) -> _Windowed:
    """Return a descriptor with the window and the activation of another one."""
    return replace(
        made,
        stride_h=descriptor.stride_h,
        stride_w=descriptor.stride_w,
        dilation_h=descriptor.dilation_h,
        dilation_w=descriptor.dilation_w,
        padding=descriptor.padding,
        activation=descriptor.activation,
    )


_RULES: Mapping[LayerType, Callable[[Any, Shape, Shape, Shape], _Form | None]] = {
    LayerType.BATCH_MATMUL: _batch_matmul,
    LayerType.FULLY_CONNECTED: _fully_connected,
    LayerType.CONV_2D: _conv_2d,
    LayerType.DEPTHWISE_CONV_2D: _depthwise,
    LayerType.TRANSPOSE_CONV: _transpose_conv,
}
"""By layer type: returns the better form, given the descriptor and the shapes of image, weights and output."""
