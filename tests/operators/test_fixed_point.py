# SPDX-License-Identifier: Apache-2.0
"""Rescaling compared with the same formulas in exact Python integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import (
    activation_range,
    multiply_by_quantized_multiplier,
    multiply_wide_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from ferrule.operators.arithmetic.rescaler import Rescaler, Scaling

INT32 = st.integers(-(2**31), 2**31 - 1)
MULTIPLIER = st.integers(2**30, 2**31 - 1)


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def half_away(x: Fraction) -> int:
    return half_up(x) if x >= 0 else -half_up(-x)


def wrap(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


def rescaled(x: int, multiplier: int, shift: int) -> int:
    high = half_up(Fraction(wrap(x << max(shift, 0)) * multiplier, 2**31))
    return half_away(Fraction(high, 2 ** max(-shift, 0)))


@given(st.floats(2.0**-31, 2.0**30, exclude_min=True))
@example(1.0)
@example(1 - 2.0**-40)
def test_a_multiplier_stands_for_its_factor(real: float) -> None:
    multiplier, shift = quantize_multiplier(real)
    assert 2**30 <= multiplier < 2**31
    assert abs(Fraction(multiplier) * Fraction(2) ** (shift - 31) - Fraction(real)) <= Fraction(real) / 2**31


@pytest.mark.parametrize("real", [0.0, 2.0**-33, 1e-300])
def test_a_tiny_factor_is_zero(real: float) -> None:
    assert quantize_multiplier(real) == (0, 0)


@pytest.mark.parametrize("real", [math.nan, math.inf, -1.0])
def test_a_factor_that_is_none_is_refused(real: float) -> None:
    with pytest.raises(UnsupportedError, match="scale factor"):
        quantize_multiplier(real)


@given(INT32, st.integers(0, 2**31 - 1))
def test_the_high_product_rounds_halves_up(a: int, b: int) -> None:
    assert int(saturating_rounding_doubling_high_mul(a, b)) == half_up(Fraction(a * b, 2**31))


def test_the_high_product_saturates() -> None:
    assert int(saturating_rounding_doubling_high_mul(-(2**31), -(2**31))) == 2**31 - 1


@given(INT32, st.integers(0, 31))
@example(-5, 1)
@example(5, 1)
def test_the_division_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    assert int(rounding_divide_by_pot(x, exponent)) == half_away(Fraction(x, 2**exponent))


@given(INT32, MULTIPLIER, st.integers(-31, 30))
def test_32_bits_are_rounded_twice(x: int, multiplier: int, shift: int) -> None:
    assert int(multiply_by_quantized_multiplier(x, multiplier, shift)) == rescaled(x, multiplier, shift)


@given(st.integers(-(2**47), 2**47 - 1), MULTIPLIER, st.integers(-31, 7))
def test_64_bits_are_rounded_once(x: int, multiplier: int, shift: int) -> None:
    reduced = min((multiplier + 2**15) >> 16, 0x7FFF)
    wanted = wrap(half_up(Fraction(x * reduced) * Fraction(2) ** (shift - 15)))
    assert int(multiply_wide_by_quantized_multiplier(x, multiplier, shift)) == wanted


@given(
    sums=st.lists(st.integers(-(2**22), 2**22), min_size=2, max_size=12),
    multipliers=st.lists(MULTIPLIER, min_size=2, max_size=2),
    shifts=st.lists(st.integers(-31, 9), min_size=2, max_size=2),
    bias=st.lists(st.integers(-(2**29), 2**29) | st.integers(-100, 100), min_size=2, max_size=2),
    zero_point=st.integers(-128, 127),
    wide=st.booleans(),
)
def test_the_rescaler_gives_the_same_by_floats_and_by_integers(
    sums: list[int], multipliers: list[int], shifts: list[int], bias: list[int], zero_point: int, wide: bool
) -> None:
    sums = sums[: len(sums) // 2 * 2]
    scaling = Scaling(
        multipliers=np.array(multipliers, np.int64),
        shifts=np.minimum(np.array(shifts, np.int64), 7),
        bias=np.array(bias, np.int64),
        zero_point=0 if wide else zero_point,
        low=-32768 if wide else -128,
        high=32767 if wide else 127,
        dtype=np.dtype(np.int16 if wide else np.int8),
        wide=wide,
    )
    rows = np.array(sums, np.float64).reshape(-1, 2)
    got = Rescaler(scaling, np.full(2, 2.0**22), 1).apply(rows)
    by_integers = Rescaler(scaling, np.full(2, 2.0**60), 1).apply(rows)
    assert_array_equal(got, by_integers)


@given(st.integers(-(2**20), 2**20), MULTIPLIER, st.integers(-31, -1))
def test_the_rescaler_is_the_formula(total: int, multiplier: int, shift: int) -> None:
    scaling = Scaling(
        multipliers=np.array([multiplier], np.int64),
        shifts=np.array([shift], np.int64),
        bias=np.array([3], np.int64),
        zero_point=-7,
        low=-100,
        high=100,
        dtype=np.dtype(np.int8),
        wide=False,
    )
    got = Rescaler(scaling, np.array([2.0**20]), 1).apply(np.array([[total]], np.float32))
    assert int(got[0, 0]) == min(max(rescaled(total + 3, multiplier, shift) - 7, -100), 100)


def test_activation_ranges_follow_scale_and_zero_point() -> None:
    info = TensorInfo("y", (1,), DataType.INT8, quantization=Quantization.of(0.05, -20))
    assert activation_range(Activation.NONE, info) == (-128, 127)
    assert activation_range(Activation.RELU, info) == (-20, 127)
    assert activation_range(Activation.RELU6, info) == (-20, 100)
    assert activation_range(Activation.RELU_N1_TO_1, info) == (-40, 0)


def test_a_limit_beyond_32_bits_is_refused() -> None:
    info = TensorInfo("y", (1,), DataType.INT16, quantization=Quantization.of(1e-8))
    assert activation_range(Activation.RELU6, info) == (0, 32767)
    tiny = TensorInfo("y", (1,), DataType.INT16, quantization=Quantization.of(1e-12))
    with pytest.raises(UnsupportedError, match="too small"):
        activation_range(Activation.RELU6, tiny)


def test_the_smallest_factor_that_is_not_zero() -> None:
    assert quantize_multiplier(2.0**-32) == (2**30, -31)
    assert quantize_multiplier(2.0**-32 * (1 - 2.0**-20)) == (0, 0)
