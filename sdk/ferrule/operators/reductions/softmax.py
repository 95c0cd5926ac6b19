# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX.

TensorFlow Lite Micro's int8 kernel uses exponentials of the differences from the row's maximum in Q0.31 and their sum
in Q12.19. The int16 kernel interpolates linearly in two tables of 513 values, one for exp over [-10, 0] and one for
1 / (1 + x) over [0, 1].

By ONNX's rule (onnxruntime's QLinearSoftmax), the exponentials of the differences are a table of 256 float32 numbers,
as large as their sum allows, which is added up in order. The quotients are rounded in float64; by the rule in float32,
they are quantised as QuantizeLinear does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Rounding, TensorInfo
from ferrule.graph.real_values import ieee_floats, overflowing_floats, round_half_away, saturated
from ferrule.graph.tensor import read_only
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.error_bound import in_float64, least, of_floats, rounding
from ferrule.operators.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from ferrule.operators.elementwise.quantize import quantize_to_even
from ferrule.operators.movement.checks import check_per_tensor, check_prescribed, check_types
from ferrule.operators.operator import Evaluation, Operands, Operator, of_one
from ferrule.operators.sample import FROM_0_TO_1, sample_fixed

_DIFFERENCE_BITS = 5
_SUM_BITS = 12
_SUM_LIMIT = (1 << (_SUM_BITS + 1)) - 1
"""The longest row whose sum of exponentials fits into 32 bits, in elements."""
_MOST_STEPS = 1 << 16
_INT16_SUM_LIMIT = (1 << 31) // 32767
"""The same for int16, whose exponentials are at most 32767."""

_Floats = NDArray[np.float32]
_VANISHING = 110.0
"""exp of minus this is 0 in float32, and in the sums."""


@frozen
class SoftmaxDescriptor(Descriptor):
    """One input, one output, over the last axis."""

    beta: float = 1.0
    """Factor applied to the input, exactly representable in float32."""


def check(descriptor: SoftmaxDescriptor, operands: Operands) -> None:
    """Refuse types and quantisations that TensorFlow Lite Micro's kernel does not support."""
    source, output = operands.ends
    if not source.shape:
        raise UnsupportedError(f"tensor '{source.name}' is a scalar, SOFTMAX needs an axis")
    check_per_tensor(source, output)
    if operands.rounding is not Rounding.TFLM:
        check_types(operands, frozenset({DataType.INT8}))
        if descriptor.beta != 1:
            raise UnsupportedError(f"SOFTMAX has beta {descriptor.beta:g}, expected 1 by {operands.rounding.phrase}")
        onnx_steps(output)
        return
    match source.dtype, output.dtype:
        case (DataType.FLOAT32, DataType.FLOAT32):
            return
        case (DataType.INT8, DataType.INT8):
            check_prescribed("SOFTMAX", output, FROM_0_TO_1[DataType.INT8])
        case (DataType.INT8, DataType.INT16):
            check_prescribed("SOFTMAX", output, Quantization.of(1 / 65536, -32768), tolerance=0.001)
        case (DataType.INT16, DataType.INT16):
            check_prescribed("SOFTMAX", output, FROM_0_TO_1[DataType.INT16], tolerance=0.001)
        case _:
            raise UnsupportedError(
                f"SOFTMAX of {source.dtype} to {output.dtype} is not supported, "
                "expected float32, int8 to int8 or int16, or int16 to int16"
            )
    check_rows(source, descriptor.beta)


def check_rows(info: TensorInfo, beta: float) -> None:
    """Refuse rows and scales of a quantised input that the fixed-point arithmetic does not support."""
    factor = info.scale * beta
    limit = _SUM_LIMIT if info.dtype is DataType.INT8 else _INT16_SUM_LIMIT
    if info.shape[-1] > limit:
        raise UnsupportedError(
            f"tensor '{info.name}' has rows of {info.shape[-1]}, SOFTMAX of {info.dtype} takes at most {limit}"
        )
    if info.dtype is DataType.INT8:
        if factor * (1 << (31 - _DIFFERENCE_BITS)) <= 1:
            raise UnsupportedError(
                f"tensor '{info.name}' has a scale of {info.scale:g}; times beta it must exceed 2^-26 for SOFTMAX"
            )
        return
    if info.zero_point != 0:
        raise UnsupportedError(f"tensor '{info.name}' has zero point {info.zero_point}, SOFTMAX of int16 needs 0")
    _, shift = int16_multiplier(beta, info.scale)
    if factor <= 0 or shift > 15:
        raise UnsupportedError(
            f"tensor '{info.name}' has a scale of {info.scale:g}; times beta it must be positive and below 5 for "
            "SOFTMAX of int16"
        )


