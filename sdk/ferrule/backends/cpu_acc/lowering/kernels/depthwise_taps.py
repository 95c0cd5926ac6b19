# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with any window on cores with the DSP extension, two taps of four channels at a time."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    can_scale,
    channel_words,
    has_full_range,
    int8_channels,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.kernels.proved_channels import proved_scales
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.graph import Array, Rounding

_POINTER_BYTES = 8
"""At most: 4 on the cores that have the DSP extension, 8 on the host, where the tests run."""
_FEW_TAPS = 3
_FEW_OUTPUTS = 16
"""Of a channel and all images; for more, the kernels of lines share what they load among neighbouring outputs."""


def _taps(layer: Convolution) -> Candidate | str:
    if layer.depth_multiplier != 1:
        return "channels are multiplied"
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    taps, weights = channels.matrix.shape[1], tap_words(channels.matrix)
    # four channels at a time are stored from registers by TFLM's rule, unless they are clamped
    count = len(channels.matrix)
    fours = count // 4 * 4 if channels.rounding is Rounding.TFLM and has_full_range(layer) else 0

    return Candidate(
        kernel="depthwise_conv2d_taps_s8",
        instructions=layer.pixels * (fours * (24 * taps + 190) + (count - fours) * (26 * taps + 330) + 90 * taps) // 10,
        weight_bytes=weights.nbytes + 12 * layer.image.shape[3],
        scratch_bytes=_POINTER_BYTES * (taps + taps % 2) + layer.image.shape[3],
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL),
        call=lambda: KernelCall(
            "depthwise_conv2d_taps",
            "ferrule/kernels/depthwise_conv2d.h",
            {
                **layer.image_fields,
                "weights": weights,
                "scales": channel_words(channels, 1),
                "output": layer.output_fields,
            },
            scratch_alignment=_POINTER_BYTES,
            ruled=True,
        ),
    )


def _proved(layer: Convolution) -> Candidate | str:
    if layer.depth_multiplier != 1:
        return "channels are multiplied"
    if layer.window.height * layer.window.width > _FEW_TAPS and layer.pixels > _FEW_OUTPUTS:
        return "other kernels are better for many taps and outputs"
    channels = int8_channels(layer)
    found = proved_scales(channels)
    if found is None or not found[1].all():
        return "the output is clamped to less than int8, or a channel has no proved constants"
    scales = found[0]
    count, taps = channels.matrix.shape
    pairs = (taps + 1) // 2
    rest = 1000 * pairs + 600 if count % 4 else 0

    return Candidate(
        kernel="depthwise_conv2d_taps_proved_s8",
        instructions=layer.pixels * (count // 4 * (160 * pairs + 220) + rest + 70 * taps + 1100) // 10 + 100,
        weight_bytes=4 * (count + -count % 4) * (pairs + 2),
        scratch_bytes=2 * _POINTER_BYTES * pairs + count,
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL),
        call=lambda: KernelCall(
            "depthwise_conv2d_taps_proved_s8",
            "ferrule/kernels/depthwise_conv2d.h",
            {
                **layer.image_fields,
                "weights": proved_words(channels.matrix, scales),
                "scales": None,
                "output": layer.output_fields,
            },
            table="depthwise_conv2d_taps_s8_params",
            scratch_alignment=_POINTER_BYTES,
        ),
    )


def proved_words(matrix: Array, scales: Array) -> Array:
    """Return weights [channels, taps] and proved scales as the C has them, which `proved_scales` describes."""
    multipliers, biases = filled(scales, 4, 2).reshape(-1, 1, 4, 2).transpose(3, 0, 1, 2)
    factors = np.where(multipliers < 0, 1 << 7, 1 << 8).reshape(-1, 4, 1, 1)
    whole = filled(matrix.astype(np.int32), 4, 2)
    # [groups, channel, pairs, tap of the pair] -> [groups, pairs, channel, tap]
    pairs = (whole.reshape(-1, 4, whole.shape[1] // 2, 2) * factors).transpose(0, 2, 1, 3).astype(np.int16)
    products = words(pairs).reshape(len(pairs), -1, 4)
    return np.concatenate([biases, products, multipliers & 0x7FFFFFFF], axis=1).reshape(-1).astype(np.int32)


def tap_words(matrix: Array) -> Array:
    """Return weights [channels, taps] as the C has them: bytes a0, a1, b0, b1, a2, a3, b2, b3 per two taps a and b."""
    whole = filled(matrix, 4, 2)
    # [groups, half, channel of the half, pairs, tap of the pair] -> [groups, pairs, half, tap, channel]
    return words(whole.reshape(-1, 2, 2, whole.shape[1] // 2, 2).transpose(0, 3, 1, 4, 2))


TAPS_ROW = weighted_row("depthwise_conv2d_taps_s8", _taps, Feature.DSP)
"""The kernel for any window."""
PROVED_TAPS_ROW = weighted_row("depthwise_conv2d_taps_proved_s8", _proved, Feature.DSP)
"""The same with proved constants and widened weights."""
