# SPDX-License-Identifier: Apache-2.0
"""CONVERT_FP16_TO_FP32 and CONVERT_FP32_TO_FP16."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.movement.checks import typed
from ferrule.operators.operator import Operands, Operator, of_one
from ferrule.operators.sample import LayerSample


@frozen
class ConvertFp16ToFp32Descriptor(Descriptor):
    """One float16 input, one float32 output."""


@frozen
class ConvertFp32ToFp16Descriptor(Descriptor):
    """One float32 input, one float16 output."""


def convert(_: Descriptor, operands: Operands, data: Array) -> Array:
    """Return the values in the output's type: widening is exact, narrowing rounds halves to even."""
    with ieee_floats():
        return data.astype(operands.output.dtype.numpy)


def _operator(type_: LayerType, descriptor: Descriptor, source: DataType, result: DataType) -> Operator:
    def sample(sample: LayerSample) -> Descriptor:
        sample.take(sample.shape())
        sample.output_type = result
        return descriptor

    return Operator(
        descriptor=type(descriptor), type=type_, check=typed([source], [result]), kernel=of_one(convert), sample=sample
    )


CONVERT_FP16_TO_FP32 = _operator(
    LayerType.CONVERT_FP16_TO_FP32, ConvertFp16ToFp32Descriptor(), DataType.FLOAT16, DataType.FLOAT32
)
CONVERT_FP32_TO_FP16 = _operator(
    LayerType.CONVERT_FP32_TO_FP16, ConvertFp32ToFp16Descriptor(), DataType.FLOAT32, DataType.FLOAT16
)
