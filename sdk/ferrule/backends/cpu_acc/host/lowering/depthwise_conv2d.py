# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with the host's vector instructions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ferrule.backends.cpu_acc.host.lowering.call import (
    HEADER,
    MIN_DEPTHWISE_PRODUCTS,
    PIECES,
    POOL,
    Host,
    host_call,
    int8_scales,
)
from ferrule.backends.cpu_acc.host.lowering.conv2d import as_bytes, lower_products
from ferrule.backends.cpu_acc.host.lowering.image import Image
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, weights_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import Array, DataType
from ferrule.operators.weighted.products import has_zero_point

MOST_VECTORS = 256
"""Weights are repeated until a whole number of vectors is filled; above this number, the portable kernel is better."""


def lower_depthwise_conv2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for int8 or float32 data; None for other types, several outputs per input and a zero point."""
    layer, weights = Convolution.of(context), weights_of(context)
    data, window, is_float = layer.image, layer.window, layer.image.dtype.is_float
    if data.dtype not in {DataType.INT8, DataType.FLOAT32} or has_zero_point(context.input(1)):
        return None
    if data.shape[3] == 1:  # each output channel reads the same windows, as in CONV_2D
        return lower_products(layer, host, np.ascontiguousarray(weights.transpose(3, 1, 2, 0)))
    instructions = host.instructions
    step = instructions.lanes if is_float else instructions.vector_elements
    if layer.depth_multiplier != 1 or data.shape[3] // math.gcd(data.shape[3], step) > MOST_VECTORS:
        return None
    zero_point = 0 if is_float else data.zero_point
    image = Image.for_window(window, data.shape, layer.output.shape, zero_point=zero_point, phases=window.stride_w)
    _, height, width, count = layer.output.shape
    matrix, offsets = weights.reshape(-1, count), image.offsets(window)
    channels = _repeated(count, step)
    members: Mapping[str, Member]
    if is_float:
        kernel, element_bytes, taps = "depthwise_f32", 4, len(offsets)
        members = {
            "offsets": offsets,
            "weights": matrix[:, channels].transpose(1, 0, 2),
            "scales": layer.bias(np.float32)[channels],
            **limit_fields(layer.output, layer.activation),
        }
    else:
        kernel, element_bytes, group = "depthwise_s8", instructions.element_bytes, instructions.group
        missing = -len(offsets) % group
        taps = len(offsets) + missing
        padded = np.pad(matrix, ((0, missing), (0, 0))).astype(np.dtype(f"i{element_bytes}"))
        channels = channels[:, instructions.order]
        # [taps, vector, part, lane] -> [vector, group of taps, part, lane, tap of the group]
        packed = padded[:, channels].reshape(-1, group, *channels.shape).transpose(2, 0, 3, 4, 1)
        scales, rounding = int8_scales(layer, matrix.T, instructions).packed(channels)
        members = {
            "offsets": np.append(offsets, offsets[:1].repeat(missing)),
            "weights": as_bytes(packed),
            "scales": scales,
            "rounding": rounding,
            "output": layer.output_fields,
        }
    products = height * width * count * window.height * window.width
    common: Mapping[str, Member] = {
        "image": image.fields(),
        "output_h": height,
        "row_elements": width * count,
        "row_step": window.stride_h * image.row_elements,
        PIECES: host.pieces(products, MIN_DEPTHWISE_PRODUCTS, height),
        "taps": taps,
        "period": len(channels),
    }
    scratch_bytes = image.scratch_bytes(element_bytes)
    call = KernelCall(kernel, HEADER, {**common, **members}, scratch_bytes=scratch_bytes, further=(POOL,))
    return host_call(context, host, call)


def _repeated(channels: int, step: int) -> Array:
    """Return the channel of each element in the vectors of a row, [vector, element], up to where they repeat."""
    period = channels // math.gcd(channels, step)
    return (np.arange(period * step) % channels).reshape(period, step)
