# SPDX-License-Identifier: Apache-2.0
"""CONV_2D in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.paired import Channels, can_pair, channel_words, int8_channels, pair_weights
from ferrule.backends.cpu_acc.lowering.plain import check_reach, lower_plain, weights_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Field, Identifier, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.weighted import factors
from ferrule.operators.window import NO_PADDING, Window


def lower_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that fits types, window and weights."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    image, output, weights = context.input(0), context.operands.output, weights_of(context)
    matrix = weights.reshape(weights.shape[0], -1)
    check_reach(context, matrix)
    channel_factors = () if image.dtype.is_float else factors(context.operands, 0)
    if image.dtype is DataType.INT8:
        channels = int8_channels(context, matrix, channel_factors, descriptor.activation)
        if can_pair(channels, output, descriptor.activation):
            return _lower_paired(context, descriptor, channels)
    return lower_plain(
        context,
        "conv2d",
        window=descriptor.window(context.input(1)),
        image=image,
        output=output,
        channels=len(matrix),
        activation=descriptor.activation,
        channel_factors=channel_factors,
        output_c=len(matrix),
    )


def _lower_paired(context: LoweringContext, descriptor: Conv2dDescriptor, channels: Channels) -> LoweredOp:
    image, output = context.input(0), context.operands.output
    window = descriptor.window(context.input(1))
    output_c, products = channels.matrix.shape
    words = -(-products // 4)
    weights = context.blob("weights", pair_weights(channels.matrix, 2))
    scales = context.blob("channels", channel_words(channels, 2))
    whole_words = image.shape[3] % 4 == 0
    return kernel_call(
        context,
        "conv2d_1x1_paired_s8" if whole_words and _is_pointwise(window) else "conv2d_paired_s8",
        header="conv2d",
        table="conv2d_paired_s8_params",
        scratch_bytes=words * (16 if whole_words else 20),
        window=window_value(window, image, output),
        input_zero_point=image.zero_point,
        paired=Aggregate(
            (
                Field(Identifier(weights.name), "weights"),
                Field(Identifier(scales.name), "channels"),
                Field(Integer(words), "words"),
                Field(Integer(output_c), "output_c"),
                Field(output_value(output, descriptor.activation), "output"),
            )
        ),
        extra_blobs=(weights, scales),
    )


def _is_pointwise(window: Window) -> bool:
    one_pixel = (window.height, window.width, window.stride_h, window.stride_w) == (1, 1, 1, 1)
    return one_pixel and window.padding == NO_PADDING
