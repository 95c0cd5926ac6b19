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
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, rule_sources
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    channel_words,
    int8_channels,
    pair_weights,
    positions,
    used_inputs,
)
from ferrule.graph import Array

NOT_PAIRED = "a weight or a sum is too large to be paired, or an output is scaled up"


def _conv2d(layer: Convolution) -> Candidate | str:
    if not has_dsp(layer.context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(layer)
    return paired_conv2d(layer, channels, channels.live)


def paired_conv2d(layer: Convolution, channels: Channels, live: Array) -> Candidate | str:
    """Return the kernel for some channels of a CONV_2D of int8; or why it cannot compute them."""
    if not can_pair(channels.chosen(live), layer):
        return NOT_PAIRED
    products, whole_words = channels.matrix.shape[1], layer.image.shape[3] % 4 == 0
    words = -(-products // 4)
    gather = 20 * words + 80 if whole_words else 90 * words
    return Candidate(
        kernel="conv2d_paired_s8",
        instructions=-(-layer.pixels // 2) * (-(-live.size // 2) * (15 * words + 46) + gather),
        weight_bytes=live.size * products + 14 * live.size,
        scratch_bytes=words * (16 if whole_words else 20),
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: _conv2d_call(layer, channels, live),
    )


def _conv2d_call(layer: Convolution, channels: Channels, live: Array) -> KernelCall:
    chosen = channels.chosen(live)
    used = used_inputs(chosen.matrix, 4) if layer.window.is_pointwise else None
    matrix = chosen.matrix if used is None else chosen.matrix[:, used]
    words = max(-(-matrix.shape[1] // 4), 1)
    by_words = layer.image.shape[3] % 4 == 0 or used is not None
    return KernelCall(
        layer.ruled("conv2d_1x1_paired" if layer.window.is_pointwise and by_words else "conv2d_paired"),
        "ferrule/kernels/conv2d.h",
        {
            "window": layer.window_fields,
            "input_zero_point": layer.image.zero_point,
            "inputs": None if used is None else np.pad(used, (0, -used.size % 4)).astype(np.int16),
            "paired": {
                "weights": pair_weights(matrix, 2),
                "channels": channel_words(chosen, 2),
                "positions": positions(live),
                "fixed": channels.fixed_pixel,
                "words": words,
                "live_c": len(live),
                "output_c": len(channels.matrix),
                "output": layer.output_fields,
            },
        },
        table="conv2d_paired_s8_params",
        scratch_bytes=words * (16 if by_words else 20),
        sources=rule_sources(channels.rounding),
    )


def _fully_connected(layer: Convolution) -> Candidate | str:
    if not has_dsp(layer.context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(layer)
    if not can_pair(channels, layer):
        return NOT_PAIRED
    count, products = channels.matrix.shape
    words = -(-products // 4)

    return Candidate(
        kernel="fully_connected_paired_s8",
        instructions=int(1.1 * layer.macs) + 26 * layer.output.elements + 100 * layer.pixels,
        weight_bytes=-(-count // 4) * 4 * (words * 4 + 12),
        scratch_bytes=8 * words,
        overlaps=layer.overlaps,
        call=lambda: KernelCall(
            layer.ruled("fully_connected_paired"),
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
            table="fully_connected_paired_s8_params",
            sources=rule_sources(channels.rounding),
        ),
    )


CONV_2D_PAIRED = weighted_row("conv2d_paired_s8", _conv2d, Feature.LONG_MULTIPLY)
FULLY_CONNECTED_PAIRED = weighted_row("fully_connected_paired_s8", _fully_connected, Feature.LONG_MULTIPLY)
