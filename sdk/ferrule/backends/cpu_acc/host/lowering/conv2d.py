# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED with the host's vector instructions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.backends.cpu_acc.host.lowering.call import (
    HEADER,
    MIN_PRODUCTS,
    PIECES,
    POOL,
    Host,
    host_call,
    int8_scales,
)
from ferrule.backends.cpu_acc.host.lowering.image import Image
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import Array, DataType, LayerType, Shape
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.products import has_zero_point

_LEAST_TILE_PIXELS = 8
_LEAST_TILE_WEIGHTS = 2048
_LEAST_TILE_PRODUCTS = 1 << 17
"""The fewest pixels of a row, weights and multiply-adds of a layer for which tiles of matrices are faster than vectors.

Setting them up takes 0.1 microseconds, and what follows the sums takes the same.
"""


def lower_conv2d(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for an int8 or float32 CONV_2D or FULLY_CONNECTED.

    None for other types, for groups and for weights with a zero point.
    """
    grouped = context.layer.type is LayerType.CONV_2D and groups_of(context.source, context.input(1)) > 1
    if grouped or has_zero_point(context.input(1)):
        return None
    layer, weights = Convolution.of(context), weights_of(context)
    return lower_products(layer, host, weights.reshape(len(weights), layer.window.height, layer.window.width, -1))


def _segments(window: Window, weights: Array) -> Array:
    """Return OHWI weights as [channels, segments, elements]; a segment is contiguous in the image."""
    channels, height, width, depth = weights.shape
    if window.dilation_w == 1:
        return weights.reshape(channels, height, width * depth)
    return weights.reshape(channels, height * width, depth)


def _suits_tiles(after: Shape, weights: int) -> bool:
    products = after[1] * after[2] * weights
    return after[2] >= _LEAST_TILE_PIXELS and weights >= _LEAST_TILE_WEIGHTS and products >= _LEAST_TILE_PRODUCTS


def lower_products(layer: Convolution, host: Host, weights: Array) -> LoweredOp | None:
    """Return the call of the tile kernel, given the weights as OHWI; None for types other than int8 and float32."""
    context, window, dtype = layer.context, layer.window, layer.image.dtype
    if dtype not in {DataType.INT8, DataType.FLOAT32}:
        return None
    before, after = layer.image.shape, layer.output.shape
    if window.is_pointwise:  # an image of one row is equivalent
        before, after = (1, 1, layer.pixels, before[3]), (1, 1, layer.pixels, after[3])
    zero_point = 0 if dtype.is_float else layer.image.zero_point
    image = Image.for_window(window, before, after, zero_point=zero_point)
    segments, lanes = _segments(window, weights), host.instructions.lanes
    closing: Mapping[str, Member]
    tiles: Mapping[str, Member] = {}
    if dtype.is_float:
        kernel, element_bytes, word_elements = "conv2d_f32", 4, 1
        scales = pack_scales(layer.bias(np.float32)[None], lanes)
        closing = limit_fields(layer.output, layer.activation)
    else:
        kernel, element_bytes = "conv2d_s8", host.instructions.element_bytes
        word_elements = host.instructions.word_elements
        found = int8_scales(layer, segments.reshape(len(segments), -1), host.instructions)
        scales, rounding = found.packed(block_channels(len(segments), lanes))
        segments = segments.astype(np.dtype(f"i{element_bytes}"))
        closing = {"rounding": rounding, "output": layer.output_fields}
        tiles = {"tiles": int(host.instructions.tiles and _suits_tiles(after, weights.size))}
    pixels = after[1] * after[2]
    members: Mapping[str, Member] = {
        "image": image.fields(),
        "output_h": after[1],
        "output_w": after[2],
        "output_c": after[3],
        "row_step": window.stride_h * image.row_elements,
        "column_step": window.stride_w * before[3],
        "segments": segments.shape[1],
        "words": -(-segments.shape[2] // word_elements),
        "offsets": image.offsets(window, by_columns=window.dilation_w != 1),
        "weights": as_bytes(pack_weights(segments, lanes, word_elements)),
        "scales": scales,
        **tiles,
        **closing,
        PIECES: host.pieces(pixels * weights.size, MIN_PRODUCTS, pixels),
    }
    call = KernelCall(kernel, HEADER, members, scratch_bytes=image.scratch_bytes(element_bytes), further=(POOL,))
    return host_call(context, host, call)


def block_groups(channels: int, lanes: int) -> list[int]:
    """Return the sizes of the groups of blocks that a kernel processes together; each has 4, 2 or 1 blocks."""
    groups = []
    while channels > 0:
        groups.append(4 if channels > 3 * lanes else 2 if channels > lanes else 1)
        channels -= groups[-1] * lanes
    return groups


def pack_weights(segments: Array, lanes: int, word_elements: int) -> Array:
    """Return weights [channels, segments, elements] in order of use: group, segment, word, block, lane, element."""
    groups = block_groups(len(segments), lanes)
    whole = filled(segments, sum(groups) * lanes, 1, word_elements)
    whole = whole.reshape(-1, lanes, whole.shape[1], whole.shape[2] // word_elements, word_elements)
    parts = np.split(whole, np.cumsum(groups)[:-1])
    return np.concatenate([part.transpose(2, 3, 0, 1, 4).reshape(-1) for part in parts])


def as_bytes(weights: Array) -> Array:
    """Return integer weights as bytes in this host's order, the type that kernels of every set declare."""
    return weights if weights.dtype == np.float32 else np.ascontiguousarray(weights).reshape(-1).view(np.int8)


def block_channels(channels: int, lanes: int) -> Array:
    """Return the channel of each lane of each block, [blocks, lanes]; -1 for lanes without one."""
    places = np.arange(sum(block_groups(channels, lanes)) * lanes)
    return np.where(places < channels, places, -1).reshape(-1, lanes)


def pack_scales(scales: Array, lanes: int) -> Array:
    """Return scales [kinds, channels] as one vector per block and kind."""
    whole = filled(scales, 1, sum(block_groups(scales.shape[1], lanes)) * lanes)
    return whole.reshape(len(scales), -1, lanes).transpose(1, 0, 2).reshape(-1)
