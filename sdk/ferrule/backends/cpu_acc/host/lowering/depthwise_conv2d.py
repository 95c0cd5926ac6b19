# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with the host's vector instructions."""

from __future__ import annotations

import math

import numpy as np

from ferrule.backends.cpu_acc.host.lowering.call import (
    MIN_DEPTHWISE_PRODUCTS,
    PIECES,
    Host,
    float_bias,
    host_call,
    int8_scales,
)
from ferrule.backends.cpu_acc.host.lowering.conv2d import Convolution, as_bytes, lower_products
from ferrule.backends.cpu_acc.host.lowering.image import Image
from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, output_value
from ferrule.backends.cpu_acc.lowering.kernels.generic import weights_of
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import factors, has_zero_point

MOST_VECTORS = 256
"""Weights are repeated until a whole number of vectors is filled; above this number, the portable kernel is better."""


def lower_depthwise_conv2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for int8 or float32 data; None for other types, several outputs per input and a zero point."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    data, output, weights = context.input(0), context.operands.output, weights_of(context)
    if data.dtype not in {DataType.INT8, DataType.FLOAT32} or has_zero_point(context.input(1)):
        return None
    window = descriptor.window(context.input(1))
    if data.shape[3] == 1:
        return lower_products(
            context,
            host,
            Convolution(
                window=window,
                image=data.shape,
                output=output.shape,
                weights=np.ascontiguousarray(weights.transpose(3, 1, 2, 0)),
            ),
            activation=descriptor.activation,
            channel_factors=() if data.dtype.is_float else factors(context.operands, 3),
        )
    step = host.instructions.lanes if data.dtype.is_float else host.instructions.vector_elements
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
        return _lower_float(context, host, descriptor, image, offsets)
    return _lower_int8(context, host, descriptor, image, offsets)


def _lower_int8(
    context: LoweringContext,
    host: Host,
    descriptor: DepthwiseConv2dDescriptor,
    image: Image,
    offsets: list[int],
) -> LoweredOp:
    output, weights = context.operands.output, weights_of(context)
    matrix = weights.reshape(-1, weights.shape[3])
    group = host.instructions.group
    missing = -len(offsets) % group
    taps = np.zeros((len(offsets) + missing, matrix.shape[1]), np.dtype(f"i{host.instructions.element_bytes}"))
    taps[: len(offsets)] = matrix
    channels = _repeated(matrix.shape[1], host.instructions.vector_elements)[:, host.instructions.order]
    # [taps, vector, part, lane] -> [vector, group of taps, part, lane, tap of the group]
    packed = taps[:, channels].reshape(-1, group, *channels.shape).transpose(2, 0, 3, 4, 1)
    found = int8_scales(context, matrix.T, factors(context.operands, 3), descriptor.activation, host.instructions)
    scales, rounding = found.packed(channels)
    members: dict[str, FieldValue] = {
        "taps": len(taps),
        "period": len(channels),
        "offsets": context.blob("offsets", np.array(offsets + offsets[:1] * missing, np.int32)),
        "weights": context.blob("weights", as_bytes(packed)),
        "scales": context.blob("scales", np.ascontiguousarray(scales)),
        "rounding": context.blob("rounding", rounding),
        "output": output_value(output, descriptor.activation),
    }
    return host_call(
        context,
        host,
        "depthwise_s8",
        _common(context, host, descriptor, image) | members,
        scratch_bytes=image.scratch_bytes(host.instructions.element_bytes),
    )


def _lower_float(
    context: LoweringContext,
    host: Host,
    descriptor: DepthwiseConv2dDescriptor,
    image: Image,
    offsets: list[int],
) -> LoweredOp:
    weights = weights_of(context)
    matrix = weights.reshape(-1, weights.shape[3])
    channels = _repeated(matrix.shape[1], host.instructions.lanes)
    low, high = float_limits(descriptor.activation)
    members: dict[str, FieldValue] = {
        "taps": len(offsets),
        "period": len(channels),
        "offsets": context.blob("offsets", np.array(offsets, np.int32)),
        "weights": context.blob("weights", np.ascontiguousarray(matrix[:, channels].transpose(1, 0, 2))),
        "scales": context.blob("scales", np.ascontiguousarray(float_bias(context, matrix.shape[1])[0, channels])),
        "low": low,
        "high": high,
    }
    return host_call(
        context,
        host,
        "depthwise_f32",
        _common(context, host, descriptor, image) | members,
        scratch_bytes=image.scratch_bytes(4),
    )


def _common(
    context: LoweringContext, host: Host, descriptor: DepthwiseConv2dDescriptor, image: Image
) -> dict[str, FieldValue]:
    """Return the members that the int8 and the float32 parameter table have in common."""
    _, height, width, channels = context.operands.output.shape
    window = descriptor.window(context.input(1))
    products = height * width * channels * window.height * window.width
    return {
        "image": image.value(),
        "output_h": height,
        "row_elements": width * channels,
        "row_step": window.stride_h * image.row_elements,
        PIECES: host.pieces(products, MIN_DEPTHWISE_PRODUCTS, height),
    }


def _repeated(channels: int, step: int) -> Array:
    """Return the channel of each element in the vectors of a row, [vector, element], up to where they repeat."""
    period = channels // math.gcd(channels, step)
    return (np.arange(period * step) % channels).reshape(period, step)
