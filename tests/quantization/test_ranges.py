# SPDX-License-Identifier: Apache-2.0
"""The ranges of tensors, by each rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from float_networks import random

from ferrule.errors import FerruleError
from ferrule.graph import Array, Quantization
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import AUTO_RULES, Histogram, Method, Range, RangeRule, parse_rules


def histogram(values: Array) -> Histogram:
    made = Histogram(Range.spanning(float(values.min()), float(values.max())))
    made.add(values)
    return made


def squared_error(values: Array, range_: Range, precision: Precision) -> float:
    """Return the mean squared error of quantised values, computed by quantising them."""
    quantization = range_.quantization(precision)
    limit = 1 << (precision.bits - 1)
    stored = np.clip(np.rint(values / quantization.scale) + quantization.zero_point, -limit, limit - 1)
    return float(np.mean(((stored - quantization.zero_point) * quantization.scale - values) ** 2))


@pytest.mark.parametrize(
    ("text", "method", "percentile"),
    [("minmax", Method.MINMAX, 99.99), ("mse", Method.MSE, 99.99), ("percentile=99.5", Method.PERCENTILE, 99.5)],
)
def test_rules_by_text(text: str, method: Method, percentile: float) -> None:
    assert RangeRule.parse(text) == RangeRule(method=method, percentile=percentile)
    assert RangeRule.parse(text).needs_counts == (method is not Method.MINMAX)


def test_auto_stands_for_several_rules_of_int8_alone() -> None:
    assert parse_rules("auto", Precision.INT8) == AUTO_RULES
    assert [str(rule) for rule in AUTO_RULES] == ["minmax", "mse", "percentile=99.99", "percentile=99.9"]
    assert parse_rules("auto", Precision.INT16) == parse_rules("auto", None) == (RangeRule(),)
    for rule in AUTO_RULES:
        assert parse_rules(str(rule), None) == (rule,)


@pytest.mark.parametrize("text", ["", "max", "minmax=3", "mse=1", "percentile=", "percentile=49", "percentile=101"])
def test_texts_that_are_no_rule(text: str) -> None:
    with pytest.raises(FerruleError, match="ranges is '"):
        RangeRule.parse(text)


@pytest.mark.parametrize(
    ("low", "high", "precision", "expected"),
    [
        (-1.0, 1.55, Precision.INT8, Quantization.of(0.01, -28)),
        (0.0, 2.55, Precision.INT8, Quantization.of(0.01, -128)),
        (-2.55, 0.0, Precision.INT8, Quantization.of(0.01, 127)),
        (-1.0, 2.0, Precision.INT16, Quantization.of(2 / 32767)),
        (0.0, 0.0, Precision.INT8, Quantization.of(1 / 255, -128)),
    ],
)
def test_quantisations_of_ranges(low: float, high: float, precision: Precision, expected: Quantization) -> None:
    assert Range(low=low, high=high).quantization(precision) == expected


def test_ranges_include_zero() -> None:
    assert Range.spanning(1.0, 2.0) == Range(low=0.0, high=2.0)
    assert Range.spanning(-2.0, -1.0) == Range(low=-2.0, high=0.0)


def test_counts_do_not_depend_on_the_order() -> None:
    values = random(5000)
    whole, parts = histogram(values), Histogram(Range.spanning(float(values.min()), float(values.max())))
    for part in np.split(values[::-1], 10):
        parts.add(part)
    assert np.array_equal(whole.counts, parts.counts)
    assert whole.zeros == parts.zeros
    assert whole.counts.sum() + whole.zeros == values.size


@pytest.mark.parametrize("percentile", [50.0, 90.0, 99.0, 99.9])
def test_a_percentile_cuts_off_no_more_than_it_states(percentile: float) -> None:
    values = random(20_000)
    chosen = histogram(values).chosen(RangeRule(method=Method.PERCENTILE, percentile=percentile), Precision.INT8)
    outside = np.mean((values < chosen.low) | (values > chosen.high))
    assert outside <= 1 - percentile / 100 + 1e-9
    assert outside >= (1 - percentile / 100) / 2  # and not far less: a bin is 4096th of the range
    assert Range.spanning(float(values.min()), float(values.max())) != chosen


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.INT16])
def test_least_squares_are_near_the_best_of_all_candidates(precision: Precision) -> None:
    values = np.append(random(300_000), np.float32([8, 0, 0, 0]))
    made = histogram(values)
    chosen = made.chosen(RangeRule(method=Method.MSE), precision)
    shrunk = np.linspace(1.0, 0.3, 11)
    best = min(
        squared_error(values, Range(low=made.range.low * low, high=made.range.high * high), precision)
        for low, high in itertools.product(shrunk, repeat=2)
    )
    found = squared_error(values, chosen, precision)
    assert found <= 1.1 * best
    if precision is Precision.INT8:  # one value is far away, so that cutting it off pays
        assert found < 0.9 * squared_error(values, made.range, precision)


def test_a_tensor_that_is_always_zero_keeps_its_range() -> None:
    for method in Method:
        assert histogram(np.zeros(10, np.float32)).chosen(RangeRule(method=method), Precision.INT8) == Range(
            low=0.0, high=0.0
        )
