# SPDX-License-Identifier: Apache-2.0
"""Weights of two output channels packed into one 16-bit number, as described in `ferrule/kernels/paired.h`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.generic import weights_of
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import (
    Ranges,
    channel_ranges,
    extreme_sums,
    product_matrix,
    product_ranges,
    stored_ranges,
)
from ferrule.backends.firmware import Blob, LoweringContext
from ferrule.graph import Array, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.weighted import Factor, factors, folded_bias

_LARGEST_DATA = 128
"""The largest magnitude of an int8."""
_LARGEST_RIGHT_SHIFT = 22
"""An 8-bit zero point, shifted left by this number, plus an accumulator below 2**30 fits into 32 bits."""
_QUARTER = Factor(multiplier=1 << 30, shift=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channels:
    """The weights and scales that turn int8 data into the stored values of each output channel.

    A dead channel always stores the same value. The weights of dead channels and of constant data are zero.
    """

    matrix: Array
    """int8 weights, [channels, products]."""
    bias: Array
    """int64, one per channel; includes the contribution of the data's zero point."""
    factors: Sequence[Factor]
    dead: Array
    """bool, one per channel: whether the channel is dead."""
    fixed: Array
    """int8, one per channel: the value that a dead channel stores; undefined for other channels."""
    rounding: Rounding
    """The layer's rule."""

    @property
    def reach(self) -> Array:
        """The largest possible magnitude of each channel's accumulator, for any order of summation."""
        products: Array = np.abs(self.matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA
        return products + np.abs(self.bias)

    def chosen(self, channels: Array) -> Channels:
        """Return the channels with the given indices."""
        return Channels(
            matrix=self.matrix[channels],
            bias=self.bias[channels],
            factors=[self.factors[channel] for channel in channels],
            dead=self.dead[channels],
            fixed=self.fixed[channels],
            rounding=self.rounding,
        )


def int8_channels(context: LoweringContext, activation: Activation, channel_axis: int) -> Channels:
    """Return the output channels of a weighted layer; dead channels and constant data are folded."""
    layer, operands = context.layer, context.operands
    data, output = operands.input(0), operands.output
    matrix = product_matrix(layer, weights_of(context))
    bias = folded_bias(matrix.sum(axis=1, dtype=np.int64), context.constant(2), data.zero_point)
    channel_factors = list(factors(operands, channel_axis))
    known = channel_ranges(context.graph, data.name)
    given = product_ranges(layer, data, operands.input(1), known)
    if given is None:
        given = Ranges(low=np.full((1, 1), -128, np.int64), high=np.full((1, 1), 127, np.int64))
    stored = stored_ranges(operands, activation, channel_axis, extreme_sums(matrix, bias, given))
    same = np.broadcast_to(given.constant, matrix.shape)
    bias = bias + np.where(same, matrix.astype(np.int64) * given.low, 0).sum(axis=1)
    matrix = np.where(same | stored.constant[:, None], 0, matrix).astype(np.int8)
    bias = np.where(stored.constant, 4 * (stored.low - output.zero_point), bias)
    return Channels(
        matrix=matrix,
        bias=bias,
        factors=[_QUARTER if dead else f for dead, f in zip(stored.constant, channel_factors, strict=True)],
        dead=stored.constant,
        fixed=stored.low.astype(np.int8),
        rounding=operands.rounding,
    )


def can_pair(channels: Channels, output: TensorInfo, activation: Activation) -> bool:
    """Return whether every channel is within the limits of the packed form."""
    second = channels.matrix[1::2].astype(np.int64)
    if np.abs(second).sum(axis=1).max(initial=0) * _LARGEST_DATA >= 1 << 23 or (second == -128).any():
        return False
    return can_scale(channels, output, activation)


def can_scale(channels: Channels, output: TensorInfo, activation: Activation) -> bool:
    """Return whether `ferrule_store_s8`, or its like for other rules, has the results of the layer's rule."""
    # With zero point -128 and limits -128 and 127, TFLM's halves below zero are clamped; otherwise they need a shift.
    plain = (output.zero_point, *activation_range(activation, output)) == (-128, -128, 127)
    right = np.array([-factor.shift for factor in channels.factors] or [1], np.int64)
    least = 0 if plain and channels.rounding is Rounding.TFLM else 1
    if right.min() < least or right.max() > _LARGEST_RIGHT_SHIFT:
        return False
    return bool((channels.reach < 1 << 30).all())


def pair_weights(matrix: Array, channels_per_block: int) -> Array:
    """Return the weights as int32 words of two 16-bit pairs.

    The order is: blocks of channels; in a block, groups of four products; in a group, products 0 and 2 before 1 and 3;
    in each half of a group, the channel pairs of the block. Missing channels and products are zero.
    """
    channels, products = matrix.shape
    blocks, groups = max(-(-channels // channels_per_block), 1), max(-(-products // 4), 1)
    whole = np.zeros((blocks * channels_per_block, groups * 4), np.int32)
    whole[:channels, :products] = matrix
    pairs = (whole[0::2] + 256 * whole[1::2]).astype(np.int16)
    # [block, pair, group, half of a pair, parity] -> [block, group, parity, pair, half of a pair]
    split = pairs.reshape(blocks, channels_per_block // 2, groups, 2, 2)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 1, 3)).astype("<i2").view("<i4").reshape(-1).astype(np.int32)


def channel_words(channels: Channels, multiple: int) -> Array:
    """Return twice the bias, the multiplier and the right shift per channel, zero-padded to `multiple` channels."""
    count = len(channels.factors)
    words = np.zeros((max(-(-count // multiple), 1) * multiple, 3), np.int64)
    words[:count, 0] = 2 * channels.bias
    words[:count, 1] = [factor.multiplier for factor in channels.factors]
    words[:count, 2] = [-factor.shift for factor in channels.factors]
    return words.reshape(-1).astype(np.int32)


def live_blobs(context: LoweringContext, channels: Channels, live: Array) -> tuple[Blob, Blob | None]:
    """Return the indices of the live channels, and the values of the dead ones as an output pixel (None if none)."""
    fixed = context.blob("fixed", channels.fixed) if channels.dead.any() else None
    return context.blob("positions", _at_least_one(live).astype(np.int16)), fixed


def _at_least_one(values: Array) -> Array:
    """Return the values, or a single zero: C has no empty arrays."""
    return values if values.size else np.zeros(1, values.dtype)
