# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of accumulators to stored output values: bias, scale, zero point and clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import (
    multiply_wide_by_quantized_multiplier,
    reduced_multiplier,
    rescale,
    wrap_int32,
)

_EXACT_FLOAT64 = 2.0**53
_TIE_BREAKER = 1.0 + 2.0**-33


@frozen(eq=False)
class Scaling:
    """The parameters that convert the accumulators of each channel to stored values."""

    multipliers: Array
    """int64, one per channel."""
    shifts: Array
    """int64, one per channel; positive values shift left."""
    bias: Array
    """int64, one per channel; added before scaling."""
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]
    wide: bool
    """Whether the accumulators have 64 bits, so that the TFLM rule rounds once."""
    rounding: Rounding = Rounding.TFLM


class Rescaler:
    """Scales rows of accumulators in which the channels repeat `repeat` times.

    `bound` is the largest magnitude that an accumulator of each channel can have before the bias is added. If it proves
    that float64 holds every intermediate value exactly, float64 is used (float32 for ONNX's rule); otherwise int64.
    """

    def __init__(self, scaling: Scaling, bound: Array, repeat: int) -> None:
        self._scaling = scaling
        self._repeat = repeat
        reach = bound.astype(np.float64) + np.abs(scaling.bias.astype(np.float64))
        self._apply_fast = self._apply_float64
        if scaling.wide or scaling.rounding is Rounding.SINGLE:
            self._exact = self._once_constants(reach)
        elif scaling.rounding is Rounding.TFLM:
            self._exact = self._narrow_constants(reach, bound)
        else:
            self._exact = self._float32_constants(reach)
            self._apply_fast = self._apply_float32

    def apply(self, accumulators: Array) -> Array:
        """Return the stored values; the accumulators are integers in any dtype that holds them exactly."""
        return self._apply_fast(accumulators) if self._exact else self._apply_int64(accumulators)

    def _apply_float64(self, accumulators: Array) -> Array:
        scaled = np.multiply(accumulators, self._factor, dtype=np.float64)
        scaled += self._offset
        np.floor(scaled, out=scaled)
        if self._divisor is not None:
            # Halves round away from zero. The divisor enlarges magnitudes by a factor of 1 + 2**-33, which moves
            # halves off the tie and, below 2**31, moves no other value across one.
            scaled *= self._divisor
            np.rint(scaled, out=scaled)
        return self._stored(scaled)

    def _narrow_constants(self, reach: Array, bound: Array) -> bool:
        scaling = self._scaling
        left, right = np.maximum(scaling.shifts, 0), np.maximum(-scaling.shifts, 0)
        factor = np.ldexp(scaling.multipliers.astype(np.float64), left - 31)
        offset = scaling.bias * factor + 0.5
        divisor = np.ldexp(_TIE_BREAKER, -right)
        exact = (reach + 1) * scaling.multipliers * np.exp2(left) + 2.0**30 < _EXACT_FLOAT64
        fits = reach * np.exp2(left) < 2.0**31
        if not exact.all():
            # Trained networks have dead channels: their bias is so large that every sum has the same result.
            ends = np.stack([-bound, bound]).astype(np.int64)
            lowest, highest = self._apply_int64(ends).astype(np.float64) - scaling.zero_point
            constant = (lowest == highest) & fits
            factor[constant], offset[constant], divisor[constant] = 0, lowest[constant], 1
            exact |= constant
        self._factor, self._offset = self._row(factor), self._row(offset)
        self._divisor = self._row(divisor) if right.any() else None
        return bool(np.all(exact & fits))

    def _once_constants(self, reach: Array) -> bool:
        """Rescale with one rounding: accumulators of 64 bits with multipliers of 15 bits, others with those of 31."""
        scaling = self._scaling
        multipliers, bits = scaling.multipliers, 31
        if scaling.wide:
            multipliers, bits = reduced_multiplier(multipliers), 15
        factor = np.ldexp(multipliers.astype(np.float64), scaling.shifts - bits)
        self._factor = self._row(factor)
        self._offset = self._row(scaling.bias * factor + 0.5)
        self._divisor = None
        exact = (reach + 1) * multipliers + np.exp2(bits - scaling.shifts) < _EXACT_FLOAT64
        fits = scaling.wide | (reach < 2.0**31)
        return bool(np.all(exact & fits & (reach * factor + 1 < 2.0**31)))

    def _float32_constants(self, reach: Array) -> bool:
        scaling = self._scaling
        self._factor = self._row(np.ldexp(scaling.multipliers.astype(np.float64), scaling.shifts - 31))
        self._offset = self._row(scaling.bias.astype(np.float64))
        return bool(np.all(reach < 2.0**31))

    def _apply_float32(self, accumulators: Array) -> Array:
        """Apply ONNX's rule: the sum is rounded to float32, and so is its product."""
        scaled = np.add(accumulators, self._offset, dtype=np.float64).astype(np.float32)
        scaled *= self._factor.astype(np.float32)
        np.rint(scaled, out=scaled)
        return self._stored(scaled)

    def _stored(self, scaled: Array) -> Array:
        """Return whole numbers in steps of the output as stored values; the array is changed."""
        scaling = self._scaling
        scaled += scaling.zero_point
        np.maximum(scaled, scaling.low, out=scaled)
        np.minimum(scaled, scaling.high, out=scaled)
        return scaled.astype(scaling.dtype)

    def _row(self, per_channel: Array) -> Array:
        return np.tile(per_channel, self._repeat)

    def _apply_int64(self, accumulators: Array) -> Array:
        scaling = self._scaling
        channels = accumulators.astype(np.int64).reshape(-1, scaling.bias.size) + scaling.bias
        if scaling.wide:
            scaled = multiply_wide_by_quantized_multiplier(channels, scaling.multipliers, scaling.shifts)
        else:
            scaled = rescale(wrap_int32(channels), scaling.multipliers, scaling.shifts, scaling.rounding)
        scaled = wrap_int32(scaled + scaling.zero_point)
        return np.clip(scaled, scaling.low, scaling.high).astype(scaling.dtype).reshape(accumulators.shape)
