# SPDX-License-Identifier: Apache-2.0
"""The weights and scales of int8 channels, without what is dead, and the forms in which kernels have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import (
    Ranges,
    channel_axis,
    channel_ranges,
    extreme_sums,
    product_matrix,
    product_ranges,
    stored_ranges,
)
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import Factor, factor_arrays
from ferrule.operators.weighted.products import folded_bias

_LARGEST_DATA = 128
"""The largest magnitude of an int8."""
_LARGEST_RIGHT_SHIFT = 22
"""An 8-bit zero point, shifted left by this number, plus an accumulator below 2**30 fits into 32 bits."""
_WORTH_LISTING = 0.75
_QUARTER = Factor(multiplier=1 << 30, shift=-1)
"""The scale of a dead channel, whose sum is four times its value: a scale of 1/2 would lack the shift to the right."""


@frozen(eq=False)
class Channels:
    """The weights and scales that turn int8 data into the stored values of output channels of a layer.

    A dead channel always stores the same value. The weights of dead channels and of constant data are zero.
    """

    layer: Convolution
    places: Array
    """The indices of the channels in an output pixel."""
    matrix: Array
    """int8 weights, [channels, products]."""
    bias: Array
    """int64, one per channel; includes the contribution of the data's zero point."""
    factors: Sequence[Factor]
    dead: Array
    """bool, one per channel of an output pixel: whether the channel is dead."""
    fixed: Array
    """int8, one per channel of an output pixel: the value that a dead channel stores; undefined for other channels."""

    @property
    def rounding(self) -> Rounding:
        """The layer's rule."""
        return self.layer.context.layer.rounding

    @property
    def live(self) -> Channels:
        """The channels that are not dead."""
        return self.chosen(~self.dead[self.places])

    @property
    def reach(self) -> Array:
        """The largest possible magnitude of each channel's accumulator, for any order of summation."""
        products: Array = np.abs(self.matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA
        return products + np.abs(self.bias)

    @property
    def fixed_pixel(self) -> Array | None:
        """The values of the dead channels as an output pixel; None if there are none."""
        return self.fixed if self.dead.any() else None

    def chosen(self, channels: Array) -> Channels:
        """Return those of these channels that have the given indices, or for which a bool is true."""
        indices = np.arange(len(self.places))[channels]
        return replace(
            self,
            places=self.places[indices],
            matrix=self.matrix[indices],
            bias=self.bias[indices],
            factors=[self.factors[index] for index in indices],
        )

    def in_blocks(self, size: int) -> Channels:
        """Return the channels, the last one repeated up to whole blocks of so many."""
        count = len(self.places)
        return self.chosen(np.minimum(np.arange(-(-count // size) * size), count - 1))


def int8_channels(layer: Convolution) -> Channels:
    """Return the output channels of a layer of int8; dead channels and constant data are folded."""
    context, output = layer.context, layer.output
    data, weights = context.operands.pair
    matrix = product_matrix(context.layer, weights_of(context))
    bias = folded_bias(matrix.sum(axis=1, dtype=np.int64), context.constant(2), data.zero_point)
    given = product_ranges(context.layer, data, weights, channel_ranges(context.graph, data.name))
    if given is None:
        given = Ranges(low=np.full((1, 1), -128, np.int64), high=np.full((1, 1), 127, np.int64))
    sums = extreme_sums(matrix, bias, given)
    stored = stored_ranges(context.operands, layer.activation, channel_axis(context.layer), sums)
    same = np.broadcast_to(given.constant, matrix.shape)
    bias = bias + np.where(same, matrix.astype(np.int64) * given.low, 0).sum(axis=1)
    return Channels(
        layer=layer,
        places=np.arange(len(matrix)),
        matrix=np.where(same | stored.constant[:, None], 0, matrix).astype(np.int8),
        bias=np.where(stored.constant, 4 * (stored.low - output.zero_point), bias),
        factors=[_QUARTER if dead else f for dead, f in zip(stored.constant, layer.factors(), strict=True)],
        dead=stored.constant,
        fixed=stored.low.astype(np.int8),
    )


def is_plain(layer: Convolution) -> bool:
    """Return whether an output meets the conditions of `ferrule_is_plain`: no values below the zero point, no clamp."""
    return tuple(layer.output_fields.values()) == (-128, -128, 127)


def has_full_range(layer: Convolution) -> bool:
    """Return whether an output is clamped to int8 only."""
    limits = layer.output_fields
    return (limits["low"], limits["high"]) == (-128, 127)


def extreme_channel_sums(channels: Channels) -> tuple[Array, Array]:
    """Return the lowest and the highest sum of each channel, for any int8 data."""
    return extreme_sums(channels.matrix, channels.bias, Ranges(low=np.array(-128), high=np.array(127)))


def can_pair(channels: Channels) -> bool:
    """Return whether every channel is within the limits of the packed form."""
    second = np.abs(channels.matrix[1::2].astype(np.int64)).sum(axis=1).max(initial=0)
    return bool(second * _LARGEST_DATA < 1 << 23) and can_pair_in_pieces(channels)


def can_pair_in_pieces(channels: Channels) -> bool:
    """Return whether every channel is within the limits of the packed form if sums are added in pieces."""
    return not (channels.matrix[1::2] == -128).any() and can_scale(channels)


def can_scale(channels: Channels) -> bool:
    """Return whether `ferrule_store_s8`, or its like for other rules, has the results of the layer's rule."""
    # With zero point -128 and limits -128 and 127, TFLM's halves below zero are clamped; otherwise they need a shift.
    plain = is_plain(channels.layer)
    right = np.array([-factor.shift for factor in channels.factors] or [1], np.int64)
    least = 0 if plain and channels.rounding is Rounding.TFLM else 1
    if right.min() < least or right.max() > _LARGEST_RIGHT_SHIFT:
        return False
    return bool((channels.reach < 1 << 30).all())


def pair_weights(matrix: Array, channels_per_block: int) -> Array:
    """Return the weights as int32 words of two 16-bit numbers, each of which holds weights of two output channels.

    The order is: blocks of channels; in a block, groups of four products; in a group, products 0 and 2 before 1 and 3;
    in each half of a group, the channel pairs of the block. Missing channels and products are zero.
    """
    whole = filled(matrix.astype(np.int32), channels_per_block, 4)
    pairs = (whole[0::2] + 256 * whole[1::2]).astype(np.int16)
    # [block, pair, group, half of a pair, parity] -> [block, group, parity, pair, half of a pair]
    split = pairs.reshape(-1, channels_per_block // 2, whole.shape[1] // 4, 2, 2)
    return words(split.transpose(0, 2, 4, 1, 3))


def channel_words(channels: Channels, multiple: int) -> Array:
    """Return twice the bias, the multiplier and the right shift per channel, zero-padded to `multiple` channels."""
    multipliers, shifts = factor_arrays(channels.factors)
    return filled(np.column_stack([2 * channels.bias, multipliers, -shifts]), multiple, 3).reshape(-1).astype(np.int32)


def used_inputs(matrix: Array, lanes: int = 1) -> Array | None:
    """Return the inputs that have weights, at least one; None unless at least a quarter of the lanes has none.

    Collecting listed inputs takes longer than reading all in order.
    """
    used = np.flatnonzero(matrix.any(axis=0)) if matrix.any() else np.zeros(1, np.intp)
    return None if -(-used.size // lanes) * lanes > _WORTH_LISTING * matrix.shape[1] else used
