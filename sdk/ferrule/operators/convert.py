# SPDX-License-Identifier: Apache-2.0
"""CONVERT_FP16_TO_FP32 and CONVERT_FP32_TO_FP16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.operator import Arrays, Operands, Operator
from ferrule.operators.sample import LayerSample


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertFp16ToFp32Descriptor(Descriptor):
    """One float16 input, one float32 output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertFp32ToFp16Descriptor(Descriptor):
    """One float32 input, one float16 output."""


def check_widening(_: ConvertFp16ToFp32Descriptor, operands: Operands) -> None:
    """Refuse any conversion except float16 to float32."""
    _check(operands, DataType.FLOAT16, DataType.FLOAT32)


def check_narrowing(_: ConvertFp32ToFp16Descriptor, operands: Operands) -> None:
    """Refuse any conversion except float32 to float16."""
    _check(operands, DataType.FLOAT32, DataType.FLOAT16)


def convert(_: Descriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the values in the output's type: widening is exact, narrowing rounds halves to even."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return [np.asarray(arrays[0]).astype(operands.output.dtype.numpy)]


def _check(operands: Operands, source: DataType, result: DataType) -> None:
    for info, wanted in ((operands.input(0), source), (operands.output, result)):
        if info.dtype is not wanted:
            raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}, expected {wanted}")


def _sample(descriptor: Descriptor, output: DataType) -> Callable[[LayerSample], None]:
    def make(sample: LayerSample) -> None:
        sample.take(sample.shape())
        sample.output_type = output
        sample.descriptor = descriptor

    return make


CONVERT_FP16_TO_FP32 = Operator(
    descriptor=ConvertFp16ToFp32Descriptor,
    type=LayerType.CONVERT_FP16_TO_FP32,
    check=check_widening,
    kernel=convert,
    sample=_sample(ConvertFp16ToFp32Descriptor(), DataType.FLOAT32),
)
CONVERT_FP32_TO_FP16 = Operator(
    descriptor=ConvertFp32ToFp16Descriptor,
    type=LayerType.CONVERT_FP32_TO_FP16,
    check=check_narrowing,
    kernel=convert,
    sample=_sample(ConvertFp32ToFp16Descriptor(), DataType.FLOAT16),
)
