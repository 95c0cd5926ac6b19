# SPDX-License-Identifier: Apache-2.0
"""Weights of two output channels in one 16-bit number, as `ferrule/kernels/paired.h` describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range, multiply_by_quantized_multiplier
from ferrule.operators.weighted import Factor, folded_bias

_LARGEST_DATA = 128
"""The largest magnitude of an int8."""
_LARGEST_RIGHT_SHIFT = 22
"""With it, a zero point of 8 bits and an accumulator below 2**30 fit 32 bits."""
_QUARTER = Factor(multiplier=1 << 30, shift=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channels:
    """What turns the int8 products of each output channel into stored values."""

    matrix: Array
    """int8 weights, [channels, products]."""
    bias: Array
    """int64 per channel, with what the data's zero point contributes."""
    factors: Sequence[Factor]

    @property
    def reach(self) -> Array:
        """The largest magnitude of each channel's accumulator, in whatever order it is summed."""
        products: Array = np.abs(self.matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DATA
        return products + np.abs(self.bias)


def int8_channels(
    context: LoweringContext, matrix: Array, channel_factors: Sequence[Factor], activation: Activation
) -> Channels:
    """Return what the layer does with each output channel; `matrix` is [channels, products].

    Channels that give one stored value alone have no weights: training leaves dead channels, with biases so large
    that no packed form holds their sums.
    """
    output = context.operands.output
    low, high = activation_range(activation, output)
    bias = folded_bias(matrix.sum(axis=1, dtype=np.int64), context.constant(2), context.input(0).zero_point)
    channels = Channels(matrix=matrix, bias=bias, factors=channel_factors)
    return fold_constants(channels, zero_point=output.zero_point, low=low, high=high)


def fold_constants(channels: Channels, *, zero_point: int, low: int, high: int) -> Channels:
    """Return channels with the same stored values, where those that give one value alone have no weights."""
    weights = channels.matrix.astype(np.int64)
    reach = weights.clip(min=0).sum(axis=1) * 127 - weights.clip(max=0).sum(axis=1) * 128
    depth = weights.clip(min=0).sum(axis=1) * 128 - weights.clip(max=0).sum(axis=1) * 127
    multipliers = np.array([factor.multiplier for factor in channels.factors], np.int64)
    shifts = np.array([factor.shift for factor in channels.factors], np.int64)

    def stored(sums: Array) -> Array:
        return np.clip(multiply_by_quantized_multiplier(sums, multipliers, shifts) + zero_point, low, high)

    # Stored values do not fall while sums rise, as long as the left shift does not wrap.
    lowest, highest = stored(channels.bias - depth), stored(channels.bias + reach)
    whole = channels.reach.astype(np.float64) * np.exp2(np.maximum(shifts, 0)) < 2.0**31
    constant = (lowest == highest) & whole
    matrix, bias = channels.matrix.copy(), channels.bias.copy()
    matrix[constant] = 0
    bias[constant] = 4 * (lowest[constant] - zero_point)
    factors = [_QUARTER if fixed else factor for fixed, factor in zip(constant, channels.factors, strict=True)]
    return Channels(matrix=matrix, bias=bias, factors=factors)


def can_pair(channels: Channels, output: TensorInfo, activation: Activation) -> bool:
    """Whether every channel keeps to the limits of the packed form."""
    second = channels.matrix[1::2].astype(np.int64)
    if np.abs(second).sum(axis=1).max(initial=0) * _LARGEST_DATA >= 1 << 23 or (second == -128).any():
        return False
    return can_scale(channels, output, activation)


def can_scale(channels: Channels, output: TensorInfo, activation: Activation) -> bool:
    """Whether `ferrule_store_s8` gives what the reference kernels give."""
    # With zero point and clamp at the ends of int8 halves below zero are cut off; else they need a right shift.
    plain = (output.zero_point, *activation_range(activation, output)) == (-128, -128, 127)
    right = np.array([-factor.shift for factor in channels.factors], np.int64)
    if right.min() < (0 if plain else 1) or right.max() > _LARGEST_RIGHT_SHIFT:
        return False
    return bool((channels.reach < 1 << 30).all())


def pair_weights(matrix: Array, channels_per_block: int) -> Array:
    """Return the weights as int32 words of two 16-bit pairs.

    Blocks of channels follow each other; in a block, groups of four products, bytes 0 and 2 of each before 1 and 3;
    in each half of a group the block's channel pairs. What is missing is zero.
    """
    channels, products = matrix.shape
    blocks, groups = -(-channels // channels_per_block), -(-products // 4)
    whole = np.zeros((blocks * channels_per_block, groups * 4), np.int32)
    whole[:channels, :products] = matrix
    pairs = (whole[0::2] + 256 * whole[1::2]).astype(np.int16)
    # [block, pair, group, half of a pair, parity] -> [block, group, parity, pair, half of a pair]
    split = pairs.reshape(blocks, channels_per_block // 2, groups, 2, 2)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 1, 3)).astype("<i2").view("<i4").reshape(-1).astype(np.int32)


def channel_words(channels: Channels, multiple: int) -> Array:
    """Return twice the bias, multiplier and right shift of each channel; their number is rounded up with zeros."""
    count = len(channels.factors)
    words = np.zeros((-(-count // multiple) * multiple, 3), np.int64)
    words[:count, 0] = 2 * channels.bias
    words[:count, 1] = [factor.multiplier for factor in channels.factors]
    words[:count, 2] = [-factor.shift for factor in channels.factors]
    return words.reshape(-1).astype(np.int32)
