# SPDX-License-Identifier: Apache-2.0
"""The device's arithmetic: that of Ferrule's reference, so that outputs are equal in every bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array
from ferrule.operators.binary import BinaryDescriptor, float_limits
from ferrule.operators.elementwise import Sum, combine, sum_of
from ferrule.operators.operator import Operands

__all__ = ["FloatSum", "Sum", "add", "arithmetic_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatSum:
    """An addition of float32 tensors: the clamp of the result."""

    low: float
    high: float


def arithmetic_of(descriptor: BinaryDescriptor, operands: Operands) -> Sum | FloatSum:
    """Return the arithmetic of an ADD layer."""
    if operands.output.dtype.is_float:
        low, high = float_limits(descriptor.activation)
        return FloatSum(low=low, high=high)
    return sum_of(operands, descriptor.activation, subtract=False)


def add(arithmetic: Sum | FloatSum, first: Array, second: Array) -> Array:
    """Return the sum of two arrays of stored values."""
    if isinstance(arithmetic, Sum):
        return combine(arithmetic, first, second)
    with np.errstate(all="ignore"):
        result: Array = np.clip(first + second, np.float32(arithmetic.low), np.float32(arithmetic.high))
    return result
