# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED with the host's vector instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.host.lowering.call import MIN_PRODUCTS, PIECES, Host, float_bias, host_call, int8_scales
from ferrule.backends.cpu_acc.host.lowering.image import Image
from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, output_value
from ferrule.backends.cpu_acc.lowering.kernels.generic import weights_of
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Shape
from ferrule.operators.activation import Activation
from ferrule.operators.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import Factor, factors, has_zero_point
from ferrule.operators.window import Window

_POINT = Window(height=1, width=1, stride_h=1, stride_w=1)


def lower_conv2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for an int8 or float32 CONV_2D without groups and zero point of the weights, None for others."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if has_zero_point(context.input(1)):
        return None
    image, output, weights = context.input(0), context.operands.output, weights_of(context)
    if groups_of(image, context.input(1)) > 1:
        return None
    window = descriptor.window(context.input(1))
    return lower_products(
        context,
        host,
        Convolution(window=window, image=image.shape, output=output.shape, weights=weights),
        activation=descriptor.activation,
        channel_factors=() if image.dtype.is_float else factors(context.operands, 0),
    )


def lower_fully_connected(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for an int8 or float32 FULLY_CONNECTED: a convolution over an image of one row.

    None for weights with a zero point.
    """
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if has_zero_point(context.input(1)):
        return None
    data, weights = context.input(0), weights_of(context)
    channels, products = weights.shape
    rows = data.elements // products
    return lower_products(
        context,
        host,
        Convolution(
            window=_POINT,
            image=(1, 1, rows, products),
            output=(1, 1, rows, channels),
            weights=weights.reshape(channels, 1, 1, products),
        ),
        activation=descriptor.activation,
        channel_factors=() if data.dtype.is_float else factors(context.operands, 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Convolution:
    """The window, shapes and weights of a convolution."""

    window: Window
    image: Shape
    output: Shape
    weights: Array
    """OHWI."""

    def flattened(self) -> Convolution:
        """Return the equivalent convolution over an image of one row if the window is one pixel with stride 1."""
        if not self.window.is_pointwise:
            return self
        batches, height, width, channels = self.image
        pixels = batches * height * width
        return Convolution(
            window=self.window,
            image=(1, 1, pixels, channels),
            output=(1, 1, pixels, self.output[3]),
            weights=self.weights,
        )

    def segments(self) -> Array:
        """Return the weights as [channels, segments, elements]; a segment is contiguous in the image."""
        channels, height, width, depth = self.weights.shape
        if self.window.dilation_w == 1:
            return self.weights.reshape(channels, height, width * depth)
        return self.weights.reshape(channels, height * width, depth)

    def offsets(self, image: Image) -> Array:
        """Return the offset, in elements, of the start of each segment in the image."""
        window = self.window
        columns = 1 if window.dilation_w == 1 else window.width
        found = [
            image.offset(i * window.dilation_h, j * window.dilation_w)
            for i in range(window.height)
            for j in range(columns)
        ]
        return np.array(found, np.int32)


def lower_products(
    context: LoweringContext,
    host: Host,
    convolution: Convolution,
    *,
    activation: Activation,
    channel_factors: Sequence[Factor],
) -> LoweredOp | None:
    """Return the call of the tile kernel; None for types other than int8 and float32."""
    dtype, info = context.input(0).dtype, context.operands.output
    if dtype not in {DataType.INT8, DataType.FLOAT32}:
        return None
    work = convolution.flattened()
    zero_point = 0 if dtype.is_float else context.input(0).zero_point
    image = Image.for_window(work.window, work.image, work.output, zero_point=zero_point)
    segments = work.segments()
    lanes = host.instructions.lanes
    word_elements = 1 if dtype.is_float else host.instructions.word_elements
    closing: dict[str, FieldValue]
    if dtype.is_float:
        scales = pack_scales(float_bias(context, len(segments)), lanes)
        low, high = float_limits(activation)
        closing = {"low": low, "high": high}
    else:
        found = int8_scales(
            context, segments.reshape(len(segments), -1), channel_factors, activation, host.instructions
        )
        scales, rounding = found.packed(block_channels(len(segments), lanes))
        segments = segments.astype(np.dtype(f"i{host.instructions.element_bytes}"))
        closing = {"rounding": context.blob("rounding", rounding), "output": output_value(info, activation)}
    pixels = work.output[1] * work.output[2]
    closing[PIECES] = host.pieces(pixels * work.weights.size, MIN_PRODUCTS, pixels)
    members: dict[str, FieldValue] = {
        "image": image.value(),
        "output_h": work.output[1],
        "output_w": work.output[2],
        "output_c": work.output[3],
        "row_step": work.window.stride_h * image.row_elements,
        "column_step": work.window.stride_w * work.image[3],
        "segments": segments.shape[1],
        "words": -(-segments.shape[2] // word_elements),
        "offsets": context.blob("offsets", work.offsets(image)),
        "weights": context.blob("weights", as_bytes(pack_weights(segments, lanes, word_elements))),
        "scales": context.blob("scales", scales.reshape(-1)),
    }
    return host_call(
        context,
        host,
        "conv2d_f32" if dtype.is_float else "conv2d_s8",
        members | closing,
        scratch_bytes=image.scratch_bytes(4 if dtype.is_float else host.instructions.element_bytes),
    )


def block_groups(channels: int, lanes: int) -> list[int]:
    """Return the sizes of the groups of blocks that a kernel processes together; each has 4, 2 or 1 blocks."""
    groups = []
    while channels > 0:
        groups.append(4 if channels > 3 * lanes else 2 if channels > lanes else 1)
        channels -= groups[-1] * lanes
    return groups


def pack_weights(segments: Array, lanes: int, word_elements: int) -> Array:
    """Return weights [channels, segments, elements] in order of use: group, segment, word, block, lane, element."""
    channels, count, elements = segments.shape
    groups = block_groups(channels, lanes)
    words = -(-elements // word_elements)
    whole = np.zeros((sum(groups) * lanes, count, words * word_elements), segments.dtype)
    whole[:channels, :, :elements] = segments
    packed, first = [], 0
    for blocks in groups:
        part = whole[first : first + blocks * lanes].reshape(blocks, lanes, count, words, word_elements)
        packed.append(part.transpose(2, 3, 0, 1, 4).reshape(-1))
        first += blocks * lanes
    return np.concatenate(packed)


def as_bytes(weights: Array) -> Array:
    """Return integer weights as bytes in this host's order, the type that kernels of every set declare."""
    return weights if weights.dtype == np.float32 else np.ascontiguousarray(weights).reshape(-1).view(np.int8)


def block_channels(channels: int, lanes: int) -> Array:
    """Return the channel of each lane of each block, [blocks, lanes]; -1 for lanes without one."""
    places = np.arange(sum(block_groups(channels, lanes)) * lanes)
    return np.where(places < channels, places, -1).reshape(-1, lanes)


def pack_scales(scales: Array, lanes: int) -> Array:
    """Return scales [kinds, channels] as one vector per block and kind."""
    kinds, channels = scales.shape
    blocks = sum(block_groups(channels, lanes))
    whole = np.zeros((kinds, blocks * lanes), scales.dtype)
    whole[:, :channels] = scales
    return np.ascontiguousarray(whole.reshape(kinds, blocks, lanes).transpose(1, 0, 2)).reshape(-1)
