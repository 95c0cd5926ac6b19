# SPDX-License-Identifier: Apache-2.0
"""The ranges of tensors: from the values of all samples, in whatever order, to the range that is quantised."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.graph import Array, Quantization
from ferrule.interface import name_of
from ferrule.quantization.precision import Precision

BINS = 4096
"""The bins of a histogram: 16 for each value of int8."""
_SHRUNK = np.linspace(1.0, 0.3, 71)
"""The parts of each side of a range that the method MSE tries: with less than 0.3, the tail is no tail any more."""
DEFAULT_PERCENTILE = 99.99
AUTO = "auto"
"""The text that stands for `AUTO_RULES`."""


class Method(StrEnum):
    """How a range is chosen."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"
    MSE = "mse"


@frozen
class RangeRule:
    """A method with its parameter."""

    method: Method = Method.MINMAX
    percentile: float = DEFAULT_PERCENTILE
    """The share of the values within the range, in percent; half of the rest is cut off at each side."""

    @classmethod
    def parse(cls, text: str) -> RangeRule:
        """Return the rule that minmax, mse, percentile or percentile=99.9 states; FerruleError for another text."""
        name, separator, number = text.partition("=")
        if name not in set(Method) or (separator and name != Method.PERCENTILE):
            raise FerruleError(f"{name_of('ranges')} is '{text}', expected {_RULES}")
        try:
            percentile = float(number) if separator else DEFAULT_PERCENTILE
        except ValueError:
            percentile = math.nan
        if not 50 <= percentile <= 100:
            raise FerruleError(f"{name_of('ranges')} is '{text}', expected a percentile from 50 to 100")
        return cls(method=Method(name), percentile=percentile)

    @override
    def __str__(self) -> str:
        return f"{self.method}={self.percentile:g}" if self.method is Method.PERCENTILE else str(self.method)

    @property
    def needs_counts(self) -> bool:
        """Whether the rule needs a histogram, which takes a second run of all samples."""
        return self.method is not Method.MINMAX


_RULES = f"{AUTO}, minmax, mse, percentile or percentile=99.9"
AUTO_RULES = (
    RangeRule(),
    RangeRule(method=Method.MSE),
    RangeRule(method=Method.PERCENTILE, percentile=99.99),
    RangeRule(method=Method.PERCENTILE, percentile=99.9),
)
"""The rules of which the one is taken whose quantised model is nearest to the float model."""


def parse_rules(text: str, precision: Precision | None) -> tuple[RangeRule, ...]:
    """Return the rules to choose from, by a text as for `RangeRule.parse`, or "auto".

    The latter stands for `AUTO_RULES` where all is int8; int16 has steps enough for all values, and so has a range that
    serves several precisions, None, to be one for all.

    Raises:
        FerruleError: it is another text.
    """
    if text == AUTO:
        return AUTO_RULES if precision is Precision.INT8 else AUTO_RULES[:1]
    return (RangeRule.parse(text),)


@frozen
class Range:
    """The real values that a tensor is to represent, low <= 0 <= high; both are finite."""

    low: float
    high: float

    @classmethod
    def spanning(cls, low: float, high: float) -> Range:
        """Return a range that includes 0, as quantisation needs it, since padding and ReLU are exactly 0."""
        return cls(low=min(low, 0.0), high=max(high, 0.0))

    @property
    def quantizable(self) -> Range:
        """The range that is quantised: for a tensor that is always 0, 0 to 1, since a scale has to be positive."""
        return self if self.high > self.low else Range(low=0.0, high=1.0)

    def quantization(self, precision: Precision) -> Quantization:
        """Return the quantisation that represents the range, as TensorFlow Lite's specification of 8 bits defines it.

        int8 has 255 steps from low to high, and int16 32,767 steps from 0 to the side that is farther away.
        """
        range_ = self.quantizable
        if precision.symmetric:
            return Quantization.of(max(-range_.low, range_.high) / (2 ** (precision.bits - 1) - 1))
        scale = np.float32((range_.high - range_.low) / (2**precision.bits - 1))
        lowest = -(2 ** (precision.bits - 1))
        zero_point = round(lowest - range_.low / float(scale))
        return Quantization.of(float(scale), min(max(zero_point, lowest), -lowest - 1))

    def joined(self, other: Range) -> Range:
        """Return the range that includes both."""
        return Range(low=min(self.low, other.low), high=max(self.high, other.high))


