# SPDX-License-Identifier: Apache-2.0
"""The comparison of outputs: equal, close and different."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ferrule.report import Verdict, compare, worst

NAN, INF = float("nan"), float("inf")


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def verdict(output: np.ndarray, reference: np.ndarray) -> Verdict:
    return compare([output], [reference])[0]


def test_equal_bytes_are_exact() -> None:
    for array in (np.arange(5, dtype=np.int8), floats(1, NAN, INF, -0.0), np.zeros((0, 3), np.int16)):
        expected = Verdict.EXACT if array.size else Verdict.NOTHING_COMPARED
        assert compare([array], [array.copy()]) == (expected, 0.0)


def test_integers_have_no_tolerance() -> None:
    assert compare([np.array([1, -128], np.int8)], [np.array([1, 127], np.int8)]) == (Verdict.DIFFERENT, 255.0)
    assert compare([np.array([0], np.int32)], [np.array([1], np.int32)]) == (Verdict.DIFFERENT, 1.0)


def test_large_integers_differ_by_the_last_bit() -> None:
    left, right = np.array([2**62, -(2**63)], np.int64), np.array([2**62 + 1, -(2**63)], np.int64)
    assert compare([left], [right]) == (Verdict.DIFFERENT, 1.0)
    least, most = np.array([-(2**63)], np.int64), np.array([2**63 - 1], np.int64)
    assert compare([least], [most]) == (Verdict.DIFFERENT, float(2**64 - 1))


def test_booleans() -> None:
    assert compare([np.array([True])], [np.array([False])]) == (Verdict.DIFFERENT, 1.0)


def bounded(output: np.ndarray, reference: np.ndarray, *bounds: float) -> Verdict:
    return compare([output], [reference], [np.array(bounds)])[0]


def test_floats_without_bounds_are_equal_or_different() -> None:
    assert verdict(floats(1, 2), floats(1, 2)) is Verdict.EXACT
    assert verdict(floats(np.nextafter(np.float32(1), np.float32(2)), 2), floats(1, 2)) is Verdict.DIFFERENT


def test_a_float_is_within_the_bound_of_its_own_element() -> None:
    reference = floats(0.25, 1e8)
    assert bounded(floats(0.75, 1e8), reference, 0.5, 1e6) is Verdict.WITHIN_BOUND
    assert bounded(floats(-0.25, 1e8), reference, 0.5, 1e6) is Verdict.WITHIN_BOUND
    assert bounded(floats(0.76, 1e8), reference, 0.5, 1e6) is Verdict.DIFFERENT
    assert bounded(floats(-0.26, 1e8), reference, 0.5, 1e6) is Verdict.DIFFERENT
    assert bounded(floats(0.25, 1e8 + 64), reference, 0.5, 1) is Verdict.DIFFERENT


def test_what_no_bound_is_known_for_must_be_equal() -> None:
    assert bounded(floats(1, 5), floats(2, 5), INF, 0) is Verdict.DIFFERENT
    assert bounded(floats(2, 5.5), floats(2, 5), INF, 1) is Verdict.WITHIN_BOUND
    assert compare([floats(1)], [floats(2)], [None])[0] is Verdict.DIFFERENT


def test_integers_are_within_no_bound() -> None:
    assert compare([np.array([3], np.int8)], [np.array([4], np.int8)], [np.array([1.0])])[0] is Verdict.DIFFERENT


def test_zeros_of_both_signs_differ_in_a_bit() -> None:
    assert compare([floats(0.0)], [floats(-0.0)]) == (Verdict.DIFFERENT, 0.0)
    assert bounded(floats(0.0), floats(-0.0), 1e-30) is Verdict.WITHIN_BOUND


def test_nan_equals_nan_alone() -> None:
    other_nan = np.array([0x7FC0_0001], np.uint32).view(np.float32)
    one = floats(1)
    assert compare([other_nan, one], [floats(NAN), one]) == (Verdict.EXACT, 0.0)
    assert compare([other_nan], [floats(NAN)]) == (Verdict.NOTHING_COMPARED, 0.0)
    assert compare([floats(NAN)], [floats(1)]) == (Verdict.DIFFERENT, None)
    assert compare([floats(1, 3)], [floats(NAN, 3)]) == (Verdict.DIFFERENT, None)
    assert bounded(floats(NAN), floats(1), 1) is Verdict.DIFFERENT
    assert bounded(floats(1), floats(NAN), INF) is Verdict.DIFFERENT


def test_infinity_is_near_the_same_infinity_alone() -> None:
    assert bounded(floats(INF, 1), floats(INF, 1 + 1e-6), 0, 1e-5) is Verdict.WITHIN_BOUND
    for output, reference in ((INF, -INF), (INF, 3e38), (3e38, INF), (NAN, INF)):
        assert compare([floats(output)], [floats(reference)]) == (Verdict.DIFFERENT, None)


def test_the_largest_difference_is_over_all_outputs() -> None:
    result, difference = compare([floats(1), floats(1, 2)], [floats(1), floats(1, 2.5)])
    assert (result, difference) == (Verdict.DIFFERENT, 0.5)


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        (np.zeros(3, np.int8), np.zeros(3, np.uint8)),
        (np.zeros(3, np.float32), np.zeros(3, np.float64)),
        (np.zeros(3, np.float32), np.zeros(3, np.int32)),
    ],
)
def test_another_type_is_different(output: np.ndarray, reference: np.ndarray) -> None:
    assert compare([output], [reference]) == (Verdict.DIFFERENT, 0.0)


def test_another_shape_is_different() -> None:
    assert compare([np.zeros((1, 3), np.int8)], [np.zeros(3, np.int8)]) == (Verdict.DIFFERENT, None)
    assert compare([np.zeros((0, 3), np.int8)], [np.zeros((3, 0), np.int8)]) == (Verdict.DIFFERENT, None)


def test_as_many_outputs_as_references() -> None:
    with pytest.raises(ValueError, match="longer"):
        compare([np.zeros(1)], [np.zeros(1), np.zeros(1)])


def test_worst() -> None:
    assert worst([]) is Verdict.NOTHING_COMPARED
    assert worst([Verdict.NOTHING_COMPARED, Verdict.EXACT]) is Verdict.EXACT
    assert worst([Verdict.NOTHING_COMPARED, Verdict.DIFFERENT]) is Verdict.DIFFERENT
    assert worst([Verdict.EXACT, Verdict.WITHIN_BOUND, Verdict.EXACT]) is Verdict.WITHIN_BOUND
    assert worst([Verdict.DIFFERENT, Verdict.WITHIN_BOUND]) is Verdict.DIFFERENT


def test_differences_are_finite_or_none() -> None:
    generator = np.random.default_rng(0)
    values = floats(0, -0.0, 1, -1, INF, -INF, NAN, 3.4e38, -3.4e38, 1e-45)
    for _ in range(100):
        output, reference = generator.choice(values, 4), generator.choice(values, 4)
        result, difference = compare([output], [reference])
        assert difference is None or math.isfinite(difference)
        assert result is Verdict.DIFFERENT or difference is not None


def test_the_sign_of_a_zero_counts_only_among_the_bits_of_the_firmwares_own_c() -> None:
    zero, minus = np.zeros(3, np.float32), np.full(3, -0.0, np.float32)
    assert compare([minus], [zero])[0] is Verdict.DIFFERENT
    assert compare([minus], [zero], [None])[0] is Verdict.WITHIN_BOUND
    assert compare([minus + np.float32(1e-30)], [zero], [None])[0] is Verdict.DIFFERENT
    assert compare([np.array([1])], [np.array([2])], [None])[0] is Verdict.DIFFERENT
