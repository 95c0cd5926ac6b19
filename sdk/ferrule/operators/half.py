# SPDX-License-Identifier: Apache-2.0
"""float16 support for every operator that supports float32: computed in float32 and rounded once per layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.operators.operator import Operands, Operator


def with_float16(operator: Operator) -> Operator:
    """Return the operator extended to float16 tensors.

    Its float16 inputs are widened to float32, which is exact. The float32 kernel runs, and its results are rounded to
    float16, halves to even. All floating-point tensors of a layer must have the same type.
    """

    def check(descriptor: Any, operands: Operands) -> None:  # noqa: ANN401 each operator has its own descriptor
        if _has_half(operands):
            _check_unmixed(operands)
        operator.check(descriptor, _widened(operands))

    def kernel(descriptor: Any, operands: Operands, arrays: Sequence[Array | None]) -> list[Array]:  # noqa: ANN401
        if not _has_half(operands):
            return operator.kernel(descriptor, operands, arrays)
        wide = [
            array.astype(np.float32) if array is not None and array.dtype == np.float16 else array for array in arrays
        ]
        results = operator.kernel(descriptor, _widened(operands), wide)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return [
                result.astype(info.dtype.numpy, copy=False)
                for result, info in zip(results, operands.outputs, strict=True)
            ]

    return replace(operator, check=check, kernel=kernel)


def _has_half(operands: Operands) -> bool:
    return any(info is not None and info.dtype is DataType.FLOAT16 for info in (*operands.inputs, *operands.outputs))


def _check_unmixed(operands: Operands) -> None:
    for info in (*operands.inputs, *operands.outputs):
        if info is not None and info.dtype is DataType.FLOAT32:
            raise UnsupportedError(f"tensor '{info.name}' is float32 but other tensors are float16, expected one type")


def _widened(operands: Operands) -> Operands:
    return Operands(
        inputs=tuple(None if info is None else _wide(info) for info in operands.inputs),
        outputs=tuple(_wide(info) for info in operands.outputs),
        rounding=operands.rounding,
    )


def _wide(info: TensorInfo) -> TensorInfo:
    return replace(info, dtype=DataType.FLOAT32) if info.dtype is DataType.FLOAT16 else info
