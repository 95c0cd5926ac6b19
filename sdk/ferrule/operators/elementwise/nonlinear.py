# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC, TANH and HARD_SWISH.

The int8 kernels are functions of one byte, so they are tables of 256 values. The int16 kernels of LOGISTIC and TANH
interpolate a shared table of the sigmoid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, TensorInfo
from ferrule.graph.real_values import ieee_floats, overflowing_floats, saturated
from ferrule.graph.tensor import read_only
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from ferrule.operators.arithmetic.onnx_real import tabulated
from ferrule.operators.arithmetic.sigmoid_table import SIGMOID_TABLE
from ferrule.operators.movement.checks import check_per_tensor, check_prescribed, check_same_type
from ferrule.operators.operator import EVERY_INT8, Operands, Operator, look_up, of_one
from ferrule.operators.sample import FROM_0_TO_1, FROM_MINUS_1_TO_1, sample_fixed, sample_unary

_INT8 = EVERY_INT8.astype(np.int64)
_TABLES = 64
"""The number of tables of each kind that are cached, for networks that run many times."""


@frozen
class LogisticDescriptor(Descriptor):
    """One input, one output."""


@frozen
class TanhDescriptor(Descriptor):
    """One input, one output."""


@frozen
class HardSwishDescriptor(Descriptor):
    """One input, one output."""


def check_hard_swish(_: HardSwishDescriptor, operands: Operands) -> None:
    """Refuse types without a reference kernel, and scales outside the range of the 16-bit arithmetic."""
    source, output = operands.ends
    check_same_type("HARD_SWISH", operands, (DataType.FLOAT32, DataType.INT8))
    check_per_tensor(source, output)
    if source.dtype is DataType.INT8:
        _HardSwish.of(source, output)


