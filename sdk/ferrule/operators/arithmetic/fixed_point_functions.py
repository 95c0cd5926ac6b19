# SPDX-License-Identifier: Apache-2.0
"""exp, 1/(1+x), logistic and tanh in 32-bit fixed point, as defined by gemmlowp and used by TensorFlow Lite.

A number in Qm has m integer bits and 31 - m fractional bits. Arrays have dtype int64 and hold int32 values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ferrule.operators.arithmetic.fixed_point import rounding_divide_by_pot, saturating_rounding_doubling_high_mul

Raw = NDArray[np.int64]

INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)

# round(2^31 * exp(-2^k)) for k = -2...4
_EXP_OF_POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
_EXP_OF_MINUS_EIGHTH = 1895147668
_ONE_THIRD = 715827883
_48_OVER_17_IN_Q2 = 1515870810
_MINUS_32_OVER_17_IN_Q2 = -1010580540
_ONE_IN_Q2 = 1 << 29
_ONE_AND_A_HALF_IN_Q3 = 3 << 27
_HALF_OF_SQRT_2 = 1518500250
_FOURTH_ROOT_OF_HALF = 1805811301
_LOG_OF_2 = 1488522236
_LOG_NUMERATOR = 117049297
_LOG_DENOMINATOR = (1057819769, 638450708, 127690142)
"""In Q0, the coefficients of the rational function in `logarithm`."""


def exp_of_negative(x: Raw, integer_bits: int) -> Raw:
    """Return exp(x) in Q0 for x <= 0 in Q`integer_bits`, with 1 to 5 integer bits."""
    fractional_bits = 31 - integer_bits
    quarter = 1 << (fractional_bits - 2)
    reduced = (x & (quarter - 1)) - quarter  # in [-1/4, 0)
    result = _exp_near_zero(saturating_left_shift(reduced, integer_bits))
    remainder = reduced - x
    for exponent, factor in _EXP_OF_POWERS:
        if integer_bits > exponent:
            bit = 1 << (fractional_bits + exponent)
            result = np.where(remainder & bit, saturating_rounding_doubling_high_mul(result, factor), result)
    return np.where(x == 0, INT32_MAX, result)


def one_over_one_plus(x: Raw) -> Raw:
    """Return 1 / (1 + x) in Q0 for x in Q0, 0 <= x < 1."""
    return saturating_left_shift(_reciprocal_of_half_sum(x), 1)


def logistic(x: Raw) -> Raw:
    """Return 1 / (1 + exp(-x)) in Q0 for x in Q4."""
    positive = one_over_one_plus(exp_of_negative(-np.abs(x), 4))
    return np.where(x == 0, 1 << 30, np.where(x > 0, positive, INT32_MAX - positive))


def tanh(x: Raw) -> Raw:
    """Return the hyperbolic tangent in Q0 of x in Q4."""
    # doubling needs no operation: the same bits are read with one more integer bit
    exponential = exp_of_negative(-np.abs(x), 5)
    positive = saturating_left_shift(_reciprocal_of_half_sum(exponential) - _ONE_IN_Q2, 2)
    return np.where(x == 0, 0, np.where(x > 0, positive, -positive))


def reciprocal(x: Raw, integer_bits: int) -> tuple[Raw, Raw]:
    """Return (r, n) with 1 / x = r / 2^n, where r is in Q0, for unsigned 32-bit x > 0 in Q`integer_bits`."""
    headroom = leading_zeros(x)
    fraction = (x << headroom) - (1 << 31)
    return one_over_one_plus(fraction), integer_bits - headroom


def inverse_sqrt(x: Raw) -> tuple[Raw, Raw]:
    """Return (r, n) with 1 / sqrt(x) = r / 2^(31 - n), for 32-bit x >= 0; 0 counts as 1."""
    positive = np.maximum(x, 2)
    divisions = (np.maximum(32 - leading_zeros(positive), 29) - 28) // 2  # by 4, down to less than 2^29
    pairs = (leading_zeros(positive >> (2 * divisions)) - 1) // 2 - 1
    half = (positive >> (2 * divisions) << (2 * pairs)) >> 1  # in Q3
    quarter = rounding_divide_by_pot(half, 1)
    estimate = np.full_like(half, 1 << 28)
    for _ in range(5):  # Newton-Raphson
        square = saturating_rounding_doubling_high_mul(estimate, estimate)
        cube = saturating_left_shift(saturating_rounding_doubling_high_mul(square, estimate), 6)
        step = saturating_rounding_doubling_high_mul(
            np.int64(_ONE_AND_A_HALF_IN_Q3), estimate
        ) - saturating_rounding_doubling_high_mul(quarter, cube)
        estimate = saturating_left_shift(step, 3)
    result = saturating_rounding_doubling_high_mul(estimate, np.int64(_HALF_OF_SQRT_2))
    shift = 11 + divisions - pairs
    left = np.maximum(-shift, 0)
    small = x <= 1
    return np.where(small, INT32_MAX, result << left), np.where(small, 0, -np.maximum(shift, 0))


def logarithm(x: Raw) -> Raw:
    """Return the natural logarithm in Q5 of x in Q12, for x >= 1: a power of 2 plus a rational function."""
    half_power = saturating_rounding_doubling_high_mul(x, _HALF_OF_SQRT_2)
    zeros, half_zeros = leading_zeros(x), leading_zeros(half_power) - 1
    scaled = saturating_rounding_doubling_high_mul(saturating_left_shift(x, zeros - 1), _HALF_OF_SQRT_2)
    fraction = np.minimum(saturating_left_shift(scaled, 1), saturating_left_shift(x, half_zeros))
    quarter = 1 << 23  # in Q6, from here on
    power = np.maximum(((12 - zeros) << 25) + quarter, ((12 - half_zeros) << 25) - quarter)
    mean = (fraction + _FOURTH_ROOT_OF_HALF + 1) >> 1
    offset = 2 * (fraction - _FOURTH_ROOT_OF_HALF)
    square = _times(offset, offset)
    numerator = _times(offset, fraction) + _times(_times(offset, square), _LOG_NUMERATOR)
    constant, linear, quadratic = _LOG_DENOMINATOR
    denominator = _times(mean, constant + offset + _times(square, quadratic)) + _times(offset, linear)
    quotient = _times(rounding_divide_by_pot(numerator, 6), one_over_one_plus(denominator))
    return saturating_left_shift(_times(power, _LOG_OF_2) + quotient, 1)


def _times(x: Raw, y: Raw | int) -> Raw:
    return saturating_rounding_doubling_high_mul(x, y)


def leading_zeros(x: Raw) -> Raw:
    """Return the number of leading zero bits of a 32-bit value, for 0 < x < 2^32."""
    _, exponent = np.frexp(x.astype(np.float64))
    return 32 - exponent.astype(np.int64)


def saturating_left_shift(x: Raw, bits: int | Raw) -> Raw:
    """Return x * 2^bits, saturated to int32."""
    return np.asarray(np.clip(x << bits, INT32_MIN, INT32_MAX), np.int64)


def _exp_near_zero(x: Raw) -> Raw:
    """Return exp(x) in Q0 for -1/4 <= x < 0 in Q0, from the Taylor series around -1/8."""
    y = x + (1 << 28)
    y2 = saturating_rounding_doubling_high_mul(y, y)
    y3 = saturating_rounding_doubling_high_mul(y2, y)
    y4 = saturating_rounding_doubling_high_mul(y2, y2)
    cubic = saturating_rounding_doubling_high_mul(rounding_divide_by_pot(y4, 2) + y3, _ONE_THIRD) + y2
    return _EXP_OF_MINUS_EIGHTH + saturating_rounding_doubling_high_mul(
        y + rounding_divide_by_pot(cubic, 1), _EXP_OF_MINUS_EIGHTH
    )


def _reciprocal_of_half_sum(x: Raw) -> Raw:
    """Return 2 / (1 + x) in Q2 for x in Q0, with three Newton-Raphson steps."""
    half = (x + INT32_MAX + 1) >> 1
    estimate = _48_OVER_17_IN_Q2 + saturating_rounding_doubling_high_mul(half, _MINUS_32_OVER_17_IN_Q2)
    for _ in range(3):
        error = _ONE_IN_Q2 - saturating_rounding_doubling_high_mul(half, estimate)
        estimate = estimate + saturating_left_shift(saturating_rounding_doubling_high_mul(estimate, error), 2)
    return estimate
