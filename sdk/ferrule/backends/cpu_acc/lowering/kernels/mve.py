# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED in int8 with vector instructions (MVE), as in `ferrule/kernels/mve_pixels.h`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, output_value, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.overlap import pixel_overlaps
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext
from ferrule.backends.target import Goal
from ferrule.dom import Aggregate, Expression, Field, Identifier, Integer, Null
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.window import Window

_VECTOR = 16
"""Bytes of a vector."""
_LANES = 4
"""Channels whose sums a vector holds."""
_PASS = 8
"""Vectors of products between two branches of the convolution's kernel."""
_ROW_PASS = 4
"""The same for FULLY_CONNECTED."""
_EIGHT = (0, 2, 4, 6, 1, 3, 5, 7)
"""The order of the channels in a block of FULLY_CONNECTED."""
_LEAST_COLLECTED, _LEAST_WINDOWS, _MOST_COLLECTED = 256, 640, 1024
"""Limits of the scratch for the windows that are collected at once, unless two of them need more."""
_MOST_PIXELS = 32
_GENERAL, _LISTED = 1, 2
_ONE_PIXEL = Window(height=1, width=1, stride_h=1, stride_w=1)
_WORTH_LISTING = 0.75
TOO_LARGE = "a sum is too large, or an output is scaled up"


def _conv2d(context: LoweringContext) -> Candidate | str:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if context.input(0).dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    live = np.flatnonzero(~channels.dead)
    if not live.size:
        return "all channels are dead"
    if not can_scale(channels.chosen(live), context.operands.output, descriptor.activation):
        return TOO_LARGE
    window = descriptor.window(context.input(1))
    if window.is_pointwise:
        return _pointwise(context, descriptor.activation, channels, live)
    return _windows(context, descriptor.activation, channels, live, window)


def _pointwise(context: LoweringContext, activation: Activation, channels: Channels, live: Array) -> Candidate:
    image, output = context.input(0), context.operands.output
    chosen, inputs, input_c = channels.chosen(live), None, image.shape[3]
    used = np.flatnonzero(chosen.matrix.any(axis=0))
    matrix = chosen.matrix
    if input_c <= 256 and _vectors(max(used.size, 1)) <= _WORTH_LISTING * _vectors(input_c):
        listed = np.zeros(_VECTOR * _vectors(max(used.size, 1)), np.uint8)
        listed[: used.size] = used
        inputs = listed
        matrix = matrix[:, used] if used.size else matrix[:, :1]
    row_bytes = input_c if inputs is None else len(inputs)
    count = output.elements // output.shape[3]
    pixels = _pixels(context, count, _LEAST_COLLECTED, lambda number: number * row_bytes)
    weights = _Weights(context, activation, channels, live, matrix)
    copied = 3 * row_bytes // _VECTOR if inputs is None else 4 * len(inputs) // _VECTOR + 10
    return Candidate(
        kernel="conv2d_1x1_mve_s8",
        instructions=count * copied + weights.instructions(count, count, pixels),
        weight_bytes=weights.stream.nbytes,
        scratch_bytes=pixels * row_bytes + _VECTOR - 1,
        lower=lambda: _lower_pointwise(context, weights, inputs, count, pixels),
    )


def _lower_pointwise(
    context: LoweringContext, weights: _Weights, inputs: Array | None, count: int, pixels: int
) -> LoweredOp:
    value, blobs = weights.lower()
    input_c = context.input(0).shape[3]
    return kernel_call(
        context,
        "conv2d_1x1_mve_s8",
        header="conv2d_mve",
        scratch_bytes=pixels * (input_c if inputs is None else len(inputs)) + _VECTOR - 1,
        overlaps=pixel_overlaps(context, _ONE_PIXEL, context.input(0), context.operands.output),
        contribution=KERNELS.part("conv2d_1x1_mve_s8", "mve_store_pairs"),
        extra_blobs=blobs,
        count=count,
        input_c=input_c,
        pixels=pixels,
        inputs=None if inputs is None else context.blob("inputs", inputs),
        weights=value,
    )