def kernel(descriptor: SoftmaxDescriptor, operands: Operands, data: Array) -> Array:
    """Return the softmax over the last axis."""
    source, output = operands.ends
    if operands.rounding is not Rounding.TFLM:
        return _softmax_onnx(data, operands)
    if source.dtype is DataType.FLOAT32:
        return _softmax_float(data, descriptor.beta)
    if source.dtype is DataType.INT8:
        return _softmax_int8(data, exponentials(descriptor.beta, source.scale), output.dtype)
    return _softmax_int16(data, descriptor.beta, source.scale)


@lru_cache(maxsize=64)
def onnx_exponentials(scale: float, depth: int) -> Array:
    """Return exp((i - 255) * scale + bonus) as float32 for i = 0 to 255; `depth` of them do not overflow in a sum."""
    share = np.finfo(np.float32).max / np.float32(depth)
    bonus = max(0.0, float(np.float32(math.log(float(share)))) - 5) / scale
    with np.errstate(under="ignore"):
        return read_only(np.exp((np.arange(256) - 255 + bonus) * scale).astype(np.float32))


def onnx_steps(output: TensorInfo) -> int:
    """Return how many whole steps of the output's scale 1 has, in float32; onnxruntime multiplies with them."""
    with overflowing_floats():
        steps = np.floor(np.float32(1) / np.float32(output.scale))
    if steps > _MOST_STEPS:
        raise UnsupportedError(f"tensor '{output.name}' has scale {output.scale:g}, SOFTMAX needs 2^-16 or more")
    return int(steps)


@lru_cache(maxsize=64)
def exponentials(beta: float, scale: float) -> Array:
    """Return exp(-i * scale * beta) in Q0.31 as int32 for i = 0, 1...; values beyond the end count as zero."""
    real = min(beta * scale * (1 << (31 - _DIFFERENCE_BITS)), (1 << 31) - 1.0)
    multiplier, shift = quantize_multiplier(real)
    radius = math.floor(((1 << _DIFFERENCE_BITS) - 1) * (1 << (31 - _DIFFERENCE_BITS)) / (1 << shift))
    differences = -np.arange(min(radius, 255) + 1, dtype=np.int64)
    rescaled = saturating_rounding_doubling_high_mul(differences << shift, multiplier)
    return read_only(functions.exp_of_negative(rescaled, _DIFFERENCE_BITS).astype(np.int32))


def int16_multiplier(beta: float, scale: float) -> tuple[int, int]:
    """Return the multiplier and the shift that map [-10, 0] to [-65535, 0]."""
    return quantize_multiplier(scale * beta / (10.0 / 65535.0))


@cache
def int16_tables() -> tuple[Array, Array]:
    """Return tables of exp over [-10, 0] and of 1 / (1 + x) over [0, 1], each 513 int16 values in Q0.15."""
    steps = np.float32(65535)
    exp = _interpolation_table(np.float32(10) / steps * -steps, np.float32(0), _exp)
    inverse = _interpolation_table(np.float32(0), np.float32(1) / steps * steps, _one_over_one_plus)
    return exp, inverse


def interpolate(table: Array, x: functions.Raw) -> functions.Raw:
    """Return the values interpolated in a table of 513 int16 values, at int16 positions."""
    values: functions.Raw = table.astype(np.int64)
    index, fraction = (x >> 7) + 256, x & 0x7F
    low: functions.Raw = values[index]
    return np.asarray(low + (((values[index + 1] - low) * fraction + 64) >> 7), np.int64)


def _exp(x: _Floats) -> _Floats:
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _one_over_one_plus(x: _Floats) -> _Floats:
    return np.asarray(1 / (1 + x), np.float32)


