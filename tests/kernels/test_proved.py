# SPDX-License-Identifier: Apache-2.0
"""One multiplication equals the reference's requantisation for every sum of a channel."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.proofs.requantization import PROVED_SHIFT, proved_words
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import Factor, rescale


def reference(sums: Array, factor: Factor, zero_point: int, rounding: Rounding = Rounding.TFLM) -> Array:
    scaled = rescale(sums, np.int64(factor.multiplier), np.int64(factor.shift), rounding)
    return np.asarray(scaled + zero_point).clip(-128, 127)


def by_one_multiplication(sums: Array, multiplier: int, bias: int) -> Array:
    return ((((sums << 8) + bias) * multiplier >> 32) >> PROVED_SHIFT).clip(-128, 127)


@settings(max_examples=30)
@given(
    multiplier=st.integers(1 << 30, (1 << 31) - 1),
    shift=st.integers(-10, -2),
    low=st.integers(-30_000, 0),
    high=st.integers(1, 30_000),
)
def test_every_sum_is_equal(multiplier: int, shift: int, low: int, high: int) -> None:
    factor = Factor(multiplier=multiplier, shift=shift)
    words = proved_words(np.array([low]), np.array([high]), [factor], -128)
    assert words is not None
    sums = np.arange(low, high + 1)
    wanted = reference(sums, factor, -128)
    assert_array_equal(by_one_multiplication(sums, int(words[0, 0]), int(words[0, 1])), wanted)


@pytest.mark.parametrize("rule", [Rounding.SINGLE, Rounding.ONNX])
def test_rules_with_one_rounding_have_constants_for_any_zero_point(rule: Rounding) -> None:
    random = np.random.default_rng(6)
    sums, found = np.arange(-30_000, 30_001), 0
    for _ in range(40):
        factor = Factor(multiplier=int(random.integers(1 << 23, 1 << 24)) << 7, shift=int(random.integers(-7, -1)))
        zero_point = int(random.integers(-128, 128))
        words = proved_words(np.array([-30_000]), np.array([30_000]), [factor], zero_point, rule)
        if words is not None:
            found += 1
            wanted = reference(sums, factor, zero_point, rule)
            assert_array_equal(by_one_multiplication(sums, int(words[0, 0]), int(words[0, 1])), wanted)
    assert found >= 38


def test_halves_to_even_have_no_such_constants() -> None:
    """Halves are reached by every power of two; they round down and up in turns."""
    factor, ends = Factor(multiplier=1 << 30, shift=-6), (np.array([-20_000]), np.array([20_000]))
    assert proved_words(*ends, [factor], 3, Rounding.ONNX) is None
    assert proved_words(*ends, [factor], 3, Rounding.SINGLE) is not None


def test_sums_times_128_reach_smaller_factors() -> None:
    factor, ends = Factor(multiplier=1_500_000_000, shift=-16), (np.array([20_000]), np.array([200_000]))
    assert proved_words(*ends, [factor], -128) is None
    words = proved_words(*ends, [factor], -128, sum_shift=7)
    assert words is not None
    sums = np.arange(20_000, 200_001)
    scaled = (((sums << 7) + int(words[0, 1])) * int(words[0, 0]) >> 32) >> PROVED_SHIFT
    assert_array_equal(scaled.clip(-128, 127), reference(sums, factor, -128))


def test_outputs_with_values_on_both_sides_of_zero_have_no_such_constants() -> None:
    """The reference rounds halves away from zero, which no single slope does on both sides."""
    factor = Factor(multiplier=(1 << 30) + 12345, shift=-6)
    assert proved_words(np.array([-20_000]), np.array([20_000]), [factor], 3) is None


def test_sums_and_scales_that_do_not_fit_are_refused() -> None:
    factor = Factor(multiplier=1 << 30, shift=-20)
    assert proved_words(np.array([-(1 << 24)]), np.array([1 << 24]), [factor], -128) is None
    assert proved_words(np.array([-9]), np.array([9]), [Factor(multiplier=0, shift=0)], -128) is None


def test_no_channels_need_no_proof() -> None:
    words = proved_words(np.zeros(0, np.int64), np.zeros(0, np.int64), [], -128)
    assert words is not None
    assert words.shape == (0, 2)


def test_the_shift_is_that_of_the_header() -> None:
    (header,) = (Path(KERNELS.folder, name) for name in KERNELS.files if name.endswith("/requantize_dsp.h"))
    found = re.search(r"#define FERRULE_PROVED_SHIFT (\d+)", header.read_text(encoding="utf-8"))
    assert found is not None
    assert int(found[1]) == PROVED_SHIFT
