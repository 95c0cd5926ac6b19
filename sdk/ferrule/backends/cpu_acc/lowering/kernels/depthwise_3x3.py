# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with a window of 3x3 that slides along the lines of the image, rows or columns.

Cores with the DSP extension have a kernel for four channels of a line at a time, and one for single channels. The
kernel for other cores multiplies columns of the window (`ferrule/kernels/columns.h`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    SLOWER_WITHOUT_DSP,
    Candidate,
    Feature,
    Row,
    both,
    has_dsp,
    weighted_row,
)
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    channel_words,
    extreme_channel_sums,
    has_full_range,
    int8_channels,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.kernels.scalar import cost_on, plain_scales
from ferrule.backends.cpu_acc.lowering.overlap import plane_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.requantization import proved_words
from ferrule.graph import Array, Rounding
from ferrule.memory.request import Overlap

_LINES = 3
_CHANNELS = 4
_SUM_SHIFTS = (8, 7)
"""Weights are widened to 2**8 times their value, or 2**7 times if the bias would not fit into 32 bits otherwise."""
_WIDENED_BYTES = 48
"""Bytes of scratch for two pixels of three lines of four channels."""
_NO_WAY = "the window is not 3x3 with a stride of {} along one axis, or channels are multiplied"


@frozen
class Axis:
    """One axis of the image, for a window of three pixels."""

    input_extent: int
    output_extent: int
    input_stride: int
    """Distance between neighbouring indices in the input, in elements."""
    output_stride: int
    window_stride: int
    pad: int


