# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with a window of 3x3 that slides along lines by one or two pixels, for the DSP extension."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_window import with_others
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, has_full_range, int8_channels
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.kernels.proved_channels import proved_scales
from ferrule.backends.cpu_acc.lowering.kernels.scalar import plain_scales
from ferrule.backends.cpu_acc.lowering.kernels.sliding import (
    MOST_CHANNELS,
    TOO_MANY_CHANNELS,
    Sliding,
    by_input,
    place_fields,
    slidings,
)
from ferrule.graph import Array, Rounding

_LINES = 3
_CHANNELS = 4
_MOST_PAD = 2
_PLAIN_WORDS, _EXACT_WORDS = 5, 4
"""Words per channel of `plain_scales`, and of the exact form, which they begin with."""
_WIDENED_BYTES = 48
"""Bytes of scratch for two pixels of three lines of four channels."""


def _candidate(layer: Convolution, stride: int) -> Candidate | str:
    """Return the kernel; if some channels have no proved constants, with another kernel for those."""
    if layer.output.shape[3] > MOST_CHANNELS:
        return TOO_MANY_CHANNELS
    ways = [way for way in slidings(layer) if _fits(way, stride)]
    if not ways:
        return f"the window is not 3x3 with a stride of {stride} along one axis"
    alive = by_input(int8_channels(layer).live)
    proved = proved_scales(alive)
    if proved is not None and (proved[1].any() or not proved[1].size):
        scales, which = proved[0][proved[1]], proved[1]
        form = ""
    elif alive.rounding is Rounding.TFLM and has_full_range(layer) and can_scale(alive):
        which = np.ones(len(alive.places), bool)
        scales = plain_scales(alive).reshape(-1, _PLAIN_WORDS)[which][:, :_EXACT_WORDS]
        form = "_exact"
    else:
        return "the output is clamped to less than int8, or a channel has no proved constants"
    channels = alive.chosen(which)
    count = len(scales)
    way = min(ways, key=lambda each: _instructions(each, count, form))
    kernel = f"depthwise_conv2d_3x3_by{stride}{form}_s8"
    candidate = Candidate(
        kernel=kernel,
        code="depthwise_lines",
        instructions=layer.image.shape[0] * _instructions(way, count, form),
        weight_bytes=(30 if form else 22) * count + (channels.dead.size if channels.dead.any() else 0),
        scratch_bytes=_WIDENED_BYTES * _words(way),
        overlaps=way.overlaps,
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/depthwise_lines.h",
            {
                "batches": layer.image.shape[0],
                "input_c": layer.image.shape[3],
                "output_c": layer.output.shape[3],
                "lines": way.lines.fields,
                "steps": way.steps.fields,
                "words": _words(way),
                "input_zero_point": layer.image.zero_point,
                **place_fields(channels),
                "weights": _line_words(way, channels),
                "scales": filled(scales.reshape(-1), 1),
            },
            table="depthwise_lines_params",
            contribution=KERNELS.part("depthwise_lines", "depthwise_parts", kernel),
        ),
    )
    return with_others(candidate, alive.chosen(~which))


def _fits(way: Sliding, stride: int) -> bool:
    axes = (way.lines, way.steps)
    return (
        all(axis.taps == _LINES and -(-axis.pad // axis.dilation) <= _MOST_PAD for axis in axes)
        and way.steps.part_stride == stride
    )


def _words(way: Sliding) -> int:
    """Return the number of pixel pairs that the kernel reads of a line."""
    outputs = way.steps.outputs
    return outputs + 1 if way.steps.part_stride == 2 else -(-outputs // 2) + 1


def _line_words(way: Sliding, channels: Channels) -> Array:
    """Return one word per channel and line of the window, which holds the weights as bytes w0, w1, w1, w2."""
    return words(np.ascontiguousarray(way.taps(channels)[:, :, [0, 1, 1, 2]]))


def _instructions(way: Sliding, live: int, form: str) -> int:
    """Return an estimate for one image."""
    lines, steps = way.lines.outputs, way.steps.outputs
    line = 220 + (76 if form else 60) * steps if way.steps.part_stride == 1 else 240 + (114 if form else 90) * steps
    dead = (way.layer.output.shape[3] - live) * 2 * way.lines.output_extent * way.steps.output_extent
    return way.lines.parts * way.steps.parts * -(-live // _CHANNELS) * (600 + lines * line) + dead


LINES: tuple[Row, ...] = tuple(
    weighted_row(f"depthwise_conv2d_3x3_by{stride}_s8", partial(_candidate, stride=stride), Feature.DSP)
    for stride in (1, 2)
)
"""The kernels for four channels of a line, whose window moves by so many pixels along it."""