def _interpolation_table(lowest: np.float32, highest: np.float32, function: Callable[[_Floats], _Floats]) -> Array:
    """Return the table, computed as in TensorFlow Lite, step by step in float32.

    Each value is corrected by half of the interpolation error in the middle of its interval.
    """
    unit = np.float32(2) / np.float32(65535)
    gain = np.float32(65536) / (unit * np.float32(32767) - unit * np.float32(-32768))
    step = (highest - lowest) / np.float32(512)
    positions = lowest + np.arange(513, dtype=np.float32) * step
    values = function(positions) * gain
    ends, middles = values[1:], round_half_away(function(positions[:-1] + step / np.float32(2)) * gain)
    starts = round_half_away(values[:-1])
    error = round_half_away((ends + starts) / np.float32(2)) - middles
    last = round_half_away(function(np.array([highest])) * gain)
    filled = np.concatenate([starts - round_half_away(error / np.float32(2)), last])
    return read_only(saturated(filled, np.int16))


def _softmax_int8(data: Array, table: Array, dtype: DataType) -> Array:
    difference = data.max(axis=-1, keepdims=True).astype(np.int64) - data
    padded = np.zeros(256, np.int64)
    padded[: table.size] = table
    exponential: functions.Raw = padded[difference]
    total = rounding_divide_by_pot(exponential, _SUM_BITS).sum(axis=-1, keepdims=True)
    scale, over_unit = functions.reciprocal(total, _SUM_BITS)
    shift = over_unit + 31 - 8 * dtype.size_bytes
    scaled = rounding_divide_by_pot(saturating_rounding_doubling_high_mul(scale, exponential), shift)
    return saturated(scaled + np.iinfo(dtype.numpy).min, dtype.numpy)


def _softmax_onnx(data: Array, operands: Operands) -> Array:
    """Return the quotients, rounded in float64; by the rule in float32, they are quantised."""
    output = operands.output
    difference = data.astype(np.intp) - data.max(axis=-1, keepdims=True)
    exponential = onnx_exponentials(operands.source.scale, data.shape[-1])[difference + 255]
    total = np.add.accumulate(exponential, axis=-1)[..., -1:]  # in order; np.sum is not
    if operands.rounding is Rounding.ONNX_FLOAT:
        return quantize_to_even(exponential / total, output)
    steps = np.rint(exponential.astype(np.float64) * onnx_steps(output) / total.astype(np.float64))
    return saturated(steps + output.zero_point, np.int8)


def _softmax_int16(data: Array, beta: float, scale: float) -> Array:
    exp_table, inverse_table = int16_tables()
    multiplier, shift = int16_multiplier(beta, scale)
    difference = data.astype(np.int64) - data.max(axis=-1, keepdims=True)
    scaled = multiply_by_quantized_multiplier(difference, multiplier, shift)
    exponential = interpolate(exp_table, np.clip(scaled + 32767, -32768, 32767))
    total = exponential.sum(axis=-1, keepdims=True)
    headroom = functions.leading_zeros(total)
    shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
    inverse = interpolate(inverse_table, np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767))
    right = 31 - headroom
    result = (exponential * inverse + (np.int64(1) << (right - 1))) >> right
    return np.asarray(np.clip(result, 0, 32767), np.int16)


def _softmax_float(data: Array, beta: float) -> Array:
    wide = data.astype(np.float64)
    with ieee_floats():
        exponential = np.exp((wide - wide.max(axis=-1, keepdims=True)) * beta)
    return np.asarray(exponential / exponential.sum(axis=-1, keepdims=True), np.float32)


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the quotients: the errors of the exponents, of the functions, of the sum and of the division."""
    (data, error, shares), beta = in_float64(evaluation), abs(evaluation.descriptor.beta)
    with ieee_floats():
        exponent = np.minimum(beta * np.abs(data - data.max(axis=-1, keepdims=True)), _VANISHING)
        spread = (shares * exponent).sum(axis=-1, keepdims=True)
        moved = shares * np.expm1(beta * (error + error.max(axis=-1, keepdims=True)))
        moved = np.fmin(moved, np.maximum(shares, 1 - shares))  # shares lie between 0 and 1
    units = exponent + spread + 5  # a unit in the last place is up to two unit roundoffs
    return [moved + rounding(evaluation, shares + moved, units) + least(evaluation)]


SOFTMAX = Operator(
    descriptor=SoftmaxDescriptor,
    type=LayerType.SOFTMAX,
    prescribed=FROM_0_TO_1,
    check=check,
    kernel=of_one(kernel),
    bound=of_floats(_bound),
    rules=frozenset({Rounding.TFLM, Rounding.ONNX, Rounding.ONNX_FLOAT}),
    sample=sample_fixed(SoftmaxDescriptor(beta=0.5), FROM_0_TO_1),
)
