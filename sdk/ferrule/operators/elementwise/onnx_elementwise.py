# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of ADD, SUB and MUL by ONNX's rule: in float32, in the order of onnxruntime's kernels.

The orders of operations, and where the zero point is added, were measured (docs/operators.md). All zero points are
those of the model: `stored_offset` is what turns a value of the model into a stored one, -128 for uint8.
"""

from __future__ import annotations

import math

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import FLOAT_ROUNDINGS, LayerType, Rounding, TensorInfo
from ferrule.graph.real_values import ieee_floats, overflowing_floats
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import (
    Float32Array,
    Int64Array,
    activation_range,
    fused_multiply_add,
    multiply_float32,
    product_scale,
    quantize_multiplier,
)
from ferrule.operators.elementwise.stored_binary import STORED, Combination, Parts
from ferrule.operators.operator import Operands

LEAST_FACTOR, LARGEST_FACTOR = 2.0**-60, 2.0**30
"""The least and the largest quotient of scales; numbers between them keep float32 from the ends of its range."""
_LARGEST_SCALE = 2.0**118
"""With it, 255 steps are a finite number."""


@frozen
class OnnxOutput:
    """Rounds float32 results, halves to even, and clamps them."""

    zero_point: int
    stored_offset: int
    low: int
    high: int

    @classmethod
    def of(cls, info: TensorInfo, activation: Activation, rounding: Rounding) -> OnnxOutput:
        """Return the output of a layer."""
        low, high = activation_range(activation, info)
        offset = stored_offset(info, rounding)
        return cls(zero_point=info.zero_point - offset, stored_offset=offset, low=low, high=high)

    def store(self, values: Float32Array) -> Int64Array:
        """Return the stored values of results that include the zero point."""
        whole = np.rint(values).astype(np.float64) + self.stored_offset
        return np.clip(np.nan_to_num(whole, nan=self.low), self.low, self.high).astype(np.int64)


@frozen
class FusedSum:
    """ADD: `a * first_factor + (b * second_factor + constant)` in two fused multiply-adds, as QLinearAdd computes it.

    `a` and `b` are values of the model, zero points included; the constant makes up for them.
    """

    first_factor: float
    second_factor: float
    constant: float
    output: OnnxOutput

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored sums of stored values with broadcastable shapes."""
        offset = self.output.stored_offset
        inner = fused_multiply_add(second - offset, self.second_factor, self.constant)
        return self.output.store(fused_multiply_add(first - offset, self.first_factor, inner))

    def parts(self) -> Parts:
        """Return the sum in exact arithmetic."""
        output = self.output
        values = STORED - output.stored_offset
        return Parts(
            first=self.first_factor * values,
            second=self.second_factor * values,
            unit=1.0,
            constant=self.constant + output.stored_offset,
            low=output.low,
            high=output.high,
        )


@frozen
class FloatDifference:
    """SUB: real values are subtracted and divided by the scale; the zero point is added after the rounding.

    ADD of float32 values is that, too, with the second scale negated.
    """

    first_scale: float
    first_zero_point: int
    second_scale: float
    second_zero_point: int
    scale: float
    zero_point: int
    low: int
    high: int

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored differences of stored values with broadcastable shapes."""
        with ieee_floats():
            left = np.float32(self.first_scale) * (first - self.first_zero_point).astype(np.float32)
            right = np.float32(self.second_scale) * (second - self.second_zero_point).astype(np.float32)
            steps = np.rint((left - right) / np.float32(self.scale)).astype(np.float64)
        moved = np.nan_to_num(steps) + self.zero_point
        return np.clip(moved, self.low, self.high).astype(np.int64)

    def parts(self) -> Parts:
        """Return the difference in exact arithmetic."""
        return Parts(
            first=self.first_scale / self.scale * (STORED - self.first_zero_point),
            second=-self.second_scale / self.scale * (STORED - self.second_zero_point),
            unit=1.0,
            constant=self.zero_point,
            low=self.low,
            high=self.high,
        )


@frozen
class FloatProduct:
    """MUL: the product of the centred values times a float32 factor, plus the zero point, rounded after that sum."""

    first_offset: int
    second_offset: int
    multiplier: int
    shift: int
    output: OnnxOutput

    @property
    def factor(self) -> float:
        """The float32 factor."""
        return math.ldexp(self.multiplier, self.shift - 31)

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored products of stored values with broadcastable shapes."""
        return self.store((first + self.first_offset) * (second + self.second_offset))

    def store(self, products: Int64Array) -> Int64Array:
        """Return the stored values of products of centred values."""
        scaled = multiply_float32(products, self.multiplier, self.shift)
        return self.output.store(scaled + np.float32(self.output.zero_point))


