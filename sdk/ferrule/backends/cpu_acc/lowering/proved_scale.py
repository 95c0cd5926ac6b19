# SPDX-License-Identifier: Apache-2.0
"""Constants that requantise accumulators with one multiplication, proved for each channel.

The C (`ferrule/kernels/proved_scale.h`) stores the int8 nearest to ((256 * sum + bias) * multiplier) >> 43. Both this
and the reference's value never decrease when the sum grows, so they are equal for every sum if they are equal where the
reference's value changes: at the least sum of each value and at the sum just below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.lowering.paired import Channels
from ferrule.graph import Array, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range

_SUM_BITS = 8
"""Sums are multiplied by 2**8, since weights are."""
_SHIFT = 11
"""The value of FERRULE_PROVED_SHIFT."""
_CANDIDATES = 2000
"""The number of multipliers to try above, and below, the one nearest to the factor."""
_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvedScales:
    """One entry per channel, all of them int32."""

    bias: Array
    multiplier: Array


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
    for index, factor in enumerate(channels.factors):
        constants = _prove(factor.multiplier, factor.shift, int(low[index]), int(high[index]))
        if constants is None:
            return None
        bias = constants[1] + (int(channels.bias[index]) << _SUM_BITS)
        reach = int(channels.reach[index]) << _SUM_BITS
        if abs(constants[1]) + reach >= _LIMIT or not -_LIMIT <= bias < _LIMIT:
            return None
        found.append((bias, constants[0]))
    words = np.array(found, np.int64).reshape(-1, 2)
    return ProvedScales(bias=words[:, 0].astype(np.int32), multiplier=words[:, 1].astype(np.int32))


def least_sums(multiplier: int, shift: int) -> Array:
    """Return the least sum for which the reference's product is at least 1, 2, ... 255; `shift` is not positive.

    For a product of N, the first rounding must give at least N - 1/2 times 2**-shift, rounded up; it rounds halves up.
    """
    wanted = np.arange(1, 256, dtype=object)
    rounded = ((2 * wanted - 1) * (1 << -shift) + 1) // 2
    least: Array = (-((-rounded * (1 << 31) + (1 << 30)) // multiplier)).astype(np.int64)
    return least


def _prove(multiplier: int, shift: int, low: int, high: int) -> tuple[int, int] | None:
    """Return multiplier and bias, without the channel's own, for sums from `low` to `high`; None if there are none."""
    nearest = round(multiplier * 2.0 ** (1 + shift + _SHIFT - _SUM_BITS))
    if shift > 0 or not _CANDIDATES < nearest < _LIMIT - _CANDIDATES:
        return None
    sums = least_sums(multiplier, shift)
    reached = (sums > low) & (sums <= high)
    values = np.arange(-127, 128, dtype=np.int64)[reached] << (32 + _SHIFT)
    sums = sums[reached]
    if not sums.size:
        return _constant(nearest, low, high, int((least_sums(multiplier, shift) <= low).sum()) - 128)
    for start in range(0, _CANDIDATES, 40):
        near = np.arange(start, start + 40, dtype=np.int64)
        candidates = nearest + np.concatenate([near, -near])
        needed = -((-values[:, None]) // candidates)
        least = (needed - (sums[:, None] << _SUM_BITS)).max(axis=0)
        most = (needed - 1 - ((sums[:, None] - 1) << _SUM_BITS)).min(axis=0)
        fitting = np.flatnonzero(least <= most)
        if fitting.size:
            best = fitting[0]
            return int(candidates[best]), int(least[best] + most[best]) // 2
    return None


def _constant(multiplier: int, low: int, high: int, value: int) -> tuple[int, int] | None:
    """Return constants with which all sums from `low` to `high` have one value."""
    bias = -(-((2 * value + 1) << (31 + _SHIFT)) // multiplier) - ((low + high) << (_SUM_BITS - 1))
    ends = {_value(end, multiplier, bias) for end in (low, high)}
    return (multiplier, bias) if ends == {value} else None


def _value(total: int, multiplier: int, bias: int) -> int:
    return min(max((((total << _SUM_BITS) + bias) * multiplier) >> (32 + _SHIFT), -128), 127)
