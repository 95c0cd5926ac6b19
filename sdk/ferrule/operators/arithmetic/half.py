# SPDX-License-Identifier: Apache-2.0
"""float16 support for every operator that supports float32: computed in float32 and rounded once per layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.arithmetic.error_bound import monotone
from ferrule.operators.operator import Arrays, Evaluation, Operands, Operator

_SPACING, _LEAST = 2.0**-10, 2.0**-24
"""The largest relative distance of neighbouring numbers of float16, and the distance around zero."""


def with_float16(operator: Operator) -> Operator:
    """Return the operator extended to float16 tensors.

    Its float16 inputs are widened to float32, which is exact. The float32 kernel runs, and its results are rounded to
    float16, halves to even. All floating-point tensors of a layer must have the same type.
    """

    def check(descriptor: Any, operands: Operands) -> None:  # noqa: ANN401 each operator has its own descriptor
        if _has_half(operands):
            _check_unmixed(operands)
            operands = _widened(operands)
        operator.check(descriptor, operands)

    def kernel(descriptor: Any, operands: Operands, arrays: Arrays) -> list[Array]:  # noqa: ANN401
        if not _has_half(operands):
            return operator.kernel(descriptor, operands, arrays)
        results = operator.kernel(descriptor, _widened(operands), [_widest(array) for array in arrays])
        with ieee_floats():
            return [
                result.astype(info.dtype.numpy, copy=False)
                for result, info in zip(results, operands.outputs, strict=True)
            ]

    def bound(evaluation: Evaluation) -> list[Array]:
        """Return that of the float32 kernel; what it does not prove equal, the rounding to float16 moves further."""
        own, operands = operator.bound or monotone, evaluation.operands
        if not _has_half(operands):
            return own(evaluation)
        arrays = [_widest(array) for array in evaluation.inputs]
        with np.errstate(all="ignore"):
            results = operator.kernel(evaluation.descriptor, _widened(operands), arrays)
        wide = replace(evaluation, operands=_widened(operands), kernel=operator.kernel, inputs=arrays, outputs=results)
        return [
            np.where(each > 0, each + _SPACING * (np.abs(result.astype(np.float64)) + each) + _LEAST, each)
            if info.dtype is DataType.FLOAT16
            else each
            for each, result, info in zip(own(wide), results, operands.outputs, strict=True)
        ]

    return replace(operator, check=check, kernel=kernel, bound=bound)


def _widest(array: Array | None) -> Array | None:
    return array.astype(np.float32) if array is not None and array.dtype == np.float16 else array


def _has_half(operands: Operands) -> bool:
    return any(info is not None and info.dtype is DataType.FLOAT16 for info in (*operands.inputs, *operands.outputs))


def _check_unmixed(operands: Operands) -> None:
    for info in (*operands.inputs, *operands.outputs):
        if info is not None and info.dtype is DataType.FLOAT32:
            raise UnsupportedError(f"tensor '{info.name}' is float32 but other tensors are float16, expected one type")


def _widened(operands: Operands) -> Operands:
    return Operands(
        tuple(None if info is None else _wide(info) for info in operands.inputs),
        tuple(_wide(info) for info in operands.outputs),
        rounding=operands.rounding,
    )


def _wide(info: TensorInfo) -> TensorInfo:
    return replace(info, dtype=DataType.FLOAT32) if info.dtype is DataType.FLOAT16 else info
