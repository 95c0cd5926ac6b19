# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in int8 with vector instructions (MVE), as in `ferrule/kernels/depthwise_conv2d_mve.h`."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, int8_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels, is_plain
from ferrule.backends.cpu_acc.lowering.kernels.mve import words
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.requantization import factor_arrays
from ferrule.backends.firmware import LoweredOp
from ferrule.graph import Array, Rounding

_LANES = 16
_WORD = 4
"""Lanes that share a word of the sums: a loop with tail predication would write only a part of it."""
_TAPS = 9
_LARGEST_PAIR = 255
"""The largest sum of the magnitudes of two weights whose products sum to less than 2**15."""
_ORDER = (0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15)
"""The order of biases, multipliers and shifts of 16 channels."""


def _candidate(layer: Convolution) -> Candidate | str:
    context, output, window, count = layer.context, layer.output.shape, layer.window, layer.image.shape[3]
    if layer.depth_multiplier != 1 or window.height * window.width > _TAPS:
        return f"channels are multiplied, or the window has more than {_TAPS} pixels"
    if count % _WORD:
        return "the channels are not in fours"
    channels = int8_channels(layer)
    if not can_scale(channels, layer):
        return TOO_LARGE
    taps = _taps(channels.matrix)
    if np.abs(taps.astype(np.int64)).reshape(len(taps), -1, 2).sum(axis=2).max() > _LARGEST_PAIR:
        return "the products of two weights may not fit into 16 bits"
    together = _LANES // count if window.stride_w == 1 and _LANES % count == 0 else 1
    general = not is_plain(layer)
    inside = _windows_inside(layer)
    step = (118 + 15 * general) * -(-count * together // _LANES) + 20

    def lower() -> LoweredOp:
        return KernelCall(
            "depthwise_conv2d_mve_s8",
            "ferrule/kernels/depthwise_conv2d_mve.h",
            {
                "window": layer.window_fields,
                "input_zero_point": layer.image.zero_point,
                "stream": context.blob("weights", _stream(channels, taps, together)),
                "general": int(general),
                "together": together,
                "output": layer.output_fields,
            },
            scratch_bytes=count,
            sources=("mve_depthwise",),
        ).lowered(context)

    return Candidate(
        kernel="depthwise_conv2d_mve_s8",
        instructions=inside // together * step + (layer.pixels - inside) * (step + 140) + 220 * output[0] * output[1],
        weight_bytes=-(-count * together // _LANES) * _LANES * 18,
        scratch_bytes=count,
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL),
        lower=lower,
    )


def _taps(matrix: Array) -> Array:
    """Return the weights with zeros for missing taps, and one tap more, as [channels, taps]."""
    taps = np.zeros((len(matrix), _TAPS + 1), np.int8)
    taps[:, : matrix.shape[1]] = matrix
    return taps


def _stream(channels: Channels, taps: Array, together: int) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_mve_s8_params`."""
    count = len(taps) * together
    lanes = np.minimum(np.arange(-(-count // _LANES) * _LANES), count - 1) % len(taps)
    order = lanes.reshape(-1, _LANES)[:, _ORDER]
    multipliers, shifts = factor_arrays(channels.factors)
    parts = [
        words(channels.bias.astype("<i4")[order], _LANES),
        words(taps[lanes, :_TAPS].reshape(-1, _LANES, _TAPS).transpose(0, 2, 1), _TAPS * _LANES),
        words(multipliers.astype("<i4")[order], _LANES),
        words(shifts.astype(np.int8)[order], _LANES),
    ]
    joined: Array = np.concatenate(parts, axis=1).reshape(-1)
    return joined


def _windows_inside(layer: Convolution) -> int:
    """Return how many windows are inside the image."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    rows = _inside(window.height, window.stride_h, window.dilation_h, window.padding.top, image[1], output[1])
    columns = _inside(window.width, window.stride_w, window.dilation_w, window.padding.left, image[2], output[2])
    return output[0] * rows * columns


def _inside(kernel: int, stride: int, dilation: int, pad: int, extent: int, count: int) -> int:
    start = np.arange(count) * stride - pad
    return int(np.count_nonzero((start >= 0) & (start + (kernel - 1) * dilation < extent)))


MVE_DEPTHWISE_ROW = int8_row("depthwise_conv2d_mve_s8", _candidate, Feature.MVE, rules=frozenset({Rounding.TFLM}))
