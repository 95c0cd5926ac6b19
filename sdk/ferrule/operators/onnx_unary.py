# SPDX-License-Identifier: Apache-2.0
"""Functions of one int8 tensor by ONNX's rule: tables of their float32 results.

onnxruntime converts the stored values to float32, computes the function in float32 and quantises the result. The
function's float32 kernel rounds each result once, so each of the 256 results follows from it (measured, see
docs/operators.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule.graph import Array, DataType, Rounding
from ferrule.operators.movement import check_types
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.quantize import quantize_to_even, real_values
from ferrule.operators.weighted import check_activation_tensor, required_array

_EVERY_INT8 = np.arange(-128, 128, dtype=np.int8)


def tabulated(operator: Operator) -> Operator:
    """Return the operator, which has one input and one output, extended to ONNX's rule for int8."""

    def check(descriptor: Any, operands: Operands) -> None:  # noqa: ANN401 each operator has its own descriptor
        if operands.rounding is Rounding.ONNX:
            check_types(operands, frozenset({DataType.INT8}))
            for info in (operands.input(0), operands.output):
                check_activation_tensor(info)
            operands = _real(operands)
        operator.check(descriptor, operands)

    def kernel(descriptor: Any, operands: Operands, arrays: Sequence[Array | None]) -> list[Array]:  # noqa: ANN401
        if operands.rounding is not Rounding.ONNX:
            return operator.kernel(descriptor, operands, arrays)
        every = real_values(_EVERY_INT8, operands.input(0))
        (results,) = operator.kernel(descriptor, _real(operands), [every])
        table = quantize_to_even(results, operands.output)
        return [np.asarray(table[required_array(arrays, 0).astype(np.intp) + 128])]

    return replace(operator, check=check, kernel=kernel, rules=operator.rules | {Rounding.ONNX})


def _real(operands: Operands) -> Operands:
    source, output = (
        replace(info, dtype=DataType.FLOAT32, quantization=None) for info in (operands.input(0), operands.output)
    )
    return Operands(inputs=(source,), outputs=(output,))