@frozen
class Sliding:
    """The axis along which a 3x3 window slides (steps), and the axis across it (lines)."""

    layer: Convolution
    lines: Axis
    steps: Axis
    transposed: bool
    """Whether the steps go from row to row, not from column to column."""

    @property
    def words(self) -> int:
        """The number of pixel pairs that the kernel reads of a line."""
        outputs = self.steps.output_extent
        return outputs + 1 if self.steps.window_stride == 2 else -(-outputs // 2) + 1

    def fields(self, *, with_step_stride: bool = True) -> Mapping[str, Member]:
        """Return the members in which the kernels' parameter tables begin."""
        lines, steps, image = self.lines, self.steps, self.layer.image
        return {
            "batches": image.shape[0],
            "channels": image.shape[3],
            "input_lines": lines.input_extent,
            "input_steps": steps.input_extent,
            "input_line_bytes": lines.input_stride,
            "input_step_bytes": steps.input_stride,
            "output_lines": lines.output_extent,
            "output_steps": steps.output_extent,
            "output_line_bytes": lines.output_stride,
            "output_step_bytes": steps.output_stride,
            "line_stride": lines.window_stride,
            **({"step_stride": steps.window_stride} if with_step_stride else {}),
            "pad_lines": lines.pad,
            "pad_steps": steps.pad,
        }

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of the kernels."""
        return plane_overlaps(self.layer.context, self.layer.window, transposed=self.transposed)

    def taps(self, channels: Channels) -> Array:
        """Return the weights as [channels, lines, steps], of one channel at least: C has no empty arrays."""
        taps = filled(channels.matrix, 1, 1).reshape(-1, _LINES, _LINES)
        return taps.transpose(0, 2, 1) if self.transposed else taps

    def line_words(self, channels: Channels) -> Array:
        """Return one word per channel and line of the window, which holds the weights as bytes w0, w1, w1, w2."""
        return words(self.taps(channels)[:, :, [0, 1, 1, 2]])


def _slidings(layer: Convolution, strides: tuple[int, ...], most_pad: int = 2) -> list[Sliding]:
    """Return the ways to slide in steps of these strides, along rows first; none for other windows than 3x3."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    three = (window.height, window.width, window.dilation_h, window.dilation_w) == (_LINES, _LINES, 1, 1)
    rows, columns = (
        Axis(
            input_extent=image[index],
            output_extent=output[index],
            input_stride=prod(image[index + 1 :]),
            output_stride=prod(output[index + 1 :]),
            window_stride=stride,
            pad=pad,
        )
        for index, stride, pad in ((1, window.stride_h, window.padding.top), (2, window.stride_w, window.padding.left))
    )
    if not three or layer.depth_multiplier != 1 or max(rows.pad, columns.pad) > most_pad:
        return []
    ways = (rows, columns, False), (columns, rows, True)
    return [
        Sliding(layer=layer, lines=lines, steps=steps, transposed=transposed)
        for lines, steps, transposed in ways
        if steps.window_stride in strides
    ]


# ---- four channels of a line


def _lines(layer: Convolution, stride: int) -> Candidate | str:
    """Return the kernel for lines; if some channels have no proved constants, with that of single channels for those.

    The first kernel writes the dead channels, too.
    """
    ways = _slidings(layer, (stride,))
    if not ways:
        return _NO_WAY.format(stride)
    alive = int8_channels(layer).live
    found = _proved_scales(alive)
    if found is None or (found[1].size and not found[1].any()):
        return "the output is clamped to less than int8, or a channel has no proved constants"
    scales, proved = found[0][found[1]], found[1]
    channels = alive.chosen(proved)
    count = len(scales)
    way = min(ways, key=lambda each: _line_instructions(each, count))
    kernel = f"depthwise_conv2d_3x3_by{stride}_s8"
    candidate = Candidate(
        kernel=kernel,
        code="depthwise_lines",
        instructions=layer.image.shape[0] * _line_instructions(way, count),
        weight_bytes=22 * count + (channels.dead.size if channels.dead.any() else 0),
        scratch_bytes=_WIDENED_BYTES * way.words,
        overlaps=way.overlaps,
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/depthwise_lines.h",
            {
                **way.fields(with_step_stride=False),
                "words": way.words,
                "input_zero_point": layer.image.zero_point,
                "live_c": count,
                "positions": filled(channels.places, 1).astype(np.int16),
                "fixed": channels.fixed_pixel,
                "weights": way.line_words(channels),
                "scales": filled(scales.reshape(-1), 1),
            },
            table="depthwise_lines_params",
            contribution=KERNELS.part("depthwise_lines", kernel),
        ),
    )
    if proved.all():
        return candidate
    second = _single_channels(replace(alive.chosen(~proved), dead=np.zeros_like(alive.dead)))
    return second if isinstance(second, str) else both(candidate, second)


def _proved_scales(channels: Channels) -> tuple[Array, Array] | None:
    """Return multiplier and bias of each channel, as the C has them, and which channels have them.

    None if they do not suffice for any channel, or not for all by TFLM's rule.
    """
    if not has_full_range(channels.layer):
        return None
    low, high = extreme_channel_sums(channels)
    found, proved = np.zeros((len(low), 2), np.int64), np.ones(len(low), bool)
    for index, factor in enumerate(channels.factors):
        one = slice(index, index + 1)
        for shift in _SUM_SHIFTS:
            zero_point, rule = channels.layer.output.zero_point, channels.rounding
            words = proved_words(low[one], high[one], [factor], zero_point, rule, sum_shift=shift)
            if words is not None and (int(channels.reach[index]) << shift) + abs(int(words[0, 1])) < 1 << 31:
                # the multiplier's highest bit tells the kernel that sums are multiplied by 128, not by 256
                halved = 0 if shift == _SUM_SHIFTS[0] else 1 << 31
                found[index] = int(words[0, 0]) - halved, int(words[0, 1]) + (int(channels.bias[index]) << shift)
                break
        else:
            if channels.rounding is Rounding.TFLM:
                return None
            proved[index] = False
    return found.astype(np.int32), proved


