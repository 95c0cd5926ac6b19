# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Rounding, TensorInfo
from ferrule.graph.real_values import in_steps, overflowing_floats, saturated
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    wrap_int32,
)
from ferrule.operators.movement.checks import check_per_tensor
from ferrule.operators.operator import EVERY_INT8, Operands, Operator, of_one
from ferrule.operators.sample import LayerSample

_QUANTIZE_TO = {
    DataType.FLOAT32: (DataType.INT8, DataType.INT16),
    DataType.INT8: (DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8),
    DataType.INT16: (DataType.INT8, DataType.INT16, DataType.INT32),
    DataType.INT32: (DataType.INT8, DataType.INT16),
    DataType.UINT8: (DataType.INT8,),
}
_ONNX_FROM = (DataType.FLOAT32, DataType.INT8, DataType.UINT8)
_DEQUANTIZE_FROM = (DataType.INT8, DataType.INT16, DataType.UINT8)
_INT32 = np.iinfo(np.int32)
CONVERSIONS = frozenset({LayerType.QUANTIZE, LayerType.DEQUANTIZE})
"""Layers that change how values are stored, and not the values."""


@frozen
class QuantizeDescriptor(Descriptor):
    """One input, float or integer; one integer output."""


@frozen
class DequantizeDescriptor(Descriptor):
    """One integer input, one float32 output."""


def check_quantize(_: QuantizeDescriptor, operands: Operands) -> None:
    """Refuse pairs of types without a TensorFlow Lite Micro kernel, and scales too far apart."""
    source, output = operands.ends
    if output.dtype not in _QUANTIZE_TO.get(source.dtype, ()):
        pairs = "; ".join(f"{a} to {', '.join(b)}" for a, b in _QUANTIZE_TO.items())
        raise UnsupportedError(
            f"QUANTIZE of {source.dtype} to {output.dtype} has no reference kernel, expected one of {pairs}"
        )
    check_per_tensor(source, output)
    if operands.rounding is Rounding.ONNX:
        if source.dtype not in _ONNX_FROM:
            raise UnsupportedError(
                f"tensor '{source.name}' is {source.dtype}, QUANTIZE by {operands.rounding.phrase} takes "
                f"{', '.join(_ONNX_FROM)}"
            )
        return
    if not source.dtype.is_float and requantization(source, output)[1] > MAX_SHIFT:
        raise UnsupportedError(
            f"QUANTIZE cannot convert tensor '{source.name}' of scale {source.scale:g} to scale {output.scale:g} of "
            f"'{output.name}': their quotient must be below 2^{MAX_SHIFT}"
        )


def check_dequantize(_: DequantizeDescriptor, operands: Operands) -> None:
    """Refuse pairs of types without a TensorFlow Lite Micro kernel."""
    source, output = operands.ends
    if source.dtype not in _DEQUANTIZE_FROM or output.dtype is not DataType.FLOAT32:
        raise UnsupportedError(
            f"DEQUANTIZE of {source.dtype} to {output.dtype} has no reference kernel, "
            f"expected {', '.join(_DEQUANTIZE_FROM)} to float32"
        )
    check_per_tensor(source)


def quantize(_: QuantizeDescriptor, operands: Operands, data: Array) -> Array:
    """Return the input converted to the output's scale, with halves rounded away from zero; by ONNX's rule, to even.

    ONNX's rule converts integers to float32 and back, as DequantizeLinear and QuantizeLinear do. The result saturates
    at the limits of the output's type; NaN becomes the zero point, by ONNX's rule the lowest value.
    """
    source, output = operands.ends
    if operands.rounding is Rounding.ONNX:
        real = data if source.dtype.is_float else real_values(data, source)
        return quantize_to_even(real, output)
    if source.dtype.is_float:
        return in_steps(data, output.scale, output.zero_point, output.dtype.numpy)
    multiplier, shift = requantization(source, output)
    return requantize(data, source.zero_point, multiplier, shift, output)


def dequantize(_: DequantizeDescriptor, operands: Operands, data: Array) -> Array:
    """Return scale * (input - zero point), rounded once to float32."""
    return real_values(data, operands.source)


def real_values(data: Array, info: TensorInfo) -> Array:
    """Return the float32 values of stored integers: scale * (stored - zero point), rounded once."""
    with overflowing_floats():
        return np.float32(info.scale) * (data.astype(np.int32) - info.zero_point).astype(np.float32)


def requantization(source: TensorInfo, output: TensorInfo) -> tuple[int, int]:
    """Return the multiplier and the shift that convert an integer tensor to the output's scale."""
    return quantize_multiplier(source.scale / output.scale)


def requantize(data: Array, zero_point: int, multiplier: int, shift: int, output: TensorInfo) -> Array:
    """Return (data - zero_point) times the factor, plus the output's zero point, clamped; sums wrap at 32 bits."""
    centred = wrap_int32(data.astype(np.int64) - zero_point)
    moved = wrap_int32(multiply_by_quantized_multiplier(centred, multiplier, shift) + output.zero_point)
    return saturated(moved, output.dtype.numpy)


def quantize_to_even(data: Array, output: TensorInfo) -> Array:
    """Return float32 numbers in steps of the output's scale, halves to even, saturated; the lowest value for NaN."""
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(data, np.float32) / np.float32(output.scale))
    # the sum is exact in float64, and the clamp brings it into range
    whole = np.nan_to_num(steps.astype(np.float64), nan=-np.inf) + output.zero_point
    return saturated(whole, output.dtype.numpy)


def _keeps_values(_: QuantizeDescriptor, operands: Operands) -> bool:
    """Whether every value has itself as its result: by ONNX's rule, those of a layer of int8 are computed."""
    info = operands.output
    if operands.rounding is Rounding.TFLM:
        return True
    return bool(np.array_equal(quantize_to_even(real_values(EVERY_INT8, info), info), EVERY_INT8))


def _sample_quantize(sample: LayerSample) -> Descriptor:
    sample.take(sample.shape(), Quantization.of(0.5) if sample.dtype is DataType.INT32 else None)
    sample.output_type = sample.dice.choice(_QUANTIZE_TO.get(sample.dtype, (DataType.INT8,)))
    wide = sample.output_type is DataType.INT32
    sample.output = Quantization.of(0.25) if wide else sample.quantization(sample.output_type)
    return QuantizeDescriptor()


def _sample_dequantize(sample: LayerSample) -> Descriptor:
    sample.take(sample.shape())
    sample.output_type = DataType.FLOAT32
    return DequantizeDescriptor()


QUANTIZE = Operator(
    descriptor=QuantizeDescriptor,
    type=LayerType.QUANTIZE,
    is_identity=_keeps_values,
    elementwise=True,
    check=check_quantize,
    kernel=of_one(quantize),
    rules=frozenset({Rounding.TFLM, Rounding.ONNX}),
    sample=_sample_quantize,
)
DEQUANTIZE = Operator(
    descriptor=DequantizeDescriptor,
    type=LayerType.DEQUANTIZE,
    elementwise=True,
    check=check_dequantize,
    kernel=of_one(dequantize),
    bound=rounded(),
    sample=_sample_dequantize,
)