def _windows(
    context: LoweringContext, activation: Activation, channels: Channels, live: Array, window: Window
) -> Candidate:
    image, output = context.input(0), context.operands.output
    way = _Way.of(window, image.shape[3])
    matrix = channels.matrix[live]
    if not way.by_rows:
        matrix = matrix.reshape(live.size, window.height, window.width, -1).transpose(0, 2, 1, 3)
    weights = _Weights(context, activation, channels, live, matrix.reshape(live.size, -1))
    rows, pixels = output.shape[0] * output.shape[1], _pixels(context, output.shape[2], _LEAST_WINDOWS, way.scratch)
    sizes = _batches(output.shape[2], pixels)
    return Candidate(
        kernel="conv2d_mve_s8",
        instructions=rows * sum(way.instructions(size) for size in sizes)
        + weights.instructions(rows * output.shape[2], output.shape[2], pixels),
        weight_bytes=weights.stream.nbytes,
        scratch_bytes=way.scratch(pixels),
        lower=lambda: _lower_windows(context, weights, way, pixels),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How the windows of neighbouring pixels are collected in scratch."""

    window: Window
    channels: int
    shared: bool
    """Whether the windows share columns."""
    by_rows: bool
    """Whether the rows under all windows are collected first, then each window."""

    @classmethod
    def of(cls, window: Window, channels: int) -> _Way:
        return cls(
            window=window,
            channels=channels,
            shared=window.dilation_w == 1 and window.stride_w <= window.width,
            by_rows=window.dilation_w == 1 and window.width * channels <= _VECTOR,
        )

    def columns(self, pixels: int) -> int:
        """Return the columns of the image that are collected."""
        window = self.window
        shared = self.shared or self.by_rows
        return (pixels - 1) * window.stride_w + window.width if shared else pixels * window.width

    def scratch(self, pixels: int) -> int:
        window = self.window
        windows = pixels * window.width * window.height * self.channels + 2 * _VECTOR if self.by_rows else 0
        return self.columns(pixels) * window.height * self.channels + _VECTOR - 1 + windows

    def instructions(self, pixels: int) -> int:
        """Return an estimate for the windows of neighbouring pixels."""
        height, columns = self.window.height, self.columns(pixels)
        if self.by_rows:
            return height * (40 + 3 * columns * self.channels // _VECTOR) + pixels * (5 * height + 5) + 60
        return columns * (height * (5 if self.channels == _VECTOR else 8 * _vectors(self.channels)) + 25)


def _lower_windows(context: LoweringContext, weights: _Weights, way: _Way, pixels: int) -> LoweredOp:
    value, blobs = weights.lower()
    image, output = context.input(0), context.operands.output
    return kernel_call(
        context,
        "conv2d_mve_s8",
        header="conv2d_mve",
        scratch_bytes=way.scratch(pixels),
        overlaps=pixel_overlaps(context, way.window, image, output),
        contribution=KERNELS.part("conv2d_mve_s8", "mve_store_pairs"),
        extra_blobs=blobs,
        window=window_value(way.window, image, output),
        input_zero_point=image.zero_point,
        pixels=pixels,
        shared=int(way.shared),
        by_rows=int(way.by_rows),
        weights=value,
    )


def _fully_connected(context: LoweringContext) -> Candidate | str:
    descriptor, data = context.layer.descriptor, context.input(0)
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if data.dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    if not can_scale(channels, context.operands.output, descriptor.activation):
        return TOO_LARGE
    count, products = channels.matrix.shape
    vectors, blocks, rows = _vectors(products), -(-count // len(_EIGHT)), data.elements // products
    whole = products % _VECTOR == 0
    per_block = 17 * vectors + 2 * -(-vectors // _ROW_PASS) + 28
    return Candidate(
        kernel="fully_connected_mve_s8" if whole else "fully_connected_copied_mve_s8",
        instructions=rows * (blocks * per_block + 50 + (0 if whole else 3 * vectors)),
        weight_bytes=blocks * len(_EIGHT) * (_VECTOR * vectors + 9),
        scratch_bytes=0 if whole else _VECTOR * vectors,
        lower=lambda: _lower_fully_connected(context, descriptor.activation, channels, rows),
    )


def _lower_fully_connected(
    context: LoweringContext, activation: Activation, channels: Channels, rows: int
) -> LoweredOp:
    count, products = channels.matrix.shape
    vectors, output = _vectors(products), context.operands.output
    order = np.minimum(
        (np.arange(0, count, len(_EIGHT))[:, None] + np.array(_EIGHT)).reshape(-1), count - 1
    )  # the last block repeats the last channel
    whole = products % _VECTOR == 0
    return kernel_call(
        context,
        "fully_connected_mve_s8" if whole else "fully_connected_copied_mve_s8",
        header="fully_connected_mve",
        table="fully_connected_mve_s8_params",
        scratch_bytes=0 if whole else _VECTOR * vectors,
        contribution=KERNELS.part("fully_connected_mve_s8"),
        stream=context.blob("weights", _stream(channels.chosen(order), len(_EIGHT))),
        first=(vectors - 1) % _ROW_PASS + 1,
        data_bytes=_VECTOR * vectors,
        output_c=count,
        general=int(not is_plain(output, activation)),
        output=output_value(output, activation),
        input_c=products,
        rows=rows,
    )


class _Weights:
    """The weights and scales of a convolution, four channels and two pixels at a time."""

    def __init__(
        self, context: LoweringContext, activation: Activation, channels: Channels, live: Array, matrix: Array
    ) -> None:
        self._context, self._activation, self._channels = context, activation, channels
        self._listed = bool(channels.dead.any() or live.size % _LANES)
        self._vectors = _vectors(matrix.shape[1])
        self._blocks = -(-live.size // _LANES)
        order = np.minimum(np.arange(self._blocks * _LANES), live.size - 1)  # the last block repeats the last channel
        chosen = replace(channels.chosen(live[order]), matrix=matrix[order])
        self.stream = _stream(chosen, _LANES, live[order] if self._listed else None)

    def instructions(self, count: int, together: int, pixels: int) -> int:
        """Return an estimate for `count` pixels, in batches of `pixels` that do not go over `together` pixels."""
        sizes = _batches(together, pixels)
        pairs, calls = sum(-(-size // 2) for size in sizes), sum(1 + (size % 2 and size > 1) for size in sizes)
        general = not is_plain(self._context.operands.output, self._activation)
        block = 14 * self._vectors + 2 * -(-self._vectors // _PASS) + 23 + 6 * general + self._listed
        fixed = 3 * len(self._channels.dead) // _VECTOR + 8 if self._channels.dead.any() else 0
        return count // together * (pairs * (self._blocks * block + 19) + 100 * calls) + count * fixed

    def lower(self) -> tuple[Expression, tuple[Blob, ...]]:
        """Return the initial value of a `struct ferrule_mve_weights`, and its blobs."""
        context, channels = self._context, self._channels
        output = context.operands.output
        stream = context.blob("weights", self.stream)
        fixed = context.blob("fixed", channels.fixed) if channels.dead.any() else None
        kind = _LISTED * self._listed + _GENERAL * (not is_plain(output, self._activation))
        value = Aggregate(
            (
                Field(Identifier(stream.name), "stream"),
                Field(Integer(self.stream.size), "words"),
                Field(Integer(self._vectors), "vectors"),
                Field(Integer(kind), "kind"),
                Field(Null() if fixed is None else Identifier(fixed.name), "fixed"),
                Field(Integer(len(channels.matrix)), "output_c"),
                Field(output_value(output, self._activation), "output"),
            )
        )
        return value, (stream,) if fixed is None else (stream, fixed)


def _stream(channels: Channels, block: int, positions: Array | None = None) -> Array:
    """Return the words of `struct ferrule_mve_weights` or FULLY_CONNECTED, for whole blocks of channels."""
    count, products = channels.matrix.shape
    vectors = _vectors(products)
    matrix = np.zeros((count, vectors * _VECTOR), np.int8)
    matrix[:, :products] = channels.matrix
    weights = matrix.reshape(-1, block, vectors, _VECTOR).transpose(0, 2, 1, 3)
    parts = [
        words(channels.bias.astype("<i4"), block),
        words(np.ascontiguousarray(weights), block * vectors * _VECTOR),
        words(np.array([factor.multiplier for factor in channels.factors], "<i4"), block),
        words(np.array([factor.shift for factor in channels.factors], np.int8), block),
    ]
    if positions is not None:
        parts.append(words(positions.astype("<u2"), block))
    joined: Array = np.concatenate(parts, axis=1).reshape(-1)
    return joined


def words(values: Array, per_block: int) -> Array:
    """Return values as little-endian words, one row per block."""
    return np.ascontiguousarray(values.reshape(-1, per_block)).view("<i4").astype(np.int32)


def _pixels(context: LoweringContext, together: int, least: int, scratch: Callable[[int], int]) -> int:
    """Return how many pixels to collect at once: an even number, or one if there is only one."""
    most = min(together + together % 2, _MOST_PIXELS)
    match context.target.goal:
        case Goal.SPEED:
            limit = _MOST_COLLECTED
        case Goal.MEMORY:
            limit = 0
        case _:
            limit = min(max(context.spare_bytes, least), _MOST_COLLECTED)
    fitting = [number for number in range(2, most + 1, 2) if scratch(number) <= limit]
    return min(max(fitting, default=2), together)


def _batches(together: int, pixels: int) -> list[int]:
    """Return the sizes of the batches in which a number of neighbouring pixels is computed."""
    return [pixels] * (together // pixels) + [together % pixels] * bool(together % pixels)


def _vectors(products: int) -> int:
    return -(-products // _VECTOR)


def is_plain(output: TensorInfo, activation: Activation) -> bool:
    """Return whether an output meets the conditions of `ferrule_is_plain`."""
    return (output.zero_point, *activation_range(activation, output)) == (-128, -128, 127)


_MVE = frozenset({Feature.MVE})
MVE_CONV_2D_ROW = Row(kernel="conv2d_mve_s8", needs=_MVE, candidate=_conv2d)
MVE_FULLY_CONNECTED_ROW = Row(kernel="fully_connected_mve_s8", needs=_MVE, candidate=_fully_connected)
