# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.paired import Channels, can_pair, channel_words, int8_channels, pair_weights
from ferrule.backends.cpu_acc.lowering.plain import check_reach, lower_plain, weights_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, TensorInfo
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import factors
from ferrule.operators.window import Window


def lower_fully_connected(context: LoweringContext) -> LoweredOp:
    """Return the call of the FULLY_CONNECTED kernel that suits the types and the weights."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    data, output, weights = context.input(0), context.operands.output, weights_of(context)
    check_reach(context, weights)
    channel_factors = () if data.dtype.is_float else factors(context.operands, 0)
    rows = data.elements // weights.shape[1]
    if data.dtype is DataType.INT8:
        channels = int8_channels(context, descriptor.activation, 0)
        if can_pair(channels, output, descriptor.activation):
            return _lower_paired(context, descriptor, channels, rows)
    # A convolution over an image of one column is equivalent.
    return lower_plain(
        context,
        "conv2d",
        window=Window(height=1, width=1, stride_h=1, stride_w=1),
        image=_column(data, rows, weights.shape[1]),
        output=_column(output, rows, weights.shape[0]),
        channels=len(weights),
        activation=descriptor.activation,
        channel_factors=channel_factors,
        output_c=len(weights),
    )


def _column(info: TensorInfo, rows: int, channels: int) -> TensorInfo:
    return TensorInfo(name=info.name, shape=(rows, 1, 1, channels), dtype=info.dtype, quantization=info.quantization)


def _lower_paired(
    context: LoweringContext, descriptor: FullyConnectedDescriptor, channels: Channels, rows: int
) -> LoweredOp:
    output_c, input_c = channels.matrix.shape
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
        weights=context.blob("weights", pair_weights(channels.matrix, 4)),
        channels=context.blob("channels", channel_words(channels, 4)),
        output=output_value(context.operands.output, descriptor.activation),
    )
