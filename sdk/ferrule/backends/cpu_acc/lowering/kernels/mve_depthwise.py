# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in int8 with vector instructions (MVE), as in `ferrule/kernels/depthwise_conv2d_mve.h`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.kernels.mve import TOO_LARGE, is_plain, words
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.window import Window

_LANES = 16
_WORD = 4
"""Lanes that share a word of the sums: a loop with tail predication would write only a part of it."""
_TAPS = 9
_LARGEST_PAIR = 255
"""The largest sum of the magnitudes of two weights whose products sum to less than 2**15."""
_ORDER = (0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15)
"""The order of biases, multipliers and shifts of 16 channels."""


def _candidate(context: LoweringContext) -> Candidate | str:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    image, output = context.input(0), context.operands.output
    window = descriptor.window(context.input(1))
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    if descriptor.depth_multiplier != 1 or window.height * window.width > _TAPS:
        return f"channels are multiplied, or the window has more than {_TAPS} pixels"
    if image.shape[3] % _WORD:
        return "the channels are not in fours"
    channels = int8_channels(context, descriptor.activation, 3)
    if not can_scale(channels, output, descriptor.activation):
        return TOO_LARGE
    taps = _taps(channels.matrix)
    if np.abs(taps.astype(np.int64)).reshape(len(taps), -1, 2).sum(axis=2).max() > _LARGEST_PAIR:
        return "the products of two weights may not fit into 16 bits"
    count = image.shape[3]
    together = _LANES // count if window.stride_w == 1 and _LANES % count == 0 else 1
    general = not is_plain(output, descriptor.activation)
    inside, border = _pixels(window, image.shape, output.shape)
    step = (118 + 15 * general) * -(-count * together // _LANES) + 20
    return Candidate(
        kernel="depthwise_conv2d_mve_s8",
        instructions=inside // together * step + border * (step + 140) + 220 * output.shape[0] * output.shape[1],
        weight_bytes=-(-count * together // _LANES) * _LANES * 18,
        scratch_bytes=count,
        lower=lambda: _lower(context, descriptor, replace(channels, matrix=taps), window, together),
    )


def _lower(
    context: LoweringContext,
    descriptor: DepthwiseConv2dDescriptor,
    channels: Channels,
    window: Window,
    together: int,
) -> LoweredOp:
    image, output = context.input(0), context.operands.output
    return kernel_call(
        context,
        "depthwise_conv2d_mve_s8",
        header="depthwise_conv2d_mve",
        scratch_bytes=image.shape[3],
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
        contribution=KERNELS.part("depthwise_conv2d_mve_s8", "mve_depthwise"),
        window=window_value(window, image, output),
        input_zero_point=image.zero_point,
        stream=context.blob("weights", _stream(channels, together)),
        general=int(not is_plain(output, descriptor.activation)),
        together=together,
        output=output_value(output, descriptor.activation),
    )


def _taps(matrix: Array) -> Array:
    """Return the weights with zeros for missing taps, and one tap more, as [channels, taps]."""
    taps = np.zeros((len(matrix), _TAPS + 1), np.int8)
    taps[:, : matrix.shape[1]] = matrix
    return taps


def _stream(channels: Channels, together: int) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_mve_s8_params`."""
    count = len(channels.matrix) * together
    lanes = np.minimum(np.arange(-(-count // _LANES) * _LANES), count - 1) % len(channels.matrix)
    order = lanes.reshape(-1, _LANES)[:, _ORDER]
    taps = channels.matrix[lanes, :_TAPS].reshape(-1, _LANES, _TAPS).transpose(0, 2, 1)
    multipliers = np.array([factor.multiplier for factor in channels.factors], "<i4")
    shifts = np.array([factor.shift for factor in channels.factors], np.int8)
    parts = [
        words(channels.bias.astype("<i4")[order], _LANES),
        words(np.ascontiguousarray(taps), _TAPS * _LANES),
        words(multipliers[order], _LANES),
        words(shifts[order], _LANES),
    ]
    joined: Array = np.concatenate(parts, axis=1).reshape(-1)
    return joined


def _pixels(window: Window, image: tuple[int, ...], output: tuple[int, ...]) -> tuple[int, int]:
    """Return how many windows are inside the image, and how many are not."""
    rows = _inside(window.height, window.stride_h, window.dilation_h, window.padding.top, image[1], output[1])
    columns = _inside(window.width, window.stride_w, window.dilation_w, window.padding.left, image[2], output[2])
    inside = output[0] * rows * columns
    return inside, output[0] * output[1] * output[2] - inside


def _inside(kernel: int, stride: int, dilation: int, pad: int, extent: int, count: int) -> int:
    start = np.arange(count) * stride - pad
    return int(np.count_nonzero((start >= 0) & (start + (kernel - 1) * dilation < extent)))


MVE_DEPTHWISE_ROW = Row(kernel="depthwise_conv2d_mve_s8", needs=frozenset({Feature.MVE}), candidate=_candidate)