class Histogram:
    """The number of values in each of `BINS` equal parts of a range, and of those that are exactly 0."""

    def __init__(self, range_: Range) -> None:
        self.range = range_
        self.counts: NDArray[np.int64] = np.zeros(BINS, np.int64)
        self.zeros = 0
        """The values that are 0, which each quantisation represents exactly; they are in no bin."""

    def add(self, values: Array) -> None:
        """Count values, which are within the range."""
        width = self.range.high - self.range.low
        flat = values[values != 0].astype(np.float64)
        self.zeros += values.size - flat.size
        if width > 0:
            places = np.minimum(((flat - self.range.low) * (BINS / width)).astype(np.int64), BINS - 1)
            self.counts += np.bincount(places, minlength=BINS)

    def chosen(self, rule: RangeRule, precision: Precision) -> Range:
        """Return the range by a rule, for integers of a precision."""
        if self.range.high == self.range.low or rule.method is Method.MINMAX:
            return self.range
        if rule.method is Method.PERCENTILE:
            return self._percentile(rule.percentile)
        return self._least_squares(precision)

    def _edges(self) -> NDArray[np.float64]:
        return np.linspace(self.range.low, self.range.high, BINS + 1)

    def _percentile(self, percentile: float) -> Range:
        """Return the range without the tails, each of which has at most half of the values beyond the percentile."""
        cut = (self.counts.sum() + self.zeros) * (1 - percentile / 100) / 2
        edges = self._edges()
        below, above = np.cumsum(self.counts), np.cumsum(self.counts[::-1])
        low = edges[int(np.searchsorted(below, cut, side="right"))] if below[-1] > cut else self.range.low
        high = edges[BINS - int(np.searchsorted(above, cut, side="right"))] if above[-1] > cut else self.range.high
        return Range.spanning(max(self.range.low, float(low)), min(self.range.high, float(high)))

    def _least_squares(self, precision: Precision) -> Range:
        """Return the range with the least sum of squared errors: of values cut off, and of rounding within.

        A value within is taken as uniform over its step, whose mean squared error is step^2 / 12 (Bennett, "Spectra of
        quantized signals", 1948).
        """
        edges = self._edges()
        centres, weights = (edges[:-1] + edges[1:]) / 2, self.counts.astype(np.float64)
        moments = [np.concatenate([[0.0], np.cumsum(weights * centres**power)]) for power in range(3)]

        def squares(first: NDArray[np.int64], last: NDArray[np.int64], edge: NDArray[np.float64]) -> Array:
            """Return the sum of (value - edge)^2 over the bins first to last - 1."""
            count, linear, square = (moment[last] - moment[first] for moment in moments)
            return np.asarray(np.maximum(square - 2 * edge * linear + edge**2 * count, 0.0))

        if precision.symmetric:
            reach = max(-self.range.low, self.range.high) * _SHRUNK
            lows, highs = np.maximum(-reach, self.range.low), np.minimum(reach, self.range.high)
            steps = 2 * reach / (2**precision.bits - 2)
        else:
            lows, highs = (each.ravel() for each in np.meshgrid(self.range.low * _SHRUNK, self.range.high * _SHRUNK))
            steps = (highs - lows) / (2**precision.bits - 1)
        first, last = np.searchsorted(centres, lows), np.searchsorted(centres, highs)
        nothing, everything = np.zeros_like(first), np.full_like(first, BINS)
        within = moments[0][last] - moments[0][first]
        errors = squares(nothing, first, lows) + squares(last, everything, highs) + within * steps**2 / 12
        best = int(np.argmin(errors))  # the first of equal ones, which is the widest
        return Range.spanning(float(lows[best]), float(highs[best]))
