# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with the host's vector instructions."""

from __future__ import annotations

import math

import numpy as np

from ferrule.backends.cpu_acc.host.instruction_set import InstructionSet
from ferrule.backends.cpu_acc.host.lowering.conv2d import Convolution, lower_products
from ferrule.backends.cpu_acc.host.lowering.image import Image
from ferrule.backends.cpu_acc.host.lowering.scales import float_bias, int8_scales
from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.plain import check_reach, weights_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import factors

MOST_VECTORS = 256
"""Weights are repeated until channels and vectors meet; beyond that many vectors the portable kernel is better."""


def lower_depthwise_conv2d(context: LoweringContext, instructions: InstructionSet) -> LoweredOp | None:
    """Return the call for int8 or float32 data; None for other types and for several outputs per input channel."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    data, output, weights = context.input(0), context.operands.output, weights_of(context)
    if data.dtype not in {DataType.INT8, DataType.FLOAT32}:
        return None
    check_reach(context, weights.reshape(-1, weights.shape[3]).T)
    window = descriptor.window(context.input(1))
    if data.shape[3] == 1:
        return lower_products(
            context,
            instructions,
            Convolution(
                window=window,
                image=data.shape,
                output=output.shape,
                weights=np.ascontiguousarray(weights.transpose(3, 1, 2, 0)),
            ),
            activation=descriptor.activation,
            channel_factors=() if data.dtype.is_float else factors(context.operands, 3),
        )
    step = instructions.lanes if data.dtype.is_float else instructions.vector_elements
    period = data.shape[3] // math.gcd(data.shape[3], step)
    if descriptor.depth_multiplier != 1 or period > MOST_VECTORS:
        return None
    zero_point = 0 if data.dtype.is_float else data.zero_point
    image = Image.for_window(window, data.shape, output.shape, zero_point=zero_point, phases=window.stride_w)
    offsets = [
        image.offset(i * window.dilation_h, j * window.dilation_w)
        for i in range(window.height)
        for j in range(window.width)
    ]
    if data.dtype.is_float:
        return _lower_float(context, instructions, descriptor, image, offsets)
    return _lower_int8(context, instructions, descriptor, image, offsets)


def _lower_int8(
    context: LoweringContext,
    instructions: InstructionSet,
    descriptor: DepthwiseConv2dDescriptor,
    image: Image,
    offsets: list[int],
) -> LoweredOp:
    output, weights = context.operands.output, weights_of(context)
    matrix = weights.reshape(-1, weights.shape[3])
    group = instructions.group
    missing = -len(offsets) % group
    taps = np.zeros((len(offsets) + missing, matrix.shape[1]), np.dtype(f"i{instructions.element_bytes}"))
    taps[: len(offsets)] = matrix
    channels = _repeated(matrix.shape[1], instructions.vector_elements)[:, instructions.order]
    # [taps, vector, part, lane] -> [vector, group of taps, part, lane, tap of the group]
    packed = taps[:, channels].reshape(-1, group, *channels.shape).transpose(2, 0, 3, 4, 1)
    scales = int8_scales(context, matrix.T, factors(context.operands, 3), instructions)
    return kernel_call(
        context,
        f"host_depthwise_s8_{instructions.name}",
        header="host",
        table="host_depthwise_s8_params",
        scratch_bytes=image.scratch_bytes(instructions.element_bytes),
        image=image.value(),
        output_h=output.shape[1],
        row_elements=output.shape[2] * output.shape[3],
        row_step=descriptor.window(context.input(1)).stride_h * image.row_elements,
        taps=len(taps),
        period=len(channels),
        offsets=context.blob("offsets", np.array(offsets + offsets[:1] * missing, np.int32)),
        weights=context.blob("weights", np.ascontiguousarray(packed)),
        scales=context.blob("scales", np.ascontiguousarray(scales[:, channels].transpose(1, 2, 0, 3))),
        output=output_value(output, descriptor.activation),
    )


def _lower_float(
    context: LoweringContext,
    instructions: InstructionSet,
    descriptor: DepthwiseConv2dDescriptor,
    image: Image,
    offsets: list[int],
) -> LoweredOp:
    output, weights = context.operands.output, weights_of(context)
    matrix = weights.reshape(-1, weights.shape[3])
    channels = _repeated(matrix.shape[1], instructions.lanes)
    low, high = float_limits(descriptor.activation)
    return kernel_call(
        context,
        f"host_depthwise_f32_{instructions.name}",
        header="host",
        table="host_depthwise_f32_params",
        scratch_bytes=image.scratch_bytes(4),
        image=image.value(),
        output_h=output.shape[1],
        row_elements=output.shape[2] * output.shape[3],
        row_step=descriptor.window(context.input(1)).stride_h * image.row_elements,
        taps=len(offsets),
        period=len(channels),
        offsets=context.blob("offsets", np.array(offsets, np.int32)),
        weights=context.blob("weights", np.ascontiguousarray(matrix[:, channels].transpose(1, 0, 2))),
        scales=context.blob("scales", np.ascontiguousarray(float_bias(context, matrix.shape[1])[0, channels])),
        low=low,
        high=high,
    )


def _repeated(channels: int, step: int) -> Array:
    """Return the channel of each element of the vectors of a row, [vector, element], until they repeat."""
    period = channels // math.gcd(channels, step)
    return (np.arange(period * step) % channels).reshape(period, step)
