# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.conv2d import int8_channels, plain_bias, weights_of
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import factors


def lower_depthwise_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that fits types, window and weights."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    match context.input(0).dtype:
        case DataType.INT8:
            return _lower_int8(context, descriptor)
        case dtype:
            raise UnsupportedError(f"layer '{context.layer.name}': there is no kernel for DEPTHWISE_CONV_2D of {dtype}")


def _lower_int8(context: LoweringContext, descriptor: DepthwiseConv2dDescriptor) -> LoweredOp:
    weights, image, output = weights_of(context), context.input(0), context.operands.output
    window = descriptor.window(context.input(1))
    matrix = weights.reshape(-1, weights.shape[3]).T
    channels = int8_channels(context, matrix, factors(context.operands, 3))
    return kernel_call(
        context,
        "depthwise_conv2d_s8",
        header="depthwise_conv2d",
        window=window_value(window, image, output),
        depth_multiplier=descriptor.depth_multiplier,
        input_zero_point=image.zero_point,
        weights=context.blob("weights", weights),
        bias=context.blob("bias", plain_bias(context, len(matrix), np.int32)),
        multipliers=context.blob("multipliers", np.array([f.multiplier for f in channels.factors], np.int32)),
        shifts=context.blob("shifts", np.array([f.shift for f in channels.factors], np.int8)),
        output=output_value(output, descriptor.activation),
    )