def _line_instructions(way: Sliding, live: int) -> int:
    """Return an estimate for one image."""
    lines, steps = way.lines.output_extent, way.steps.output_extent
    line = 220 + 60 * steps if way.steps.window_stride == 1 else 240 + 90 * steps
    dead = way.layer.image.shape[3] - live
    return -(-live // _CHANNELS) * (600 + lines * line) + dead * 2 * lines * steps


# ---- single channels


def _3x3(layer: Convolution) -> Candidate | str:
    if not has_dsp(layer.context.target.core):
        return SLOWER_WITHOUT_DSP
    return _single_channels(int8_channels(layer).live)


def _single_channels(channels: Channels) -> Candidate | str:
    """Return the kernel for some channels of a layer; or why it cannot compute them."""
    layer, live = channels.layer, channels.places
    way = max(_slidings(layer, (1, 2)), key=lambda each: each.steps.output_extent, default=None)
    if way is None:
        return _NO_WAY.format("1 or 2")
    if not can_scale(channels):
        return TOO_LARGE
    steps = way.steps
    line = 140 + 26 * steps.output_extent if steps.window_stride == 1 else 215 + 53 * steps.output_extent
    return Candidate(
        kernel="depthwise_conv2d_3x3_s8",
        instructions=layer.image.shape[0] * live.size * (100 + way.lines.output_extent * line),
        weight_bytes=26 * live.size,
        scratch_bytes=12 * way.words,
        overlaps=lambda: () if channels.dead.any() else way.overlaps(),
        call=lambda: KernelCall(
            "depthwise_conv2d_3x3",
            "ferrule/kernels/depthwise_conv2d.h",
            {
                **way.fields(),
                "words": way.words,
                "input_zero_point": layer.image.zero_point,
                "live_c": len(live),
                "positions": filled(live, 1).astype(np.int16),
                "fixed": channels.fixed_pixel,
                "weights": way.line_words(channels),
                "scales": channel_words(channels, 1),
                "output": layer.output_fields,
            },
            ruled=True,
        ),
    )


# ---- columns of the window


def _columns(layer: Convolution) -> Candidate | str:
    ways = _slidings(layer, (1, 2), most_pad=max(layer.window.padding.top, layer.window.padding.left))
    if not ways:
        return _NO_WAY.format("1 or 2")
    channels = int8_channels(layer).live
    if not can_scale(channels):
        return TOO_LARGE
    count = channels.places.size
    way = max(ways, key=lambda each: each.steps.output_extent)
    outputs = way.steps.output_extent + way.steps.output_extent % 2
    read = outputs + 2 if way.steps.window_stride == 1 else 2 * outputs + 1
    once = "" if channels.rounding is Rounding.TFLM else "_once"
    return Candidate(
        kernel="depthwise_conv2d_columns_s8",
        instructions=cost_on(layer, 33 * layer.pixels * count),
        weight_bytes=29 * count,
        scratch_bytes=4 * (_LINES * read + outputs),
        overlaps=lambda: () if channels.dead.any() else way.overlaps(),
        call=lambda: KernelCall(
            "depthwise_conv2d_columns",
            "ferrule/kernels/columns.h",
            {
                **way.fields(),
                "columns": read,
                "input_zero_point": layer.image.zero_point,
                "live_c": count,
                "fixed": channels.fixed_pixel,
                "weights": np.ascontiguousarray(way.taps(channels).transpose(0, 2, 1)).reshape(-1),
                "scales": plain_scales(channels),
                "output": layer.output_fields,
            },
            sources=("multiply_columns", f"store_sums{once}"),
            ruled=True,
        ),
    )


LINES: tuple[Row, ...] = tuple(
    weighted_row(f"depthwise_conv2d_3x3_by{stride}_s8", partial(_lines, stride=stride), Feature.DSP)
    for stride in (1, 2)
)
"""The kernels for four channels of a line, whose window moves by so many pixels along it."""
SINGLE_CHANNELS = weighted_row("depthwise_conv2d_3x3_s8", _3x3, Feature.LONG_MULTIPLY)
COLUMNS = weighted_row("depthwise_conv2d_columns_s8", _columns)
"""The kernel for cores without the DSP extension."""
