# SPDX-License-Identifier: Apache-2.0
"""Layers with weights and int16 data with vector instructions (MVE), see `ferrule/kernels/mve_pixels_s16.h`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, limit_fields, window_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.int16_sums import (
    WIDE_SHIFT,
    largest_sums,
    once_multipliers,
    taps_inside,
)
from ferrule.backends.cpu_acc.lowering.kernels.mve import Way, at_once, batches, by_columns
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import product_matrix
from ferrule.graph import Array, DataType, Rounding
from ferrule.operators.arithmetic.fixed_point import factor_arrays, reduced_multiplier
from ferrule.operators.weighted.products import is_wide

_HEADER = "ferrule/kernels/conv2d_mve_s16.h"
_LANES, _HALVES, _PASS = 4, 8, 8
"""Channels of a block, products of a vector, and vectors of products between two branches."""
_WORD_SHIFT = 31
"""The vectors' product shifts to the right by this."""


class Sums(IntEnum):
    """How sums are kept and rounded: the FERRULE_MVE_* of the header."""

    ONCE = 0
    TWICE = 1
    WIDE = 2


@frozen(eq=False)
class _Channels:
    """The weights, [channels, products], and the scales of a layer."""

    layer: Convolution
    matrix: Array

    @property
    def blocks(self) -> int:
        """Blocks of channels."""
        return -(-int(self.matrix.shape[0]) // _LANES)

    @property
    def vectors(self) -> int:
        """Vectors of products."""
        return -(-int(self.matrix.shape[1]) // _HALVES)

    @property
    def kind(self) -> Sums | str:
        """The cheapest exact form of the sums; the reason if there is none."""
        reach, (_, shifts) = largest_sums(self.layer.bias(np.int64), self.matrix), factor_arrays(self.layer.factors())
        fits = reach.max() < 1 << 31
        if is_wide(self.layer.context.operands):
            whole = shifts.max() <= 0 and shifts.min() >= WIDE_SHIFT - _WORD_SHIFT
            return Sums.ONCE if fits and whole else Sums.WIDE
        return Sums.TWICE if fits and shifts.max() < 0 else TOO_LARGE

    def stream(self, sums: Sums) -> Array:
        """Return the words of `struct ferrule_mve_weights_s16`."""
        matrix = filled(self.matrix, _LANES, _HALVES)
        blocks, vectors = len(matrix) // _LANES, matrix.shape[1] // _HALVES
        multipliers, shifts = factor_arrays(self.layer.factors())
        match sums:
            case Sums.ONCE:
                multipliers = once_multipliers(self.layer.factors(), _WORD_SHIFT)
            case Sums.WIDE:
                multipliers = reduced_multiplier(multipliers)
        bias = _whole(self.layer.bias(np.int64)).astype("<i8")
        parts = [
            bias.view("<i4") if sums is Sums.WIDE else bias.astype(np.int32),
            words(matrix.reshape(blocks, _LANES, vectors, _HALVES).transpose(0, 2, 1, 3)),
            _whole(multipliers).astype(np.int32),
        ]
        if sums is not Sums.ONCE:
            parts.append(_whole(shifts).astype(np.int32))
        return np.concatenate([part.reshape(blocks, -1) for part in parts], axis=1).reshape(-1).astype(np.int32)

    def fields(self, sums: Sums, stream: Array) -> Mapping[str, Member]:
        layer = self.layer
        return {
            "stream": layer.context.blob("weights", stream),
            "sums": int(sums),
            "products": self.matrix.shape[1],
            "output_c": layer.output.shape[3],
            **limit_fields(layer.output, layer.activation),
        }

    def wide_instructions(self, rows: int) -> int:
        """Return an estimate for single rows with wide sums."""
        return rows * (self.blocks * (10 * self.vectors + 34) + 20 * len(self.matrix) + 20)

    def pair_instructions(self, count: int, together: int, pixels: int, sums: Sums) -> int:
        """Return an estimate for `count` pixels, in batches of `pixels` that do not go over `together` pixels."""
        sizes = batches(together, pixels)
        pairs, calls = sum(-(-size // 2) for size in sizes), sum(1 + (size % 2 and size > 1) for size in sizes)
        block = 14 * self.vectors + 2 * -(-self.vectors // _PASS) + 25 + (7 if sums is Sums.TWICE else 0)
        return count // together * (pairs * (self.blocks * block + 20) + 110 * calls)


def _whole(values: Array) -> Array:
    """Return a value for each channel of whole blocks; those of missing channels are 0."""
    return np.pad(values, (0, -len(values) % _LANES))


def _conv2d(layer: Convolution) -> Found:
    layer = layer.in_a_row
    window, image, output = layer.window, layer.image, layer.output.shape
    pixel_bytes = image.shape[3] * image.dtype.size_bytes
    way = Way(window=window, channels=pixel_bytes, pixel_c=pixel_bytes)
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    channels = _Channels(layer=layer, matrix=by_columns(matrix, window, image.shape[3]))
    sums = channels.kind
    if isinstance(sums, str):
        return sums
    rows, stream = output[0] * output[1], channels.stream(sums)
    in_bytes = replace(image, shape=(*image.shape[:3], way.channels))

    def candidate(pixels: int) -> Candidate:
        collected = rows * sum(way.instructions(size) for size in batches(output[2], pixels))
        multiplied = (
            channels.wide_instructions(rows * output[2])
            if sums is Sums.WIDE
            else channels.pair_instructions(rows * output[2], output[2], pixels, sums)
        )
        return Candidate(
            kernel="conv2d_mve_s16",
            instructions=collected + multiplied,
            weight_bytes=stream.nbytes,
            scratch_bytes=way.scratch(pixels),
            overlaps=layer.overlaps,
            call=lambda: KernelCall(
                "conv2d_mve_s16",
                _HEADER,
                {
                    "image": {
                        "window": window_fields(window, in_bytes, layer.output),
                        "view": {**layer.view_fields["view"], "pixel_c": pixel_bytes},
                        "input_zero_point": 0,
                        "pixels": pixels,
                        **way.fields,
                    },
                    "weights": channels.fields(sums, stream),
                },
                sources=("mve_windows", "mve_store_s16"),
            ),
        )

    return [candidate(pixels) for pixels in at_once(output[2], way.scratch)]


def _fully_connected(layer: Convolution) -> Candidate | str:
    channels = _Channels(layer=layer, matrix=product_matrix(layer.context.layer, weights_of(layer.context)))
    if not is_wide(layer.context.operands):
        return "sums of 32 bits are rounded twice"
    stream = channels.stream(Sums.WIDE)
    return Candidate(
        kernel="fully_connected_mve_s16",
        instructions=channels.wide_instructions(layer.pixels),
        weight_bytes=stream.nbytes,
        call=lambda: KernelCall(
            "fully_connected_mve_s16",
            _HEADER,
            {"rows": layer.pixels, "weights": channels.fields(Sums.WIDE, stream)},
            sources=("mve_store_s16",),
        ),
    )


def _depthwise(layer: Convolution) -> Candidate | str:
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    channels = _Channels(layer=layer, matrix=matrix)
    if channels.kind is not Sums.ONCE:
        return TOO_LARGE
    multiplier, window, blocks = layer.depth_multiplier, layer.window, -(-len(matrix) // _HALVES)
    stream = _depthwise_stream(channels)
    output, (rows, columns) = layer.output.shape, taps_inside(layer)
    return Candidate(
        kernel="depthwise_conv2d_mve_s16",
        instructions=blocks * output[0] * rows * (9 * columns + 6 * output[2])
        + layer.pixels * (26 * blocks + 12)
        + (250 + 12 * window.width) * output[0] * output[1],
        weight_bytes=stream.nbytes,
        # several channels of the output are from one of the input, which is read again for each 8
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL if multiplier == 1 else Reads.PER_ELEMENT),
        call=lambda: KernelCall(
            "depthwise_conv2d_mve_s16",
            "ferrule/kernels/depthwise_conv2d_mve_s16.h",
            {
                "window": layer.window_fields,
                "depth_multiplier": multiplier,
                "stream": layer.context.blob("weights", stream),
                **limit_fields(layer.output, layer.activation),
            },
            sources=("mve_depthwise_s16",),
        ),
    )


def _depthwise_stream(channels: _Channels) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_mve_s16_params`."""
    matrix, layer = filled(channels.matrix, _HALVES, 1), channels.layer
    blocks = len(matrix) // _HALVES

    def halves(values: Array) -> Array:
        """Return a value per channel by block, those of even channels first."""
        whole = np.pad(values, (0, -len(values) % _HALVES))
        return whole.reshape(blocks, -1, 2).transpose(0, 2, 1).reshape(blocks, -1).astype(np.int32)

    parts = [
        halves(layer.bias(np.int64)),
        words(matrix.reshape(blocks, _HALVES, -1).transpose(0, 2, 1)).reshape(blocks, -1),
        halves(once_multipliers(layer.factors(), _WORD_SHIFT)),
    ]
    if layer.depth_multiplier > 1:
        inputs = np.minimum(np.arange(len(matrix)), len(channels.matrix) - 1) // layer.depth_multiplier
        parts.insert(0, words(inputs.astype(np.uint16)).reshape(blocks, -1))
    return np.concatenate(parts, axis=1).reshape(-1)


_ROW = partial(weighted_row, rules=frozenset({Rounding.TFLM}), dtype=DataType.INT16)
MVE_CONV_2D_S16 = _ROW("conv2d_mve_s16", _conv2d, Feature.MVE)
MVE_DEPTHWISE_S16 = _ROW("depthwise_conv2d_mve_s16", _depthwise, Feature.MVE)
MVE_FULLY_CONNECTED_S16 = _ROW("fully_connected_mve_s16", _fully_connected, Feature.MVE)
