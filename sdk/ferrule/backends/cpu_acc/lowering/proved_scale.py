# SPDX-License-Identifier: Apache-2.0
"""Constants that requantise accumulators with one multiplication, proved for each channel.

The C (`ferrule/kernels/proved_scale.h`) stores ((256 * sum + bias) * multiplier) >> 43, saturated to int8. Channels
with a very small factor have 128 for 256, so that the bias, which includes the zero point, fits into 32 bits. Neither
this nor the reference's value ever decreases when the sum grows, so they are equal for every sum if they are equal
where the reference's value changes: at the least sum of each value and at the sum just below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.paired import Channels
from ferrule.graph import Array, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range

_SUM_BITS = (8, 7)
"""Sums are multiplied by 2**8 or 2**7, since weights are."""
_SHIFT = 11
"""The value of FERRULE_DEPTHWISE_SHIFT."""
_CANDIDATES = 2000
"""The number of multipliers to try above, and below, the one nearest to the factor."""
_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvedScales:
    """One entry per channel, all of them int32."""

    bias: Array
    multiplier: Array
    """With the highest bit set where weights are halved."""


def proved_scales(channels: Channels, output: TensorInfo, activation: Activation) -> ProvedScales | None:
    """Return the constants of each channel; None if there are none for some channel.

    The zero point and the limits of the output must be -128, -128 and 127, as after a RELU.
    """
    if (output.zero_point, *activation_range(activation, output)) != (-128, -128, 127):
        return None
    found = []
    products = channels.matrix.astype(np.int64)
    low = channels.bias + np.where(products < 0, products * 127, products * -128).sum(axis=1)
    high = channels.bias + np.where(products < 0, products * -128, products * 127).sum(axis=1)
    for index in range(len(channels.factors)):
        constants = _of_channel(channels, index, int(low[index]), int(high[index]))
        if constants is None:
            return None
        found.append(constants)
    words = np.array(found, np.int64).reshape(-1, 2)
    return ProvedScales(bias=words[:, 0].astype(np.int32), multiplier=words[:, 1].astype(np.int32))


def _of_channel(channels: Channels, index: int, low: int, high: int) -> tuple[int, int] | None:
    """Return bias and multiplier of a channel whose sums are from `low` to `high`; None if there are none."""
    factor = channels.factors[index]
    for bits in _SUM_BITS:
        constants = _prove(factor.multiplier, factor.shift, low, high, bits)
        if constants is None:
            continue
        multiplier, zero = constants
        bias = zero + (int(channels.bias[index]) << bits)
        if abs(zero) + (int(channels.reach[index]) << bits) < _LIMIT:
            return bias, multiplier if bits == _SUM_BITS[0] else multiplier - _LIMIT
    return None


def least_sums(multiplier: int, shift: int) -> Array:
    """Return the least sum for which the reference's product is at least 1, 2, ... 255; `shift` is not positive.

    For a product of N, the first rounding must give at least N - 1/2 times 2**-shift, rounded up; it rounds halves up.
    """
    wanted = np.arange(1, 256, dtype=object)
    rounded = ((2 * wanted - 1) * (1 << -shift) + 1) // 2
    least: Array = (-((-rounded * (1 << 31) + (1 << 30)) // multiplier)).astype(np.int64)
    return least


def _prove(multiplier: int, shift: int, low: int, high: int, bits: int) -> tuple[int, int] | None:
    """Return multiplier and bias, without the channel's own, for sums from `low` to `high`; None if there are none."""
    nearest = round(multiplier * 2.0 ** (1 + shift + _SHIFT - bits))
    if shift > 0 or not _CANDIDATES < nearest < _LIMIT - _CANDIDATES:
        return None
    sums = least_sums(multiplier, shift)
    reached = (sums > low) & (sums <= high)
    values = np.arange(-127, 128, dtype=np.int64)[reached] << (32 + _SHIFT)
    sums = sums[reached]
    if not sums.size:
        return _constant(nearest, (low, high), int((least_sums(multiplier, shift) <= low).sum()) - 128, bits)
    for start in range(0, _CANDIDATES, 40):
        near = np.arange(start, start + 40, dtype=np.int64)
        candidates = nearest + np.concatenate([near, -near])
        needed = -((-values[:, None]) // candidates)
        least = (needed - (sums[:, None] << bits)).max(axis=0)
        most = (needed - 1 - ((sums[:, None] - 1) << bits)).min(axis=0)
        fitting = np.flatnonzero(least <= most)
        if fitting.size:
            best = fitting[0]
            return int(candidates[best]), int(least[best] + most[best]) // 2
    return None


def _constant(multiplier: int, ends: tuple[int, int], value: int, bits: int) -> tuple[int, int] | None:
    """Return constants with which all sums between the ends have one value."""
    bias = -(-((2 * value + 1) << (31 + _SHIFT)) // multiplier) - (sum(ends) << (bits - 1))
    values = {min(max((((end << bits) + bias) * multiplier) >> (32 + _SHIFT), -128), 127) for end in ends}
    return (multiplier, bias) if values == {value} else None
