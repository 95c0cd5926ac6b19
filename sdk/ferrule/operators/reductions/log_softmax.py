# SPDX-License-Identifier: Apache-2.0
"""LOG_SOFTMAX over the last axis; the int8 kernel has the exponentials of SOFTMAX and a logarithm in Q5.26."""

from __future__ import annotations

import math

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.error_bound import in_float64, least, of_floats, rounding
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from ferrule.operators.movement.checks import check_per_tensor, check_prescribed, check_types
from ferrule.operators.operator import Evaluation, Operands, Operator, of_one
from ferrule.operators.reductions.softmax import check_rows, exponentials
from ferrule.operators.sample import sample_fixed

OUTPUT: dict[DataType, Quantization] = {DataType.INT8: Quantization.of(1 / 16, 127)}
"""The output quantisation that TensorFlow Lite prescribes, by type."""
_TYPES = frozenset({DataType.FLOAT32, DataType.INT8})
_MAX_DEPTH = (1 << 12) - 1
"""The longest int8 row whose sum of exponentials fits into 32 bits."""
_OUTPUT_BITS = 31 - 5 - 4
_INT32_MIN = -(1 << 31)


@frozen
class LogSoftmaxDescriptor(Descriptor):
    """One input, one output, over the last axis."""


@frozen
class Scaling:
    """The conversion of differences from a row's maximum to Q5.26, and back."""

    multiplier: int
    shift: int
    reverse_multiplier: int
    reverse_shift: int

    @classmethod
    def of(cls, scale: float) -> Scaling:
        """Return the conversion for an input's scale."""
        multiplier, shift = quantize_multiplier(min(scale * (1 << 26), (1 << 31) - 1.0))
        reverse_multiplier, reverse_shift = quantize_multiplier((1 << (31 - shift)) / multiplier)
        return cls(
            multiplier=multiplier, shift=shift, reverse_multiplier=reverse_multiplier, reverse_shift=reverse_shift
        )


def check(_: LogSoftmaxDescriptor, operands: Operands) -> None:
    """Refuse types and quantisations that TensorFlow Lite Micro's kernel does not support."""
    check_types(operands, _TYPES)
    source, output = operands.ends
    if not source.shape:
        raise UnsupportedError(f"tensor '{source.name}' is a scalar, LOG_SOFTMAX needs an axis")
    if output.dtype.is_float:
        return
    check_per_tensor(source, output)
    check_rows(source, 1.0)
    if source.shape[-1] > _MAX_DEPTH:
        raise UnsupportedError(
            f"tensor '{source.name}' has rows of {source.shape[-1]}, LOG_SOFTMAX of int8 takes at most {_MAX_DEPTH}"
        )
    check_prescribed("LOG_SOFTMAX", output, OUTPUT[output.dtype])
    if Scaling.of(source.scale).shift > MAX_SHIFT:
        raise UnsupportedError(f"tensor '{source.name}' has scale {source.scale:g}, LOG_SOFTMAX needs less than 16")


def kernel(_: LogSoftmaxDescriptor, operands: Operands, data: Array) -> Array:
    """Return the logarithm of the softmax over the last axis."""
    if operands.output.dtype is DataType.INT8:
        return _int8(data, operands.source.scale)
    wide = data.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = wide - wide.max(axis=-1, keepdims=True)
        return np.asarray(difference - np.log(np.exp(difference).sum(axis=-1, keepdims=True)), np.float32)


def _int8(data: Array, scale: float) -> Array:
    table, scaling = exponentials(1.0, scale), Scaling.of(scale)
    difference = data.astype(np.int64) - data.max(axis=-1, keepdims=True)
    padded = np.zeros(256, np.int64)
    padded[: table.size] = rounding_divide_by_pot(table, 12)
    logarithm = functions.logarithm(padded[-difference].sum(axis=-1, keepdims=True))
    least = multiply_by_quantized_multiplier(logarithm + _INT32_MIN, scaling.reverse_multiplier, scaling.reverse_shift)
    fine = multiply_by_quantized_multiplier(difference, scaling.multiplier, scaling.shift)
    result = rounding_divide_by_pot(fine - logarithm, _OUTPUT_BITS) + 127
    kept = difference > np.maximum(least, -radius(scaling) - 1)
    return np.where(kept, np.clip(result, -128, 127), -128).astype(np.int8)


def radius(scaling: Scaling) -> int:
    """Return the greatest difference whose exponential counts."""
    return math.floor(31 * (1 << 26) / (1 << scaling.shift))


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the differences: the errors of exponents, functions, the sum and its logarithm."""
    data, error, result = in_float64(evaluation)
    with np.errstate(all="ignore"):
        distance = np.abs(data - data.max(axis=-1, keepdims=True))
        spread = np.nan_to_num(np.exp(result) * distance, nan=0.0).sum(axis=-1, keepdims=True)
        magnitude = 3 * distance + 4 * np.abs(result) + spread + 6
    return [error + error.max(axis=-1, keepdims=True) + rounding(evaluation, magnitude, 1) + least(evaluation)]


LOG_SOFTMAX = Operator(
    descriptor=LogSoftmaxDescriptor,
    type=LayerType.LOG_SOFTMAX,
    prescribed=OUTPUT,
    check=check,
    kernel=of_one(kernel),
    bound=of_floats(_bound),
    sample=sample_fixed(LogSoftmaxDescriptor(), OUTPUT),
)
