# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with a window of 3x3 on cores with the DSP extension, four channels of a line at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, int8_channels, live_blobs
from ferrule.backends.cpu_acc.lowering.kernels.sliding_window import Sliding, line_words, slidings
from ferrule.backends.cpu_acc.lowering.overlap import plane_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_words
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.weighted import WEIGHTED_RULES

_CHANNELS = 4
_SUM_SHIFTS = (8, 7)
"""Weights are widened to 2**8 times their value, or 2**7 times if the bias would not fit into 32 bits otherwise."""
_WIDENED_BYTES = 48
"""Bytes of scratch for two pixels of three lines of four channels."""


def lines_row(stride: int) -> Row:
    """Return the row of the kernel whose window moves by `stride` pixels along a line."""
    return Row(
        kernel=f"depthwise_conv2d_3x3_by{stride}_s8",
        needs=frozenset({Feature.DSP}),
        rules=WEIGHTED_RULES,
        candidate=_candidate(stride),
    )


def _candidate(stride: int) -> Callable[[LoweringContext], Candidate | str]:
    def candidate(context: LoweringContext) -> Candidate | str:
        found = split_lines(context, stride)
        if isinstance(found, str):
            return found
        return NOT_PROVED if found[2].size else found[0]

    return candidate


def split_lines(context: LoweringContext, stride: int) -> tuple[Candidate, Channels, Array] | str:
    """Return the kernel for the channels that have proved constants, the layer's channels, and the live ones left.

    The kernel writes the dead channels, too. If it can run no channel, or not all by TFLM's rule, the reason is
    returned.
    """
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    image, output = context.input(0), context.operands.output
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    ways = slidings(descriptor.window(context.input(1)), image.shape, output.shape)
    ways = [way for way in ways if way.steps.window_stride == stride]
    if not ways or descriptor.depth_multiplier != 1:
        return f"the window is not 3x3 with a stride of {stride} along one axis, or channels are multiplied"
    channels = int8_channels(context, descriptor.activation, 3)
    alive = np.flatnonzero(~channels.dead)
    found = _scales(channels.chosen(alive), output, descriptor.activation)
    if found is None or (alive.size and not found[1].any()):
        return "the output is clamped to less than int8, or a channel has no proved constants"
    scales, live = found[0][found[1]], alive[found[1]]
    way = min(ways, key=lambda each: _instructions(each, live, image.shape[3]))
    candidate = Candidate(
        kernel=f"depthwise_conv2d_3x3_by{stride}_s8",
        instructions=image.shape[0] * _instructions(way, live, image.shape[3]),
        weight_bytes=22 * live.size + (channels.dead.size if channels.dead.any() else 0),
        scratch_bytes=_WIDENED_BYTES * way.words,
        lower=lambda: _lower(context, descriptor, channels, live, scales, way),
    )
    return candidate, channels, alive[~found[1]]


def _scales(channels: Channels, output: TensorInfo, activation: Activation) -> tuple[Array, Array] | None:
    """Return multiplier and bias of each channel, as the C has them, and which channels have them.

    None if they do not suffice for any channel, or not for all by TFLM's rule.
    """
    if activation_range(activation, output) != (-128, 127):
        return None
    products = channels.matrix.astype(np.int64)
    low = channels.bias + np.where(products < 0, products * 127, products * -128).sum(axis=1)
    high = channels.bias + np.where(products < 0, products * -128, products * 127).sum(axis=1)
    found, proved = np.zeros((len(products), 2), np.int64), np.ones(len(products), bool)
    for index, factor in enumerate(channels.factors):
        one = slice(index, index + 1)
        for shift in _SUM_SHIFTS:
            words = proved_words(low[one], high[one], [factor], output.zero_point, channels.rounding, sum_shift=shift)
            if words is not None and (int(channels.reach[index]) << shift) + abs(int(words[0, 1])) < 1 << 31:
                halved = 0 if shift == _SUM_SHIFTS[0] else 1 << 31
                found[index] = int(words[0, 0]) - halved, int(words[0, 1]) + (int(channels.bias[index]) << shift)
                break
        else:
            if channels.rounding is Rounding.TFLM:
                return None
            proved[index] = False
    return found.astype(np.int32), proved


def _instructions(way: Sliding, live: Array, channels: int) -> int:
    """Return an estimate for one image."""
    lines, steps = way.lines.output_extent, way.steps.output_extent
    line = 220 + 60 * steps if way.steps.window_stride == 1 else 240 + 90 * steps
    return -(-live.size // _CHANNELS) * (600 + lines * line) + (channels - live.size) * 2 * lines * steps


def _lower(
    context: LoweringContext,
    descriptor: DepthwiseConv2dDescriptor,
    channels: Channels,
    live: Array,
    scales: Array,
    way: Sliding,
) -> LoweredOp:
    image, window = context.input(0), descriptor.window(context.input(1))
    lines, steps = way.lines, way.steps
    kernel = f"depthwise_conv2d_3x3_by{steps.window_stride}_s8"
    positions, fixed = live_blobs(context, channels, live)
    return kernel_call(
        context,
        kernel,
        header="depthwise_lines",
        table="depthwise_lines_params",
        scratch_bytes=_WIDENED_BYTES * way.words,
        overlaps=plane_overlaps(context, window, transposed=way.transposed),
        contribution=KERNELS.part("depthwise_lines", kernel),
        batches=image.shape[0],
        channels=image.shape[3],
        input_lines=lines.input_extent,
        input_steps=steps.input_extent,
        input_line_bytes=lines.input_stride,
        input_step_bytes=steps.input_stride,
        output_lines=lines.output_extent,
        output_steps=steps.output_extent,
        output_line_bytes=lines.output_stride,
        output_step_bytes=steps.output_stride,
        line_stride=lines.window_stride,
        pad_lines=lines.pad,
        pad_steps=steps.pad,
        words=way.words,
        input_zero_point=image.zero_point,
        live_c=live.size,
        positions=positions,
        fixed=fixed,
        weights=context.blob("weights", line_words(channels.chosen(live).matrix, transposed=way.transposed)),
        scales=context.blob("scales", scales.reshape(-1) if scales.size else np.zeros(1, np.int32)),
    )
