# SPDX-License-Identifier: Apache-2.0
"""The fixed-point arithmetic of elementwise operators with two inputs, as in TensorFlow Lite Micro.

ADD and SUB convert both inputs to twice the larger scale, with 20 (int8) or 15 (int16) fractional bits, and rescale
the sum. MUL rescales the product. `ferrule.operators.elementwise.onnx_elementwise` has ONNX's rule.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.graph.tensor import read_only
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    Factor,
    Int64Array,
    activation_range,
    quantize_multiplier,
    wrap_int32,
)
from ferrule.operators.operator import Operands

STORED = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
"""The int8 values in the order in which they are read as uint8."""
_LEFT_SHIFT = {DataType.INT8: 20, DataType.INT16: 15}


class Combination(Protocol):
    """A function of two stored values; equal combinations are equal as dictionary keys."""

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored results for stored values of broadcastable shapes."""
        ...

    @override
    def __hash__(self) -> int: ...


@frozen(eq=False)
class Parts:
    """A sum before it is rounded and clamped: unit * (first + second) + constant, in steps of the output's scale."""

    first: Array
    """What each value of the first input adds, read as uint8, in exact numbers of the unit."""
    second: Array
    unit: float
    constant: float
    low: int
    high: int


class Additive(Combination, Protocol):
    """A combination that is a rounded sum of a function of each value."""

    def parts(self) -> Parts:
        """Return the sum before rounding, but for intermediate rounding."""
        ...


@frozen
class Term(Factor):
    """Converts one input of a sum to the common scale: (stored + offset) << left_shift, times a factor < 1."""

    offset: int
    left_shift: int

    @override
    def apply(self, stored: Int64Array) -> Int64Array:
        """Return the scaled values, each within 32 bits."""
        return Factor.apply(self, (stored + self.offset) << self.left_shift)


@frozen
class Result(Factor):
    """Converts a sum or a product to a stored value: times the factor, plus the zero point, clamped."""

    zero_point: int
    low: int
    high: int

    @override
    def apply(self, values: Int64Array) -> Int64Array:
        """Return the stored values of 32-bit sums or products."""
        return np.clip(wrap_int32(Factor.apply(self, values) + self.zero_point), self.low, self.high)


@frozen
class Sum:
    """The arithmetic of ADD, or of SUB if `subtract` is set."""

    first: Term
    second: Term
    result: Result
    subtract: bool

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored sums of stored values with broadcastable shapes."""
        second_term = self.second.apply(second)
        return self.result.apply(self.first.apply(first) + (-second_term if self.subtract else second_term))

    def parts(self) -> Parts:
        """Return the sum before rounding."""
        result, second = self.result, self.second.apply(STORED)
        return Parts(
            first=self.first.apply(STORED),
            second=-second if self.subtract else second,
            unit=result.multiplier * 2.0 ** (result.shift - 31),
            constant=result.zero_point,
            low=result.low,
            high=result.high,
        )


@frozen
class Product:
    """The arithmetic of MUL."""

    first_offset: int
    second_offset: int
    result: Result

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored products of stored values with broadcastable shapes."""
        return self.result.apply((first + self.first_offset) * (second + self.second_offset))


def sum_of(operands: Operands, activation: Activation, *, subtract: bool) -> Sum:
    """Return the arithmetic of a quantised ADD or SUB.

    Raises:
        UnsupportedError: the scales are too far apart for the reference kernels.
    """
    output = operands.output
    left_shift = _LEFT_SHIFT[output.dtype]
    first, second, twice_max = terms_of(operands, left_shift)
    factor = twice_max / ((1 << left_shift) * output.scale)
    multiplier, shift = _factor_below_one(factor, output)
    result = result_of(output, activation, multiplier, shift)
    return Sum(first=first, second=second, result=result, subtract=subtract)


def terms_of(operands: Operands, left_shift: int) -> tuple[Term, Term, float]:
    """Return the conversions of two inputs to their common scale, and that scale: twice the larger one.

    Raises:
        UnsupportedError: the scales are too far apart for the reference kernels.
    """
    first, second = operands.pair
    twice_max = 2 * max(first.scale, second.scale)
    return _term(first, twice_max, left_shift), _term(second, twice_max, left_shift), twice_max


def product_of(operands: Operands, activation: Activation) -> Product:
    """Return the arithmetic of a quantised MUL.

    Raises:
        UnsupportedError: the output's scale is too small.
    """
    first, second, output = *operands.pair, operands.output
    real = first.scale * second.scale / output.scale
    multiplier, shift = quantize_multiplier(real)
    if shift > MAX_SHIFT:
        raise UnsupportedError(f"the product's scale over that of '{output.name}' is {real:g}, expected below 2**30")
    return Product(
        first_offset=-first.zero_point,
        second_offset=-second.zero_point,
        result=result_of(output, activation, multiplier, shift),
    )


def combine(combination: Combination, first: Array, second: Array) -> Array:
    """Return the stored results for int8 or int16 arrays of broadcastable shapes."""
    if first.dtype == np.int8:
        row = first.view(np.uint8).astype(np.uint16) << np.uint16(8)
        return np.take(int8_results(combination), row | second.view(np.uint8))
    return combination.apply(first.astype(np.int64), second.astype(np.int64)).astype(first.dtype)


@lru_cache(maxsize=64)
def int8_results(combination: Combination) -> Array:
    """Return the results for all pairs of int8 values; the index is 256 * first + second, both read as uint8."""
    return read_only(combination.apply(STORED[:, np.newaxis], STORED).astype(np.int8).reshape(-1))


def _term(info: TensorInfo, twice_max: float, left_shift: int) -> Term:
    multiplier, shift = _factor_below_one(info.scale / twice_max, info)
    return Term(offset=-info.zero_point, left_shift=left_shift, multiplier=multiplier, shift=shift)


def _factor_below_one(real: float, info: TensorInfo) -> tuple[int, int]:
    if 0 < real < 1:
        multiplier, shift = quantize_multiplier(real)
        if shift <= 0:
            return multiplier, shift
    raise UnsupportedError(
        f"tensor '{info.name}' has scale {info.scale:g}, a factor of {real:g} relative to the other scales, "
        "expected one between 0 and 1"
    )


def result_of(output: TensorInfo, activation: Activation, multiplier: int, shift: int) -> Result:
    """Return the conversion of a sum, product or quotient by a factor to the output's stored values."""
    low, high = activation_range(activation, output)
    return Result(multiplier=multiplier, shift=shift, zero_point=output.zero_point, low=low, high=high)
