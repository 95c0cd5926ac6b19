# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with any window on cores with the DSP extension, two taps of four channels at a time."""

from __future__ import annotations

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.generic import ruled_kernel, ruled_part
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, channel_words, int8_channels
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES

_POINTER_BYTES = 8
"""At most: 4 on the cores that have the DSP extension, 8 on the host, where the tests run."""


def _taps(context: LoweringContext) -> Candidate | str:
    descriptor, image, output = context.layer.descriptor, context.input(0), context.operands.output
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    if descriptor.depth_multiplier != 1:
        return "channels are multiplied"
    channels = int8_channels(context, descriptor.activation, 3)
    if not can_scale(channels, output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    taps = channels.matrix.shape[1]
    weights = tap_words(channels.matrix)
    scratch = _POINTER_BYTES * (taps + taps % 2) + image.shape[3]
    pixels = output.elements // output.shape[3]
    return Candidate(
        kernel="depthwise_conv2d_taps_s8",
        instructions=output.elements * (26 * taps + 330) // 10 + pixels * 9 * taps,
        weight_bytes=weights.nbytes + 12 * image.shape[3],
        scratch_bytes=scratch,
        lower=lambda: _lower(context, descriptor, channels, weights, scratch),
    )


def _lower(
    context: LoweringContext, descriptor: DepthwiseConv2dDescriptor, channels: Channels, weights: Array, scratch: int
) -> LoweredOp:
    image, output, window = context.input(0), context.operands.output, descriptor.window(context.input(1))
    kernel = ruled_kernel(context, "depthwise_conv2d_taps")
    return kernel_call(
        context,
        kernel,
        contribution=ruled_part(context, kernel),
        header="depthwise_conv2d",
        table="depthwise_conv2d_taps_s8_params",
        scratch_bytes=scratch,
        scratch_alignment=_POINTER_BYTES,
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
        window=window_value(window, image, output),
        input_zero_point=image.zero_point,
        weights=context.blob("weights", weights),
        scales=context.blob("scales", channel_words(channels, 1)),
        output=output_value(output, descriptor.activation),
    )


def tap_words(matrix: Array) -> Array:
    """Return weights [channels, taps] as the C has them: bytes a0, a1, b0, b1, a2, a3, b2, b3 per two taps a and b."""
    channels, taps = matrix.shape
    whole = np.zeros((-(-channels // 4) * 4, taps + taps % 2), np.int8)
    whole[:channels, :taps] = matrix
    # [groups, half, channel of the half, pairs, tap of the pair] -> [groups, pairs, half, tap, channel]
    split = whole.reshape(-1, 2, 2, whole.shape[1] // 2, 2).transpose(0, 3, 1, 4, 2)
    return np.ascontiguousarray(split).reshape(-1).view("<i4").astype(np.int32)


TAPS_ROW = Row(kernel="depthwise_conv2d_taps_s8", needs=frozenset({Feature.DSP}), rules=WEIGHTED_RULES, candidate=_taps)
"""The kernel for any window."""
