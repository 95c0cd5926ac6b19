# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    SLOWER_WITHOUT_DSP,
    Candidate,
    Feature,
    Row,
    choose,
    has_dsp,
)
from ferrule.backends.cpu_acc.lowering.kernels.dual_mac_s16 import FULLY_CONNECTED_DUAL_S16
from ferrule.backends.cpu_acc.lowering.kernels.fully_connected_block import FULLY_CONNECTED_BLOCK_ROWS
from ferrule.backends.cpu_acc.lowering.kernels.generic import (
    from_run_time,
    lower_plain,
    macs_of,
    ruled_kernel,
    ruled_part,
    weight_bytes_of,
)
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    channel_words,
    int8_channels,
    pair_weights,
)
from ferrule.backends.cpu_acc.lowering.kernels.mve import MVE_FULLY_CONNECTED_ROW
from ferrule.backends.cpu_acc.lowering.kernels.scalar import FULLY_CONNECTED_SCALAR
from ferrule.backends.cpu_acc.lowering.overlap import pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, TensorInfo
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES, factors, has_zero_point
from ferrule.operators.window import Window

_ROW = Window(height=1, width=1, stride_h=1, stride_w=1)
"""The window of the equivalent convolution over an image of one column."""


def lower_fully_connected(context: LoweringContext) -> LoweredOp:
    """Return the call of the FULLY_CONNECTED kernel that suits the types, the weights, the core and the goal."""
    if has_zero_point(context.input(1)):
        return choose(context, _OFFSET_ROWS)
    return choose(context, FULLY_CONNECTED_ROWS[-1:] if from_run_time(context) else FULLY_CONNECTED_ROWS)


def _descriptor(context: LoweringContext) -> FullyConnectedDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _plain(context: LoweringContext) -> Candidate:
    """Return the convolution over an image of one column, which is equivalent."""
    descriptor, data, output = _descriptor(context), context.input(0), context.operands.output
    channels, depth = context.input(1).shape
    rows = data.elements // depth
    return Candidate(
        kernel="conv2d",
        instructions=10 * macs_of(context) + 30 * context.operands.output.elements,
        weight_bytes=weight_bytes_of(context, channels),
        lower=lambda: lower_plain(
            context,
            "conv2d",
            window=_ROW,
            image=_column(data, rows, depth),
            output=_column(output, rows, channels),
            channels=channels,
            activation=descriptor.activation,
            channel_factors=() if data.dtype.is_float else factors(context.operands, 0),
            output_c=channels,
        ),
    )


def _paired(context: LoweringContext) -> Candidate | str:
    descriptor, data = _descriptor(context), context.input(0)
    if data.dtype is not DataType.INT8:
        return "the data is not int8"
    if not has_dsp(context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(context, descriptor.activation, 0)
    if not can_pair(channels, context.operands.output, descriptor.activation):
        return "a weight or a sum is too large to be paired, or an output is scaled up"
    count, products = channels.matrix.shape
    return Candidate(
        kernel="fully_connected_paired_s8",
        instructions=int(1.1 * macs_of(context))
        + 26 * context.operands.output.elements
        + 100 * (data.elements // products),
        weight_bytes=-(-count // 4) * 4 * (-(-products // 4) * 4 + 12),
        scratch_bytes=8 * -(-products // 4),
        lower=lambda: _lower_paired(context, descriptor, channels, data.elements // products),
    )


def _column(info: TensorInfo, rows: int, channels: int) -> TensorInfo:
    return TensorInfo(name=info.name, shape=(rows, 1, 1, channels), dtype=info.dtype, quantization=info.quantization)


def _lower_paired(
    context: LoweringContext, descriptor: FullyConnectedDescriptor, channels: Channels, rows: int
) -> LoweredOp:
    output_c, input_c = channels.matrix.shape
    words = -(-input_c // 4)
    data, output = context.input(0), context.operands.output
    kernel = ruled_kernel(context, "fully_connected_paired")
    return kernel_call(
        context,
        kernel,
        contribution=ruled_part(context, kernel),
        header="fully_connected",
        table="fully_connected_paired_s8_params",
        scratch_bytes=8 * words,
        overlaps=pixel_overlaps(context, _ROW, _column(data, rows, input_c), _column(output, rows, output_c)),
        rows=rows,
        input_c=input_c,
        output_c=output_c,
        words=words,
        weights=context.blob("weights", pair_weights(channels.matrix, 4)),
        channels=context.blob("channels", channel_words(channels, 4)),
        output=output_value(output, descriptor.activation),
    )


FULLY_CONNECTED_ROWS: tuple[Row, ...] = (
    MVE_FULLY_CONNECTED_ROW,
    *FULLY_CONNECTED_BLOCK_ROWS,
    Row(
        kernel="fully_connected_paired_s8",
        needs=frozenset({Feature.LONG_MULTIPLY}),
        rules=WEIGHTED_RULES,
        candidate=_paired,
    ),
    *FULLY_CONNECTED_SCALAR,
    FULLY_CONNECTED_DUAL_S16,
    Row(kernel="conv2d", rules=WEIGHTED_RULES, candidate=_plain),
)
"""The kernels of FULLY_CONNECTED."""
_OFFSET_ROWS = (Row(kernel="conv2d_offset_s8", rules=WEIGHTED_RULES, candidate=_plain),)
"""The kernel for weights with a zero point."""
