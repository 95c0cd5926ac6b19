# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.conv2d import int8_channels, plain_bias, weights_of
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.paired import can_pair, channel_words, fold_constants, is_plain, pair_weights
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, TensorInfo
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.fully_connected import FullyConnectedDescriptor, output_factors
from ferrule.operators.window import Window


def lower_fully_connected(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that fits types and weights."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    match context.input(0).dtype:
        case DataType.INT8:
            return _lower_int8(context, descriptor)
        case dtype:
            raise UnsupportedError(f"layer '{context.layer.name}': there is no kernel for FULLY_CONNECTED of {dtype}")


def _lower_int8(context: LoweringContext, descriptor: FullyConnectedDescriptor) -> LoweredOp:
    weights, data, output = weights_of(context), context.input(0), context.operands.output
    output_c, input_c = weights.shape
    rows = data.elements // input_c
    channels = int8_channels(context, weights, output_factors(context.operands))
    low, high = activation_range(descriptor.activation, output)
    packed = fold_constants(channels, zero_point=output.zero_point, low=low, high=high)
    if not can_pair(packed, plain=is_plain(output.zero_point, low, high)):
        # A convolution over an image of one column does the same.
        column = TensorInfo(name=data.name, shape=(rows, 1, 1, input_c), dtype=data.dtype)
        result = TensorInfo(name=output.name, shape=(rows, 1, 1, output_c), dtype=output.dtype)
        return kernel_call(
            context,
            "conv2d_s8",
            header="conv2d",
            window=window_value(Window(height=1, width=1, stride_h=1, stride_w=1), column, result),
            output_c=output_c,
            input_zero_point=data.zero_point,
            weights=context.blob("weights", weights),
            bias=context.blob("bias", plain_bias(context, output_c, np.int32)),
            multipliers=context.blob("multipliers", np.array([f.multiplier for f in channels.factors], np.int32)),
            shifts=context.blob("shifts", np.array([f.shift for f in channels.factors], np.int8)),
            output=output_value(output, descriptor.activation),
        )
    words = -(-input_c // 4)
    return kernel_call(
        context,
        "fully_connected_paired_s8",
        header="fully_connected",
        scratch_bytes=8 * words,
        rows=rows,
        input_c=input_c,
        output_c=output_c,
        words=words,
        weights=context.blob("weights", pair_weights(packed.matrix, 4)),
        channels=context.blob("channels", channel_words(packed, 4)),
        output=output_value(output, descriptor.activation),
    )
