# SPDX-License-Identifier: Apache-2.0
"""CONV_2D in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.paired import (
    Channels,
    can_pair,
    channel_words,
    check_reach,
    fold_constants,
    is_plain,
    pair_weights,
)
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Field, Identifier, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.weighted import Factor, factors, folded_bias
from ferrule.operators.window import NO_PADDING, Window


def lower_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that fits types, window and weights."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    match context.input(0).dtype:
        case DataType.INT8:
            return _lower_int8(context, descriptor)
        case dtype:
            raise UnsupportedError(f"layer '{context.layer.name}': there is no kernel for CONV_2D of {dtype}")


def weights_of(context: LoweringContext) -> Array:
    """Return the constant weights of a layer."""
    weights = context.constant(1)
    if weights is None:
        raise UnsupportedError(f"layer '{context.layer.name}' has no weights")
    return weights


def int8_channels(context: LoweringContext, matrix: Array, channel_factors: tuple[Factor, ...]) -> Channels:
    """Return what the layer does with each output channel; `matrix` is [channels, products]."""
    sums = matrix.sum(axis=1, dtype=np.int64)
    bias = folded_bias(sums, context.constant(2), context.input(0).zero_point)
    channels = Channels(matrix=matrix, bias=bias, factors=channel_factors)
    check_reach(channels, context.layer.name)
    return channels


def plain_bias(context: LoweringContext, channels: int, dtype: type[np.generic]) -> Array:
    """Return the bias as it is stored, zeros if there is none."""
    bias = context.constant(2)
    return np.zeros(channels, dtype) if bias is None else bias.reshape(-1).astype(dtype)


def _lower_int8(context: LoweringContext, descriptor: Conv2dDescriptor) -> LoweredOp:
    weights, image, output = weights_of(context), context.input(0), context.operands.output
    window = descriptor.window(context.input(1))
    matrix = weights.reshape(weights.shape[0], -1)
    channels = int8_channels(context, matrix, factors(context.operands, 0))
    low, high = activation_range(descriptor.activation, output)
    packed = fold_constants(channels, zero_point=output.zero_point, low=low, high=high)
    if not can_pair(packed, plain=is_plain(output.zero_point, low, high)):
        return kernel_call(
            context,
            "conv2d_s8",
            header="conv2d",
            window=window_value(window, image, output),
            output_c=len(matrix),
            input_zero_point=image.zero_point,
            weights=context.blob("weights", weights),
            bias=context.blob("bias", plain_bias(context, len(matrix), np.int32)),
            multipliers=context.blob("multipliers", np.array([f.multiplier for f in channels.factors], np.int32)),
            shifts=context.blob("shifts", np.array([f.shift for f in channels.factors], np.int8)),
            output=output_value(output, descriptor.activation),
        )
    words = -(-matrix.shape[1] // 4)
    pairs = context.blob("weights", pair_weights(packed.matrix, 2))
    scales = context.blob("channels", channel_words(packed, 2))
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
                Field(Identifier(pairs.name), "weights"),
                Field(Identifier(scales.name), "channels"),
                Field(Integer(words), "words"),
                Field(Integer(len(matrix)), "output_c"),
                Field(output_value(output, descriptor.activation), "output"),
            )
        ),
        extra_blobs=(pairs, scales),
    )


def _is_pointwise(window: Window) -> bool:
    return window == Window(height=1, width=1, stride_h=1, stride_w=1, dilation_h=window.dilation_h,
                            dilation_w=window.dilation_w, padding=NO_PADDING)  # fmt: skip
