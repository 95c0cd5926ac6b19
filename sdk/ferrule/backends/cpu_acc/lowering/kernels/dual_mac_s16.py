# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of int16 data on cores with the DSP extension."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import product_matrix
from ferrule.graph import Array, DataType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.fixed_point import factor_arrays, reduced_multiplier
from ferrule.operators.weighted.products import is_wide

_HEADER = "ferrule/kernels/dual_s16.h"
_LARGEST_DATA = 1 << 15
_LARGEST_REACH = 1 << 30
_LARGEST_WIDE_SHIFT = 31
_LARGEST_NARROW_SHIFT = 22
_WIDE_SHIFT = 15
"""A 64-bit accumulator times the reduced multiplier is shifted to the right by this number minus the factor's shift."""


def _scales(layer: Convolution, matrix: Array) -> Array | str:
    """Return twice the bias, the multiplier and the right shift per channel as int32, or why the sums do not fit.

    The words of an additional channel, up to an even number, are zero. A 64-bit accumulator that fits into 30
    bits is scaled by the high word of its product with a shifted multiplier, which rounds it once, as the reference.
    """
    count = len(matrix)
    offsets = layer.bias(np.int64)
    if (np.abs(matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA + np.abs(offsets)).max() >= _LARGEST_REACH:
        return "a sum does not fit into 30 bits"
    multipliers, shifts = factor_arrays(layer.factors())
    scales = np.zeros((count + count % 2, 3), np.int64)
    scales[:count, 0] = 2 * offsets
    if is_wide(layer.context.operands):
        right = _WIDE_SHIFT - shifts
        if right.min() < _WIDE_SHIFT or right.max() > _LARGEST_WIDE_SHIFT:
            return "an output is scaled up or by less than 2**-16"
        scales[:count, 1] = reduced_multiplier(multipliers) << (_LARGEST_WIDE_SHIFT - right)
    else:
        if shifts.max() > -1 or shifts.min() < -_LARGEST_NARROW_SHIFT:
            return "an output is scaled by 1/2 or more, or by less than 2**-22"
        scales[:count, 1], scales[:count, 2] = multipliers, -shifts
    return scales.reshape(-1).astype(np.int32)


def _convolution(layer: Convolution) -> Candidate | str:
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    scales = _scales(layer, matrix)
    if isinstance(scales, str):
        return scales
    groups = -(-matrix.shape[1] // 8) * 2
    weights = _interleaved(matrix)

    return Candidate(
        kernel="conv2d_dual_s16",
        instructions=int(1.1 * layer.macs) + 24 * layer.output.elements + 3 * layer.pixels * matrix.shape[1],
        weight_bytes=weights.nbytes + scales.nbytes,
        scratch_bytes=16 * groups,
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: KernelCall(
            "conv2d_dual_s16",
            _HEADER,
            {
                "window": layer.window_fields,
                "output_c": layer.output.shape[3],
                "words": groups,
                "weights": weights,
                "channels": scales,
                "twice": not is_wide(layer.context.operands),
                **limit_fields(layer.output, layer.activation),
            },
        ),
    )


def _depthwise(layer: Convolution) -> Candidate | str:
    if layer.window.width != 3 or layer.depth_multiplier != 1 or layer.image.shape[3] % 2:
        return "the window is not 3 pixels wide, or the channels are multiplied or odd"
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    scales = _scales(layer, matrix)
    if isinstance(scales, str):
        return scales
    weights = _by_rows(matrix)

    return Candidate(
        kernel="depthwise_conv2d_dual_s16",
        instructions=int(2.5 * layer.macs) + 14 * layer.output.elements,
        weight_bytes=weights.nbytes + scales.nbytes,
        overlaps=partial(_pair_overlaps, layer),
        call=lambda: KernelCall(
            "depthwise_conv2d_dual_s16",
            _HEADER,
            {
                "window": layer.window_fields,
                "weights": weights,
                "channels": scales,
                **limit_fields(layer.output, layer.activation),
            },
        ),
    )


def _pair_overlaps(layer: Convolution) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that computes a pixel along with its neighbour, channel by channel.

    Its neighbour is written before the window of the pixel is read in full, so the distance is larger by the step from
    one window to the next.
    """
    step = layer.window.stride_w * layer.image.shape[3] * layer.image.dtype.size_bytes
    return tuple(
        replace(each, distance_bytes=each.distance_bytes + step)
        for each in layer.overlaps(reads=Reads.PER_CHANNEL)
        if each.distance_bytes is not None
    )


def _by_rows(matrix: Array) -> Array:
    """Return the weights of windows 3 pixels wide as int32: two words per two channels and row of the window.

    The first has pixels 0 and 1 of the first channel, then of the second; the other one has pixel 2 of both.
    """
    pairs = matrix.reshape(len(matrix) // 2, 2, -1, 3).transpose(0, 2, 1, 3)  # [pair, row, channel, pixel]
    rows = np.zeros((*pairs.shape[:2], 2, 2, 2), np.int8)  # [pair, row, word, channel, half]
    rows[:, :, 0] = pairs[..., :2]
    rows[:, :, 1, :, 0] = pairs[..., 2]
    return words(rows)


def _interleaved(matrix: Array) -> Array:
    """Return the weights as int32 words of four products, 0, 2, 1 and 3, for two channels by turns."""
    whole = filled(matrix, 2, 8)
    # [pair, channel, word, product] -> [pair, word, channel, product]
    return words(whole.reshape(-1, 2, whole.shape[1] // 4, 4)[..., [0, 2, 1, 3]].transpose(0, 2, 1, 3))


_TFLM = frozenset({Rounding.TFLM})
CONV_2D_DUAL_S16 = weighted_row("conv2d_dual_s16", _convolution, Feature.DSP, rules=_TFLM, dtype=DataType.INT16)
"""The kernel of FULLY_CONNECTED, too."""
DEPTHWISE_CONV_2D_DUAL_S16 = weighted_row(
    "depthwise_conv2d_dual_s16", _depthwise, Feature.DSP, rules=_TFLM, dtype=DataType.INT16
)
