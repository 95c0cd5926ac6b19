# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D with a window of 3x3 on cores without the DSP extension (`ferrule/kernels/columns.h`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.kernels.generic import ruled_kernel, ruled_part
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.kernels.scalar import cost_on, plain_scales
from ferrule.backends.cpu_acc.lowering.overlap import plane_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES
from ferrule.operators.window import Window

_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """One axis of the image."""

    input_extent: int
    output_extent: int
    input_stride: int
    """Bytes between neighbouring elements of the input."""
    output_stride: int
    window_stride: int
    pad: int


def _axes(window: Window, image: tuple[int, ...], output: tuple[int, ...]) -> tuple[_Axis, _Axis]:
    """Return the image's rows and columns."""
    channels = image[3]
    rows = _Axis(
        input_extent=image[1],
        output_extent=output[1],
        input_stride=image[2] * channels,
        output_stride=output[2] * channels,
        window_stride=window.stride_h,
        pad=window.padding.top,
    )
    columns = _Axis(
        input_extent=image[2],
        output_extent=output[2],
        input_stride=channels,
        output_stride=channels,
        window_stride=window.stride_w,
        pad=window.padding.left,
    )
    return rows, columns


def _columns(context: LoweringContext) -> Candidate | str:
    descriptor, image, output = context.layer.descriptor, context.input(0), context.operands.output
    if not isinstance(descriptor, DepthwiseConv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    window = descriptor.window(context.input(1))
    three = (window.height, window.width, window.dilation_h, window.dilation_w) == (_LINES, _LINES, 1, 1)
    rows, columns = _axes(window, image.shape, output.shape)
    ways = [way for way in ((rows, columns), (columns, rows)) if way[1].window_stride in {1, 2}]
    if not three or not ways or descriptor.depth_multiplier != 1:
        return "the window is not 3x3 with a stride of 1 or 2 along one axis, or channels are multiplied"
    channels = int8_channels(context, descriptor.activation, 3)
    live = np.flatnonzero(~channels.dead)
    if not can_scale(channels.chosen(live), output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    lines, steps = max(ways, key=lambda way: way[1].output_extent)
    outputs = steps.output_extent + steps.output_extent % 2
    read = outputs + 2 if steps.window_stride == 1 else 2 * outputs + 1
    scratch = 4 * (_LINES * read + outputs)
    pixels = output.elements // output.shape[3]
    return Candidate(
        kernel="depthwise_conv2d_columns_s8",
        instructions=cost_on(context, 33 * pixels * live.size),
        weight_bytes=29 * live.size,
        scratch_bytes=scratch,
        lower=lambda: _lower(context, descriptor, channels, live, lines, steps, lines is columns, read, scratch),
    )


def _lower(
    context: LoweringContext,
    descriptor: DepthwiseConv2dDescriptor,
    channels: Channels,
    live: Array,
    lines: _Axis,
    steps: _Axis,
    transposed: bool,
    read: int,
    scratch: int,
) -> LoweredOp:
    image, output, window = context.input(0), context.operands.output, descriptor.window(context.input(1))
    chosen = channels.chosen(live)
    taps = (chosen.matrix if len(live) else np.zeros((1, _LINES * _LINES), np.int8)).reshape(-1, _LINES, _LINES)
    by_step = taps if transposed else taps.transpose(0, 2, 1)
    fixed = context.blob("fixed", channels.fixed) if channels.dead.any() else None
    kernel = ruled_kernel(context, "depthwise_conv2d_columns")
    stored = "store_sums" if context.layer.rounding is Rounding.TFLM else "store_sums_once"
    return kernel_call(
        context,
        kernel,
        header="columns",
        table="depthwise_conv2d_columns_s8_params",
        scratch_bytes=scratch,
        overlaps=() if fixed else plane_overlaps(context, window, transposed=transposed),
        contribution=ruled_part(context, kernel, "multiply_columns", stored),
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
        columns=read,
        input_zero_point=image.zero_point,
        live_c=len(live),
        fixed=fixed,
        weights=context.blob("weights", np.ascontiguousarray(by_step).reshape(-1)),
        scales=context.blob("scales", plain_scales(chosen, output.zero_point, live)),
        output=output_value(output, descriptor.activation),
    )


DEPTHWISE_CONV_2D_COLUMNS = Row(kernel="depthwise_conv2d_columns_s8", rules=WEIGHTED_RULES, candidate=_columns)
"""The kernel of DEPTHWISE_CONV_2D for cores without the DSP extension."""
