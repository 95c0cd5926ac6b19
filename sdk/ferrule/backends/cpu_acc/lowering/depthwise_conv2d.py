# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.choice import Candidate, Feature, Row, choose
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value
from ferrule.backends.cpu_acc.lowering.mve_depthwise import MVE_DEPTHWISE_ROW
from ferrule.backends.cpu_acc.lowering.paired import Channels, can_scale, channel_words, int8_channels, live_blobs
from ferrule.backends.cpu_acc.lowering.plain import check_reach, lower_plain, macs_of, weights_of
from ferrule.backends.cpu_acc.lowering.ranges import product_matrix
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted import factors
from ferrule.operators.window import Window


def lower_depthwise_conv2d(context: LoweringContext) -> LoweredOp:
    """Return the call of the DEPTHWISE_CONV_2D kernel that suits types, window, weights, core and goal."""
    check_reach(context, product_matrix(context.layer, weights_of(context)))
    return choose(context, DEPTHWISE_CONV_2D_ROWS)


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
        weight_bytes=weights_of(context).nbytes + 9 * channels,
        lower=lambda: lower_plain(
            context,
            "depthwise_conv2d",
            window=descriptor.window(context.input(1)),
            image=image,
            output=context.operands.output,
            channels=channels,
            activation=descriptor.activation,
            channel_factors=() if image.dtype.is_float else factors(context.operands, 3),
            depth_multiplier=descriptor.depth_multiplier,
        ),
    )


def _3x3(context: LoweringContext) -> Candidate | str:
    descriptor, image, output = _descriptor(context), context.input(0), context.operands.output
    sliding = _choose_sliding(descriptor.window(context.input(1)), image.shape, output.shape)
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    if sliding is None or descriptor.depth_multiplier != 1:
        return "the window is not 3x3 with a stride of 1 or 2 along one axis, or channels are multiplied"
    channels = int8_channels(context, descriptor.activation, 3)
    live = np.flatnonzero(~channels.dead)
    if not can_scale(channels.chosen(live), output, descriptor.activation):
        return "a sum is too large, or an output is scaled up"
    return Candidate(
        kernel="depthwise_conv2d_3x3_s8",
        instructions=4 * macs_of(context),
        weight_bytes=26 * live.size,
        scratch_bytes=12 * sliding.words,
        lower=lambda: _lower_3x3(context, descriptor, channels, live, sliding),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """One axis of the image, for a window of three pixels."""

    input_extent: int
    output_extent: int
    input_stride: int
    """Distance between neighbouring indices in the input, in elements."""
    output_stride: int
    window_stride: int
    pad: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sliding:
    """The axis along which a 3x3 window slides (steps), and the axis across it (lines)."""

    lines: _Axis
    steps: _Axis
    transposed: bool
    """Whether the steps go from row to row, not from column to column."""

    @property
    def words(self) -> int:
        """The number of pixel pairs that the kernel reads of a line."""
        outputs = self.steps.output_extent
        return outputs + 1 if self.steps.window_stride == 2 else -(-outputs // 2) + 1


def _choose_sliding(window: Window, image: tuple[int, ...], output: tuple[int, ...]) -> _Sliding | None:
    """Return the best way for the 3x3 kernel to slide, along the longer axis; None if the kernel cannot be used."""
    if (window.height, window.width, window.dilation_h, window.dilation_w) != (3, 3, 1, 1):
        return None
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
    if max(rows.pad, columns.pad) > 2:
        return None
    ways = [
        _Sliding(lines=rows, steps=columns, transposed=False),
        _Sliding(lines=columns, steps=rows, transposed=True),
    ]
    fitting = [way for way in ways if way.steps.window_stride in {1, 2}]
    return max(fitting, key=lambda way: way.steps.output_extent, default=None)


def _lower_3x3(
    context: LoweringContext,
    descriptor: DepthwiseConv2dDescriptor,
    channels: Channels,
    live: Array,
    sliding: _Sliding,
) -> LoweredOp:
    image, output = context.input(0), context.operands.output
    lines, steps = sliding.lines, sliding.steps
    chosen = channels.chosen(live)
    positions, fixed = live_blobs(context, channels, live)
    return kernel_call(
        context,
        "depthwise_conv2d_3x3_s8",
        header="depthwise_conv2d",
        scratch_bytes=12 * sliding.words,
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
        weights=context.blob("weights", _line_words(chosen.matrix, transposed=sliding.transposed)),
        scales=context.blob("scales", channel_words(chosen, 1)),
        output=output_value(output, descriptor.activation),
    )


def _line_words(matrix: Array, *, transposed: bool) -> Array:
    """Return one word per channel and line of the window, which holds the weights as bytes w0, w1, w1, w2."""
    taps = (matrix if len(matrix) else np.zeros((1, 9), np.int8)).reshape(-1, 3, 3)
    if transposed:
        taps = taps.transpose(0, 2, 1)
    ordered = np.ascontiguousarray(taps[:, :, [0, 1, 1, 2]], np.int8)
    return ordered.view("<i4").reshape(-1).astype(np.int32)


DEPTHWISE_CONV_2D_ROWS: tuple[Row, ...] = (
    MVE_DEPTHWISE_ROW,
    Row(kernel="depthwise_conv2d_3x3_s8", needs=frozenset({Feature.LONG_MULTIPLY}), candidate=_3x3),
    Row(kernel="depthwise_conv2d", candidate=_plain),
)
"""The kernels of DEPTHWISE_CONV_2D."""
