# SPDX-License-Identifier: Apache-2.0
"""The device's arithmetic: that of Ferrule's reference, so that outputs are equal in every bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array, LayerType
from ferrule.operators import BinaryDescriptor, Combination, Operands, Sum, combination_of, combine, float_limits

__all__ = ["Combination", "FloatSum", "Sum", "add", "arithmetic_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatSum:
    """An addition of float32 tensors: the clamp of the result."""

    low: float
    high: float


def arithmetic_of(descriptor: BinaryDescriptor, operands: Operands) -> Combination | FloatSum:
    """Return the arithmetic of an ADD layer: a `Sum` by the TFLM rule of rounding, another one by ONNX's."""
    if operands.output.dtype.is_float:
        low, high = float_limits(descriptor.activation)
        return FloatSum(low=low, high=high)
    return combination_of(LayerType.ADD, descriptor, operands)


def add(arithmetic: Combination | FloatSum, first: Array, second: Array) -> Array:
    """Return the sum of two arrays of stored values."""
    if not isinstance(arithmetic, FloatSum):
        return combine(arithmetic, first, second)
    with np.errstate(all="ignore"):
        result: Array = np.clip(first + second, np.float32(arithmetic.low), np.float32(arithmetic.high))
    return result
