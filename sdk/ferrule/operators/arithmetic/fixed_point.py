# SPDX-License-Identifier: Apache-2.0
"""The rescaling of accumulators to stored values, by each rule of `ferrule.graph.Rounding`.

A real factor is stored as `multiplier * 2**(shift - 31)` with a 31-bit multiplier.

TFLM: accumulators of 32 bits are rounded twice, by gemmlowp's doubling high product, then by a rounding division by a
power of two. Accumulators of 64 bits, used by kernels with int16 data, are rounded once, with the multiplier reduced to
16 bits. Both are bit-exact with TensorFlow Lite Micro's reference kernels.

SINGLE: the product with the multiplier is rounded once, halves up, as in TensorFlow Lite's kernels built with
TFLITE_SINGLE_ROUNDING.

ONNX: the accumulator is converted to float32, multiplied by a float32 factor, and the product is rounded to a whole
number, halves to even. The float32 factor has 24 bits, so the 31-bit multiplier stores it exactly. This is what
onnxruntime's QLinearConv computes (measured, see docs/operators.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import ONNX_ROUNDINGS, Rounding, TensorInfo
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.activation import Activation

MAX_SHIFT = 30
"""The largest left shift of a 32-bit accumulator that is defined in C."""
MAX_WIDE_SHIFT = 7
"""The largest left shift that the rescaling of 64-bit accumulators supports."""

_INT32 = np.iinfo(np.int32)
_SATURATED = 1 << 30
"""Adding any zero point to it does not wrap at 32 bits."""


Int64Array = NDArray[np.int64]
Float32Array = NDArray[np.float32]


def product_scale(first: float, second: float, output: TensorInfo, rounding: Rounding) -> float:
    """Return `first * second / output.scale`, the factor of products, in the precision of the rule."""
    if rounding in ONNX_ROUNDINGS:
        with overflowing_floats():
            return float(np.float32(first) * np.float32(second) / np.float32(output.scale))
    return first * second / output.scale


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return the multiplier and the shift of a factor >= 0; a factor below 2**-32 becomes (0, 0)."""
    if not (math.isfinite(real) and real >= 0):
        raise UnsupportedError(f"the scale factor is {real}, expected a finite number of 0 or more")
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * 2.0**31 + 0.5)
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


@frozen
class Factor:
    """A factor >= 0 as `quantize_multiplier` has it: multiplier * 2**(shift - 31)."""

    multiplier: int
    shift: int

    @staticmethod
    def of(real: float, info: TensorInfo, limit: int = MAX_SHIFT, *, name: str = "the factor") -> Factor:
        """Return a factor; UnsupportedError says what it is, and names the tensor, if it is 2**limit or more."""
        multiplier, shift = quantize_multiplier(real)
        if shift > limit:
            raise UnsupportedError(f"{name} of '{info.name}' is {real:g}, expected less than 2**{limit}")
        return Factor(multiplier=multiplier, shift=shift)

    def apply(self, values: Int64Array) -> Int64Array:
        """Return 32-bit values times the factor, rounded twice."""
        return multiply_by_quantized_multiplier(values, self.multiplier, self.shift)


def factor_arrays(factors: Sequence[Factor]) -> tuple[Int64Array, Int64Array]:
    """Return multipliers and shifts, as int64."""
    multipliers = np.array([factor.multiplier for factor in factors], np.int64)
    return multipliers, np.array([factor.shift for factor in factors], np.int64)