@frozen
class RealProduct:
    """MUL: real values are multiplied and divided by the scale; the zero point is added after the rounding."""

    first_scale: float
    first_zero_point: int
    second_scale: float
    second_zero_point: int
    scale: float
    fused: FloatProduct
    """The product that rounds only once before the zero point is added; few results differ."""

    def apply(self, first: Int64Array, second: Int64Array) -> Int64Array:
        """Return the stored products of stored values with broadcastable shapes."""
        with overflowing_floats():
            left = np.float32(self.first_scale) * (first - self.first_zero_point).astype(np.float32)
            right = np.float32(self.second_scale) * (second - self.second_zero_point).astype(np.float32)
            return self.fused.output.store(np.asarray((left * right) / np.float32(self.scale), np.float32))


def stored_offset(info: TensorInfo, rounding: Rounding) -> int:
    """Return what is added to a rounded result: what turns a value of the model into the stored one.

    In float32, that is the whole zero point, since QuantizeLinear adds it after the rounding.
    """
    if rounding in FLOAT_ROUNDINGS:
        return info.zero_point
    return -128 if rounding is Rounding.ONNX_UINT8 else 0


def onnx_combination_of(layer_type: LayerType, activation: Activation, operands: Operands) -> Combination:
    """Return the arithmetic of a quantised ADD, SUB or MUL by ONNX's rule.

    Raises:
        UnsupportedError: the scales are too far apart.
    """
    first, second, output = *operands.pair, operands.output
    if layer_type is not LayerType.MUL:
        _check_quotient(first, output)
        _check_quotient(second, output)
    in_float = operands.rounding is Rounding.ONNX_FLOAT
    if layer_type is LayerType.SUB or (in_float and layer_type is LayerType.ADD):
        low, high = activation_range(activation, output)
        return FloatDifference(
            first_scale=first.scale,
            first_zero_point=first.zero_point,
            second_scale=second.scale if layer_type is LayerType.SUB else -second.scale,
            second_zero_point=second.zero_point,
            scale=output.scale,
            zero_point=output.zero_point,
            low=low,
            high=high,
        )
    result = OnnxOutput.of(output, activation, operands.rounding)
    if layer_type is LayerType.ADD:
        return _sum(first, second, output.scale, result)
    factor = product_scale(first.scale, second.scale, output, operands.rounding)
    if not factor <= LARGEST_FACTOR:
        raise UnsupportedError(
            f"the product's scale over that of '{output.name}' is {factor:g}, expected at most {LARGEST_FACTOR:g}"
        )
    multiplier, shift = quantize_multiplier(factor)
    product = FloatProduct(
        first_offset=-first.zero_point,
        second_offset=-second.zero_point,
        multiplier=multiplier,
        shift=shift,
        output=result,
    )
    if not in_float:
        return product
    for info in (first, second):
        if info.scale > _LARGEST_SCALE:
            raise UnsupportedError(f"tensor '{info.name}' has scale {info.scale:g}, expected at most 2^118")
    return RealProduct(
        first_scale=first.scale,
        first_zero_point=first.zero_point,
        second_scale=second.scale,
        second_zero_point=second.zero_point,
        scale=output.scale,
        fused=product,
    )


def _check_quotient(info: TensorInfo, output: TensorInfo) -> None:
    quotient = info.scale / output.scale
    if not LEAST_FACTOR <= quotient <= LARGEST_FACTOR:
        raise UnsupportedError(
            f"the scale of '{info.name}' over that of '{output.name}' is {quotient:g}, expected "
            f"{LEAST_FACTOR:g} to {LARGEST_FACTOR:g}"
        )


def _sum(first: TensorInfo, second: TensorInfo, scale: float, output: OnnxOutput) -> FusedSum:
    with overflowing_floats():
        first_factor = float(np.float32(first.scale) / np.float32(scale))
        second_factor = np.float32(second.scale) / np.float32(scale)
        second_part = second_factor * np.float32(second.zero_point - output.stored_offset)
        both = fused_multiply_add(first.zero_point - output.stored_offset, first_factor, float(second_part))
        constant = np.float32(output.zero_point) - np.float32(both)
    return FusedSum(
        first_factor=first_factor, second_factor=float(second_factor), constant=float(constant), output=output
    )
