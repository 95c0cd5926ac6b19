# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of int16 data on cores with the DSP extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.generic import macs_of, weights_of
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import product_matrix
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.activation import Activation
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fixed_point import activation_range, reduced_multiplier
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import factors, is_wide
from ferrule.operators.window import Window

_LARGEST_DATA = 1 << 15
_LARGEST_REACH = 1 << 30
_LARGEST_WIDE_SHIFT = 31
_LARGEST_NARROW_SHIFT = 22
_WIDE_SHIFT = 15
"""A 64-bit accumulator times the reduced multiplier is shifted to the right by this number minus the factor's shift."""


def channel_words(context: LoweringContext, matrix: Array, channel_axis: int, multiple: int) -> Array | str:
    """Return twice the bias, the multiplier and the right shift per channel as int32, or why the sums do not fit.

    The words of additional channels, up to a multiple of `multiple`, are zero. A 64-bit accumulator that fits into 30
    bits is scaled by the high word of its product with a shifted multiplier, which rounds it once, as the reference.
    """
    count = len(matrix)
    bias = context.constant(2)
    offsets = np.zeros(count, np.int64) if bias is None else bias.astype(np.int64).reshape(-1)
    if (np.abs(matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA + np.abs(offsets)).max() >= _LARGEST_REACH:
        return "a sum does not fit into 30 bits"
    found = factors(context.operands, channel_axis)
    multipliers = np.array([factor.multiplier for factor in found], np.int64)
    shifts = np.array([factor.shift for factor in found], np.int64)
    words = np.zeros((-(-count // multiple) * multiple, 3), np.int64)
    words[:count, 0] = 2 * offsets
    if is_wide(context.operands):
        right = _WIDE_SHIFT - shifts
        if right.min() < _WIDE_SHIFT or right.max() > _LARGEST_WIDE_SHIFT:
            return "an output is scaled up or by less than 2**-16"
        words[:count, 1] = reduced_multiplier(multipliers) << (_LARGEST_WIDE_SHIFT - right)
    else:
        if shifts.max() > -1 or shifts.min() < -_LARGEST_NARROW_SHIFT:
            return "an output is scaled by 1/2 or more, or by less than 2**-22"
        words[:count, 1], words[:count, 2] = multipliers, -shifts
    scaled: Array = words.reshape(-1).astype(np.int32)
    return scaled


def _convolution(context: LoweringContext) -> Candidate | str:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        return "the layer is not a CONV_2D"
    window = descriptor.window(context.input(1))
    return _candidate(context, window, context.input(0), context.operands.output, descriptor.activation)


def _fully_connected(context: LoweringContext) -> Candidate | str:
    """Return the convolution over an image of one column, which is equivalent."""
    descriptor, data, output = context.layer.descriptor, context.input(0), context.operands.output
    if not isinstance(descriptor, FullyConnectedDescriptor):
        return "the layer is not a FULLY_CONNECTED"
    channels, products = weights_of(context).shape
    rows = data.elements // products
    window = Window(height=1, width=1, stride_h=1, stride_w=1)
    image, result = _column(data, rows, products), _column(output, rows, channels)
    return _candidate(context, window, image, result, descriptor.activation)


def _column(info: TensorInfo, rows: int, channels: int) -> TensorInfo:
    return TensorInfo(name=info.name, shape=(rows, 1, 1, channels), dtype=info.dtype, quantization=info.quantization)


def _candidate(
    context: LoweringContext, window: Window, image: TensorInfo, output: TensorInfo, activation: Activation
) -> Candidate | str:
    if image.dtype is not DataType.INT16:
        return "the data is not int16"
    matrix = product_matrix(context.layer, weights_of(context))
    scales = channel_words(context, matrix, 0, 2)
    if isinstance(scales, str):
        return scales
    words = -(-matrix.shape[1] // 8) * 2
    weights = _interleaved(matrix, words)
    pixels = output.elements // output.shape[3]
    low, high = activation_range(activation, output)

    def lower() -> LoweredOp:
        return kernel_call(
            context,
            "conv2d_dual_s16",
            header="dual_s16",
            scratch_bytes=16 * words,
            overlaps=pixel_overlaps(context, window, image, output, pixels=2),
            window=window_value(window, image, output),
            output_c=output.shape[3],
            words=words,
            weights=context.blob("weights", weights),
            channels=context.blob("channels", scales),
            twice=not is_wide(context.operands),
            low=low,
            high=high,
        )

    return Candidate(
        kernel="conv2d_dual_s16",
        instructions=int(1.1 * macs_of(context)) + 24 * output.elements + 3 * pixels * matrix.shape[1],
        weight_bytes=weights.nbytes + scales.nbytes,
        scratch_bytes=16 * words,
        lower=lower,
    )


def _depthwise(context: LoweringContext) -> Candidate | str:
    descriptor, image, output = context.layer.descriptor, context.input(0), context.operands.output
    if image.dtype is not DataType.INT16 or not isinstance(descriptor, DepthwiseConv2dDescriptor):
        return "the data is not int16"
    window = descriptor.window(context.input(1))
    if window.width != 3 or descriptor.depth_multiplier != 1 or image.shape[3] % 2:
        return "the window is not 3 pixels wide, or the channels are multiplied or odd"
    matrix = product_matrix(context.layer, weights_of(context))
    scales = channel_words(context, matrix, 3, 2)
    if isinstance(scales, str):
        return scales
    weights = _by_rows(matrix)
    low, high = activation_range(descriptor.activation, output)

    def lower() -> LoweredOp:
        return kernel_call(
            context,
            "depthwise_conv2d_dual_s16",
            header="dual_s16",
            overlaps=_pair_overlaps(context, window, image, output),
            window=window_value(window, image, output),
            weights=context.blob("weights", weights),
            channels=context.blob("channels", scales),
            low=low,
            high=high,
        )

    return Candidate(
        kernel="depthwise_conv2d_dual_s16",
        instructions=int(2.5 * macs_of(context)) + 14 * output.elements,
        weight_bytes=weights.nbytes + scales.nbytes,
        lower=lower,
    )


def _pair_overlaps(
    context: LoweringContext, window: Window, image: TensorInfo, output: TensorInfo
) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that computes a pixel along with its neighbour, channel by channel.

    Its neighbour is written before the window of the pixel is read in full, so the distance is larger by the step from
    one window to the next.
    """
    step = window.stride_w * image.shape[3] * image.dtype.size_bytes
    single = pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL)
    return tuple(
        replace(each, distance_bytes=each.distance_bytes + step) for each in single if each.distance_bytes is not None
    )


def _by_rows(matrix: Array) -> Array:
    """Return the weights of windows 3 pixels wide as int32: two words per two channels and row of the window.

    The first has pixels 0 and 1 of the first channel, then of the second; the other one has pixel 2 of both.
    """
    pairs = matrix.reshape(len(matrix) // 2, 2, -1, 3).transpose(0, 2, 1, 3)  # [pair, row, channel, pixel]
    rows = np.zeros((*pairs.shape[:2], 2, 2, 2), np.int8)  # [pair, row, word, channel, half]
    rows[:, :, 0] = pairs[..., :2]
    rows[:, :, 1, :, 0] = pairs[..., 2]
    packed: Array = rows.reshape(-1, 4).view("<i4").reshape(-1).astype(np.int32)
    return packed


def _interleaved(matrix: Array, words: int) -> Array:
    """Return the weights as int32 words of four products, 0, 2, 1 and 3, for two channels by turns."""
    channels, products = matrix.shape
    whole = np.zeros((-(-channels // 2) * 2, 4 * words), np.int8)
    whole[:channels, :products] = matrix
    # [pair, channel, word, product] -> [pair, word, channel, product]
    split = whole.reshape(-1, 2, words, 4)[..., [0, 2, 1, 3]].transpose(0, 2, 1, 3)
    packed: Array = np.ascontiguousarray(split).view("<i4").reshape(-1).astype(np.int32)
    return packed


def _row(kernel: str, candidate: Callable[[LoweringContext], Candidate | str]) -> Row:
    return Row(kernel=kernel, needs=frozenset({Feature.DSP}), candidate=candidate)


CONV_2D_DUAL_S16 = _row("conv2d_dual_s16", _convolution)
FULLY_CONNECTED_DUAL_S16 = _row("conv2d_dual_s16", _fully_connected)
DEPTHWISE_CONV_2D_DUAL_S16 = _row("depthwise_conv2d_dual_s16", _depthwise)
