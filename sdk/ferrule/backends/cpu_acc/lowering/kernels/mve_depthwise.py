# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in int8 with vector instructions (MVE), as in `ferrule/kernels/depthwise_conv2d_mve.h`."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels, is_plain
from ferrule.backends.cpu_acc.lowering.kernels.mve import stream
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.overlap import Reads
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
    output, window, count = layer.output.shape, layer.window, layer.image.shape[3]
    if layer.depth_multiplier != 1 or window.height * window.width > _TAPS:
        return f"channels are multiplied, or the window has more than {_TAPS} pixels"
    if count % _WORD:
        return "the channels are not in fours"
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    taps = _taps(channels.matrix)
    if np.abs(taps.astype(np.int64)).reshape(len(taps), -1, 2).sum(axis=2).max() > _LARGEST_PAIR:
        return "the products of two weights may not fit into 16 bits"
    together = _LANES // count if window.stride_w == 1 and _LANES % count == 0 else 1
    general = not is_plain(layer)
    inside = _windows_inside(layer)
    step = (118 + 15 * general) * -(-count * together // _LANES) + 20

    return Candidate(
        kernel="depthwise_conv2d_mve_s8",
        instructions=inside // together * step + (layer.pixels - inside) * (step + 140) + 220 * output[0] * output[1],
        weight_bytes=-(-count * together // _LANES) * _LANES * 18,
        scratch_bytes=count,
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL),
        call=lambda: KernelCall(
            "depthwise_conv2d_mve_s8",
            "ferrule/kernels/depthwise_conv2d_mve.h",
            {
                **layer.image_fields,
                "stream": layer.context.blob("weights", _stream(channels, taps, together)),
                "general": int(general),
                "together": together,
                "output": layer.output_fields,
            },
            sources=("mve_depthwise",),
        ),
    )


def _taps(matrix: Array) -> Array:
    """Return the weights with zeros for missing taps, and one tap more, as [channels, taps]."""
    return filled(matrix, 1, _TAPS + 1)


def _stream(channels: Channels, taps: Array, together: int) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_mve_s8_params`."""
    count = len(taps) * together
    lanes = np.minimum(np.arange(-(-count // _LANES) * _LANES), count - 1) % len(taps)
    ordered = channels.chosen(lanes.reshape(-1, _LANES)[:, _ORDER].reshape(-1))
    return stream(ordered, taps[lanes, :_TAPS].reshape(-1, _LANES, _TAPS).transpose(0, 2, 1), _LANES)


def _windows_inside(layer: Convolution) -> int:
    """Return how many windows are inside the image."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    rows = _inside(window.height, window.stride_h, window.dilation_h, window.padding.top, image[1], output[1])
    columns = _inside(window.width, window.stride_w, window.dilation_w, window.padding.left, image[2], output[2])
    return output[0] * rows * columns


def _inside(kernel: int, stride: int, dilation: int, pad: int, extent: int, count: int) -> int:
    start = np.arange(count) * stride - pad
    return int(np.count_nonzero((start >= 0) & (start + (kernel - 1) * dilation < extent)))


MVE_DEPTHWISE_ROW = weighted_row("depthwise_conv2d_mve_s8", _candidate, Feature.MVE, rules=frozenset({Rounding.TFLM}))