def logistic(_: LogisticDescriptor, operands: Operands, data: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    source = operands.source
    match source.dtype:
        case DataType.INT8:
            return look_up(_sigmoidal_table(functions.logistic, 8, -128, source), data)
        case DataType.INT16:
            return logistic_s16(data, *sigmoid_multiplier(source.scale, (0,)))
    with overflowing_floats():
        return np.asarray(1 / (1 + np.exp(-data.astype(np.float64))), np.float32)


def tanh(_: TanhDescriptor, operands: Operands, data: Array) -> Array:
    """Return the hyperbolic tangent."""
    source = operands.source
    match source.dtype:
        case DataType.INT8:
            return look_up(_sigmoidal_table(functions.tanh, 7, 0, source), data)
        case DataType.INT16:
            return tanh_s16(data, *sigmoid_multiplier(source.scale, (0, 1)))
    return np.asarray(np.tanh(data.astype(np.float64)), np.float32)


def hard_swish(_: HardSwishDescriptor, operands: Operands, data: Array) -> Array:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    source = operands.source
    if source.dtype is DataType.INT8:
        return look_up(hard_swish_table(source, operands.output), data)
    wide = data.astype(np.float64)
    with ieee_floats():
        return np.asarray(wide * np.clip(wide + 3, 0, 6) / 6, np.float32)


@lru_cache(maxsize=2 * _TABLES)  # of two functions
def _sigmoidal_table(
    function: Callable[[functions.Raw], functions.Raw], bits: int, zero_point: int, source: TensorInfo
) -> Array:
    """Return the int8 result of a function from Q4 to Q0, in a scale of 2^-bits, for each int8 input from -128 on."""
    inside, q4, above = _to_q4(source)
    value = rounding_divide_by_pot(function(q4), 31 - bits) + zero_point
    return read_only(np.where(inside, np.clip(value, -128, 127), np.where(above, 127, -128)).astype(np.int8))


@lru_cache(maxsize=_TABLES)
def hard_swish_table(source: TensorInfo, output: TensorInfo) -> Array:
    """Return the int8 result for each int8 input, starting at -128."""
    return read_only(_HardSwish.of(source, output).table())


def sigmoid_multiplier(scale: float, exact_shifts: tuple[int, ...]) -> tuple[int, int]:
    """Return the multiplier and the right shift that convert an int16 value to the table's scale.

    If the scale is 2^(k - 12) for a k in `exact_shifts`, the multiplier is 3 * 2^k; otherwise it has 15 bits.
    """
    logarithm, exact = _log2(scale)
    if exact and logarithm + 12 in exact_shifts:
        return 3 << (logarithm + 12), 0
    factor, shift = scale * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2.0, shift + 1
    return int(factor), shift


def _check_sigmoidal(layer_type: LayerType, prescribed: Quantization, _: Descriptor, operands: Operands) -> None:
    """Refuse layers that TensorFlow Lite Micro refuses, and int8 outputs that its kernel would misinterpret."""
    name, source, output = str(layer_type), operands.source, operands.output
    check_same_type(name, operands, (DataType.FLOAT32, DataType.INT8, DataType.INT16))
    check_per_tensor(source, output)
    if source.dtype is DataType.INT8:
        check_prescribed(name, output, prescribed)
        if not 2.0**-28 <= source.scale < 2.0**30:
            raise UnsupportedError(f"tensor '{source.name}' has scale {source.scale:g}, {name} needs 2^-28 to 2^30")
    elif source.dtype is DataType.INT16:
        _check_sigmoidal_int16(name, source, output)


def _check_sigmoidal_int16(name: str, source: TensorInfo, output: TensorInfo) -> None:
    for info in (source, output):
        if info.zero_point != 0:
            raise UnsupportedError(f"tensor '{info.name}' has zero point {info.zero_point}, {name} of int16 needs 0")
    if _log2(output.scale) != (-15, True):
        raise UnsupportedError(f"tensor '{output.name}' has scale {output.scale:g}, {name} to int16 needs 2^-15")
    if source.scale * 4096.0 * 3.0 >= 32768:
        raise UnsupportedError(
            f"tensor '{source.name}' has scale {source.scale:g}, {name} of int16 needs less than 8/3"
        )


def _log2(scale: float) -> tuple[int, bool]:
    """Return the rounded base-2 logarithm and whether its error is below 0.001, in float32 as in TensorFlow Lite."""
    logarithm = np.float32(math.log(scale)) * (np.float32(1) / np.float32(math.log(2)))
    nearest = round(float(logarithm))
    return nearest, bool(abs(logarithm - np.float32(nearest)) < np.float32(1e-3))


def _to_q4(source: TensorInfo) -> tuple[Array, Array, Array]:
    """Return, for each int8 input, whether it is in the range of Q4, its Q4 value or 0, and whether it is above."""
    multiplier, shift = quantize_multiplier(source.scale * (1 << 27))
    radius = math.floor(15 * (1 << 27) / 2.0**shift)
    centred = _INT8 - source.zero_point
    inside = np.abs(centred) < radius
    q4 = multiply_by_quantized_multiplier(np.where(inside, centred, 0), multiplier, shift)
    return inside, q4, ~inside & (centred >= radius) & (centred > -radius)


def logistic_s16(data: Array, multiplier: int, shift: int) -> Array:
    """Return 1 / (1 + exp(-x)) in Q0.15; multiplier and right shift convert the data to the table's scale."""
    scaled = _to_table_scale(data, multiplier, shift)
    magnitude = np.abs(scaled)
    index, fraction = magnitude >> 9, magnitude & 0x1FF
    low, high = _neighbours(index)
    value = np.where(index >= 255, 0x7FFF << 10, (low << 9) + fraction * (high - low))
    signed = np.where(scaled >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1)
    return np.asarray(signed >> 10, np.int16)


def tanh_s16(data: Array, multiplier: int, shift: int) -> Array:
    """Return the hyperbolic tangent in Q0.15, with arguments as `logistic_s16`."""
    scaled = _to_table_scale(data, multiplier, shift)
    magnitude = np.abs(scaled)
    index, fraction = magnitude >> 8, magnitude & 0xFF
    low, high = _neighbours(index)
    value = np.where(index >= 255, 0xFFFF << 8, (low << 8) + fraction * (high - low))
    signed = np.where(scaled >= 0, value - (1 << 23) + (1 << 7), (1 << 23) - value + (1 << 7) - 1)
    return np.asarray(signed >> 8, np.int16)


def _to_table_scale(data: Array, multiplier: int, shift: int) -> functions.Raw:
    rounding = (1 << shift) >> 1
    return np.asarray((data.astype(np.int64) * multiplier + rounding) >> shift, np.int64)


def _neighbours(index: functions.Raw) -> tuple[functions.Raw, functions.Raw]:
    low = np.minimum(index, 254)
    return SIGMOID_TABLE[low].astype(np.int64), SIGMOID_TABLE[low + 1].astype(np.int64)


@frozen
class _HardSwish:
    """The 16-bit arithmetic of int8 HARD_SWISH."""

    input_zero_point: int
    output_zero_point: int
    output_multiplier: int
    output_exponent: int
    """Exponent, 0 or less."""
    gate_multiplier: int
    gate_exponent: int

    @classmethod
    def of(cls, source: TensorInfo, output: TensorInfo) -> _HardSwish:
        """Return the arithmetic for the tensors' scales; UnsupportedError if it does not fit into 16 bits."""
        with overflowing_floats():
            fine_scale = np.float32(1 / 128) * np.float32(source.scale)
            output_factor = float(fine_scale / np.float32(output.scale))
            gate_factor = float(fine_scale / (np.float32(3) / np.float32(32768)))
        output_multiplier, output_exponent = quantize_multiplier(output_factor)
        gate_multiplier, gate_exponent = quantize_multiplier(gate_factor)
        if not (-15 <= output_exponent <= 0 and -15 <= gate_exponent <= 30):
            raise UnsupportedError(
                f"HARD_SWISH cannot convert tensor '{source.name}' of scale {source.scale:g} to scale {output.scale:g} "
                f"of '{output.name}': their quotient must lie between 2^-9 and 128"
            )
        return cls(
            input_zero_point=source.zero_point,
            output_zero_point=output.zero_point,
            output_multiplier=_high_half(output_multiplier),
            output_exponent=output_exponent,
            gate_multiplier=_high_half(gate_multiplier),
            gate_exponent=gate_exponent,
        )

    def table(self) -> Array:
        """Return the results for all int8 inputs, starting at -128."""
        fine = (_INT8 - self.input_zero_point) << 7
        product = _multiply_high_16(fine, self.output_multiplier)
        gate = fine
        if self.gate_exponent > 0:
            gate = saturate_16(gate << (self.gate_exponent - 1))
        gate = _multiply_high_16(gate, self.gate_multiplier)
        if self.gate_exponent > 0:
            gate = saturate_16(gate << 1)
        elif self.gate_exponent < 0:
            gate = rounding_divide_by_pot(gate, -self.gate_exponent)
        gate = (gate + (1 << 15)) >> 1
        # unlike the other products, this one is truncated towards zero
        gated = gate * product
        cut = np.sign(gated) * (np.abs(gated) >> 15)
        result = rounding_divide_by_pot(cut, -self.output_exponent) + self.output_zero_point
        return saturated(result, np.int8)


def _high_half(multiplier: int) -> int:
    """Return a 32-bit multiplier rounded to 16 bits."""
    return min((multiplier + (1 << 15)) >> 16, 32767)


def _multiply_high_16(values: functions.Raw, multiplier: int) -> functions.Raw:
    """Return round(values * multiplier / 2^15), with halves rounded up, for a multiplier >= 0."""
    return np.asarray((values * multiplier + (1 << 14)) >> 15, np.int64)


def saturate_16(values: Array) -> functions.Raw:
    """Return whole numbers, those beyond the limits of int16 as the limit."""
    return np.asarray(np.clip(values, -32768, 32767), np.int64)


LOGISTIC, TANH = (
    tabulated(
        Operator(
            descriptor=type(descriptor),
            type=type_,
            prescribed=prescribed,
            elementwise=True,
            check=partial(_check_sigmoidal, type_, prescribed[DataType.INT8]),
            kernel=of_one(kernel),
            bound=rounded(units),
            sample=sample_fixed(descriptor, prescribed),
        )
    )
    for type_, descriptor, prescribed, kernel, units in (
        (LayerType.LOGISTIC, LogisticDescriptor(), FROM_0_TO_1, logistic, 3),
        (LayerType.TANH, TanhDescriptor(), FROM_MINUS_1_TO_1, tanh, 2),
    )
)
HARD_SWISH = tabulated(
    Operator(
        descriptor=HardSwishDescriptor,
        type=LayerType.HARD_SWISH,
        elementwise=True,
        check=check_hard_swish,
        kernel=of_one(hard_swish),
        bound=rounded(3, slope=1.5),
        sample=sample_unary(lambda _: HardSwishDescriptor(), same=False),
    )
)
