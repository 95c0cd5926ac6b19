# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED with weights of two output channels in one number (`ferrule/kernels/paired.h`)."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    SLOWER_WITHOUT_DSP,
    Candidate,
    Feature,
    has_dsp,
    weighted_row,
)
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    channel_words,
    int8_channels,
    pair_weights,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled

NOT_PAIRED = "a weight or a sum is too large to be paired, or an output is scaled up"


def _conv2d(layer: Convolution) -> Candidate | str:
    if not has_dsp(layer.context.target.core):
        return SLOWER_WITHOUT_DSP
    return paired_conv2d(int8_channels(layer).live)


def paired_conv2d(channels: Channels) -> Candidate | str:
    """Return the kernel for some channels of a CONV_2D of int8; or why it cannot compute them."""
    if not can_pair(channels):
        return NOT_PAIRED
    layer, (count, products) = channels.layer, channels.matrix.shape
    whole_words = layer.image.shape[3] % 4 == 0
    words = -(-products // 4)
    window = layer.window
    gather = 20 * words + 80 if whole_words else 90 * words
    if not window.is_pointwise:
        gather += 50 * window.height + 110 if whole_words else 0
    if window.dilation_w > 1:
        gather += 90 * window.height * window.width
    return Candidate(
        kernel="conv2d_paired_s8",
        instructions=-(-layer.pixels // 2) * (-(-count // 2) * (15 * words + 46) + gather),
        weight_bytes=count * products + 14 * count,
        scratch_bytes=words * (16 if whole_words else 20),
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: _conv2d_call(channels),
    )


def _conv2d_call(channels: Channels) -> KernelCall:
    layer, matrix = channels.layer, channels.matrix
    used = used_inputs(matrix, 4) if layer.window.is_pointwise else None
    if used is not None:
        matrix = matrix[:, used]
    words = max(-(-matrix.shape[1] // 4), 1)
    by_words = layer.image.shape[3] % 4 == 0 or used is not None
    return KernelCall(
        "conv2d_1x1_paired" if layer.window.is_pointwise and by_words else "conv2d_paired",
        "ferrule/kernels/conv2d.h",
        {
            **layer.image_fields,
            "inputs": None if used is None else filled(used, 4).astype(np.int16),
            "paired": {
                "weights": pair_weights(matrix, 2),
                "channels": channel_words(channels, 2),
                "positions": filled(channels.places, 1).astype(np.int16),
                "fixed": channels.fixed_pixel,
                "words": words,
                "live_c": len(matrix),
                "output_c": layer.output.shape[3],
                "output": layer.output_fields,
            },
        },
        table="conv2d_paired_s8_params",
        scratch_bytes=words * (16 if by_words else 20),
        ruled=True,
    )


def _fully_connected(layer: Convolution) -> Candidate | str:
    if not has_dsp(layer.context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(layer)
    if not can_pair(channels):
        return NOT_PAIRED
    count, products = channels.matrix.shape
    words = -(-products // 4)
    row = -(-count // 4) * (17 * words + 48) + 18.5 * count + 5 * words + 100

    return Candidate(
        kernel="fully_connected_paired_s8",
        instructions=round(row * layer.pixels),
        weight_bytes=-(-count // 4) * 4 * (words * 4 + 12),
        scratch_bytes=8 * words,
        overlaps=layer.overlaps,
        call=lambda: KernelCall(
            "fully_connected_paired",
            "ferrule/kernels/fully_connected.h",
            {
                "rows": layer.pixels,
                "input_c": products,
                "output_c": count,
                "words": words,
                "weights": pair_weights(channels.matrix, 4),
                "channels": channel_words(channels, 4),
                "output": layer.output_fields,
            },
            ruled=True,
        ),
    )


CONV_2D_PAIRED = weighted_row("conv2d_paired_s8", _conv2d, Feature.LONG_MULTIPLY)
FULLY_CONNECTED_PAIRED = weighted_row("fully_connected_paired_s8", _fully_connected, Feature.LONG_MULTIPLY)
