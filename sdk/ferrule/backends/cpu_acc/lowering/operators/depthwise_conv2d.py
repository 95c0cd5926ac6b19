# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in C."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    SLOWER_WITHOUT_DSP,
    Candidate,
    Feature,
    Row,
    choose,
    has_dsp,
)
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_columns import DEPTHWISE_CONV_2D_COLUMNS
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_lines import lines_row, split_lines
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_taps import TAPS_ROW
from ferrule.backends.cpu_acc.lowering.kernels.dual_mac_s16 import DEPTHWISE_CONV_2D_DUAL_S16
from ferrule.backends.cpu_acc.lowering.kernels.generic import (
    from_run_time,
    lower_plain,
    macs_of,
    ruled_kernel,
    ruled_part,
    weight_bytes_of,
)
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    channel_words,
    int8_channels,
    live_blobs,
)
from ferrule.backends.cpu_acc.lowering.kernels.mixed import both, rest_of
from ferrule.backends.cpu_acc.lowering.kernels.mve_depthwise import MVE_DEPTHWISE_ROW
from ferrule.backends.cpu_acc.lowering.kernels.sliding_window import Sliding, choose_sliding, line_words
from ferrule.backends.cpu_acc.lowering.overlap import Reads, plane_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES, factors, has_zero_point


def lower_depthwise_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the DEPTHWISE_CONV_2D kernel that suits types, window, weights, core and goal."""
    if has_zero_point(context.input(1)):
        return choose(context, _OFFSET_ROWS)
    return choose(context, DEPTHWISE_CONV_2D_ROWS[-1:] if from_run_time(context) else DEPTHWISE_CONV_2D_ROWS)


def _descriptor(context: LoweringContext) -> DepthwiseConv2dDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _plain(context: LoweringContext) -> Candidate:
    descriptor, image = _descriptor(context), context.input(0)
    channels = context.operands.output.shape[3]
    return Candidate(
        kernel="depthwise_conv2d",
        instructions=14 * macs_of(context),
        weight_bytes=weight_bytes_of(context, channels),
        lower=lambda: lower_plain(
            context,
            "depthwise_conv2d",
            window=descriptor.window(context.input(1)),
            image=image,
            output=context.operands.output,
            channels=channels,
            activation=descriptor.activation,
            channel_factors=() if image.dtype.is_float else factors(context.operands, 3),
            reads=Reads.PER_CHANNEL,
            depth_multiplier=descriptor.depth_multiplier,
        ),
    )


def _lines(context: LoweringContext, stride: int) -> Candidate | str:
    """Return the kernel for lines; if some channels have no proved constants, with the kernel below for those."""
    found = split_lines(context, stride)
    if isinstance(found, str):
        return found
    first, channels, others = found
    if not others.size:
        return first
    second = _3x3_part(rest_of(context), replace(channels, dead=np.zeros_like(channels.dead)), others)
    return second if isinstance(second, str) else both(first, second)


def _lines_row(stride: int) -> Row:
    return replace(lines_row(stride), candidate=partial(_lines, stride=stride))


def _3x3(context: LoweringContext) -> Candidate | str:
    if context.input(0).dtype is not DataType.INT8:
        return "the data is not int8"
    if not has_dsp(context.target.core):
        return SLOWER_WITHOUT_DSP
    channels = int8_channels(context, _descriptor(context).activation, 3)
    return _3x3_part(context, channels, np.flatnonzero(~channels.dead))


def _3x3_part(context: LoweringContext, channels: Channels, live: Array) -> Candidate | str:
    """Return the kernel for some channels of a layer; or why it cannot."""
    descriptor, image, output = _descriptor(context), context.input(0), context.operands.output
    sliding = choose_sliding(descriptor.window(context.input(1)), image.shape, output.shape)
    if sliding is None or descriptor.depth_multiplier != 1:
        return "the window is not 3x3 with a stride of 1 or 2 along one axis, or channels are multiplied"
    if not can_scale(channels.chosen(live), output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    steps = sliding.steps
    line = 140 + 26 * steps.output_extent if steps.window_stride == 1 else 215 + 53 * steps.output_extent
    return Candidate(
        kernel="depthwise_conv2d_3x3_s8",
        instructions=image.shape[0] * live.size * (100 + sliding.lines.output_extent * line),
        weight_bytes=26 * live.size,
        scratch_bytes=12 * sliding.words,
        lower=lambda: _lower_3x3(context, descriptor, channels, live, sliding),
    )


def _lower_3x3(
    context: LoweringContext,
    descriptor: DepthwiseConv2dDescriptor,
    channels: Channels,
    live: Array,
    sliding: Sliding,
) -> LoweredOp:
    image, output, window = context.input(0), context.operands.output, descriptor.window(context.input(1))
    lines, steps = sliding.lines, sliding.steps
    chosen = channels.chosen(live)
    positions, fixed = live_blobs(context, channels, live)
    kernel = ruled_kernel(context, "depthwise_conv2d_3x3")
    return kernel_call(
        context,
        kernel,
        contribution=ruled_part(context, kernel),
        header="depthwise_conv2d",
        table="depthwise_conv2d_3x3_s8_params",
        scratch_bytes=12 * sliding.words,
        overlaps=() if fixed else plane_overlaps(context, window, transposed=sliding.transposed),
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
        step_stride=steps.window_stride,
        pad_lines=lines.pad,
        pad_steps=steps.pad,
        words=sliding.words,
        input_zero_point=image.zero_point,
        live_c=len(live),
        positions=positions,
        fixed=fixed,
        weights=context.blob("weights", line_words(chosen.matrix, transposed=sliding.transposed)),
        scales=context.blob("scales", channel_words(chosen, 1)),
        output=output_value(output, descriptor.activation),
    )


DEPTHWISE_CONV_2D_ROWS: tuple[Row, ...] = (
    MVE_DEPTHWISE_ROW,
    _lines_row(1),
    _lines_row(2),
    Row(
        kernel="depthwise_conv2d_3x3_s8",
        needs=frozenset({Feature.LONG_MULTIPLY}),
        rules=WEIGHTED_RULES,
        candidate=_3x3,
    ),
    DEPTHWISE_CONV_2D_COLUMNS,
    DEPTHWISE_CONV_2D_DUAL_S16,
    TAPS_ROW,
    Row(kernel="depthwise_conv2d", rules=WEIGHTED_RULES, candidate=_plain),
)
"""The kernels of DEPTHWISE_CONV_2D."""
_OFFSET_ROWS = (Row(kernel="depthwise_conv2d_offset_s8", rules=WEIGHTED_RULES, candidate=_plain),)
"""The kernel for weights with a zero point."""