def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> Int64Array:
    """Return round(a * b / 2**31) of int32 values, with halves rounded up, saturated if both are -2**31."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    rounded: Int64Array = np.minimum((product + (1 << 30)) >> 31, _INT32.max)
    return rounded


def high_product(a: ArrayLike, b: ArrayLike) -> Int64Array:
    """Return round(a * b / 2**32) of int32 values, with halves rounded up."""
    return (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 31)) >> 32


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> Int64Array:
    """Return round(x / 2**exponent) of int32 values, with halves rounded away from zero; the exponent is 0 to 31."""
    value, power = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << power) - 1
    threshold = (mask >> 1) + (value < 0)
    return (value >> power) + ((value & mask) > threshold)


def multiply_by_quantized_multiplier(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int64Array:
    """Return int32 values times multiplier * 2**(shift - 31), rounded twice; a left shift wraps at 32 bits."""
    left, right = np.maximum(shift, 0), np.maximum(np.negative(shift), 0)
    shifted = wrap_int32(np.asarray(x, np.int64) << np.asarray(left, np.int64))
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, multiplier), right)


def rescale(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, rounding: Rounding) -> Int64Array:
    """Return int32 values times multiplier * 2**(shift - 31), rounded by the rule, before the zero point is added.

    Rules other than TFLM's saturate far beyond any stored value.
    """
    if rounding is Rounding.TFLM:
        return multiply_by_quantized_multiplier(x, multiplier, shift)
    if rounding is Rounding.SINGLE:
        scaled = multiply_once(x, multiplier, shift)
    else:
        scaled = np.rint(multiply_float32(x, multiplier, shift)).astype(np.int64)
    return np.asarray(scaled.clip(-_SATURATED, _SATURATED))


def multiply_once(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int64Array:
    """Return int32 values times multiplier * 2**(shift - 31), rounded once, halves up."""
    total_shift = 31 - np.asarray(shift, np.int64)
    rounding = np.int64(1) << (total_shift - 1)
    product: Int64Array = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    return (product + rounding) >> total_shift


def multiply_float32(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Float32Array:
    """Return int32 values times the float32 factor multiplier * 2**(shift - 31), not rounded to whole numbers."""
    factor = np.ldexp(np.asarray(multiplier, np.float64), np.asarray(shift, np.int64) - 31).astype(np.float32)
    with np.errstate(under="ignore"):
        return np.asarray(np.asarray(x, np.int64).astype(np.float32) * factor, np.float32)


def fused_multiply_add(a: ArrayLike, b: float, c: ArrayLike) -> Float32Array:
    """Return a * b + c of float32 numbers, rounded once to float32; `a` has at most 24 bits.

    float64 has the product exactly. Its sum with `c` is rounded to odd, so that rounding it again to float32 gives the
    result of a single rounding (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    product = np.asarray(a, np.float64) * np.float64(np.float32(b))
    addend = np.asarray(c, np.float32).astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.asarray(np.where((error != 0) & even, nudged, total), np.float32)


def multiply_wide_by_quantized_multiplier(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int64Array:
    """Return int64 values below 2**47 times multiplier * 2**(shift - 31), rounded once, as int32 values."""
    total_shift = 15 - np.asarray(shift, np.int64)
    rounding = np.int64(1) << (total_shift - 1)
    product = np.asarray(x, np.int64) * reduced_multiplier(multiplier)
    return wrap_int32((product + rounding) >> total_shift)


def reduced_multiplier(multiplier: ArrayLike) -> Int64Array:
    """Return a 31-bit multiplier rounded to 15 bits, halves up, for the rescaling of 64-bit accumulators."""
    value = np.asarray(multiplier, np.int64)
    return np.where(value < 0x7FFF0000, (value + (1 << 15)) >> 16, 0x7FFF)


def wrap_int32(x: ArrayLike) -> Int64Array:
    """Return int64 values wrapped modulo 2**32 into the range of int32."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def activation_range(activation: Activation, info: TensorInfo) -> tuple[int, int]:
    """Return the lowest and the highest stored value of a quantised tensor after a fused activation.

    Raises:
        UnsupportedError: a limit does not fit into 32 bits.
    """
    limits = np.iinfo(info.dtype.numpy)
    lower, upper = activation.limits
    low = int(limits.min) if lower is None else max(int(limits.min), _quantize_limit(lower, info))
    high = int(limits.max) if upper is None else min(int(limits.max), _quantize_limit(upper, info))
    return low, high


def _quantize_limit(limit: float, info: TensorInfo) -> int:
    with overflowing_floats():
        steps = float(np.float32(limit) / np.float32(info.scale))
    if not abs(steps) < 2.0**31:
        raise UnsupportedError(f"tensor '{info.name}' has scale {info.scale}, too small for the limit {limit}")
    # Halves round away from zero; a float32 has fewer bits than a float64, so the sum is exact.
    return info.zero_point + int(math.copysign(math.floor(abs(steps) + 0.5), steps))
