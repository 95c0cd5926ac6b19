# SPDX-License-Identifier: Apache-2.0
"""Operators of int8 that ONNX's rule computes with float32 values.

onnxruntime converts the stored values to float32, computes the operator in float32 and quantises the result. The
operator's float32 kernel rounds each result once, so the stored results follow from it (measured, see
docs/operators.md). With one input they are a table of 256.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ferrule.graph import Array, DataType, Rounding, TensorInfo
from ferrule.operators.elementwise.quantize import quantize_to_even, real_values
from ferrule.operators.movement.checks import check_activations, check_types
from ferrule.operators.operator import EVERY_INT8, Arrays, Operands, Operator, look_up, required_array


def tabulated(operator: Operator) -> Operator:
    """Return an operator with one input and one output extended to ONNX's rule for int8."""
    extended = computed_as_real(operator)

    def kernel(descriptor: Any, operands: Operands, arrays: Arrays) -> list[Array]:  # noqa: ANN401
        if operands.rounding is not Rounding.ONNX:
            return operator.kernel(descriptor, operands, arrays)
        (table,) = extended.kernel(descriptor, operands, [EVERY_INT8])
        return [look_up(table, required_array(arrays, 0))]

    return replace(extended, kernel=kernel)


def computed_as_real(operator: Operator) -> Operator:
    """Return an operator with one output extended to ONNX's rule for int8."""

    def check(descriptor: Any, operands: Operands) -> None:  # noqa: ANN401 each operator has its own descriptor
        if operands.rounding is Rounding.ONNX:
            check_types(operands, frozenset({DataType.INT8}))
            check_activations(*_inputs(operands), operands.output)
            operands = _real(operands)
        operator.check(descriptor, operands)

    def kernel(descriptor: Any, operands: Operands, arrays: Arrays) -> list[Array]:  # noqa: ANN401
        if operands.rounding is not Rounding.ONNX:
            return operator.kernel(descriptor, operands, arrays)
        values = [real_values(required_array(arrays, i), info) for i, info in enumerate(_inputs(operands))]
        (results,) = operator.kernel(descriptor, _real(operands), values)
        return [quantize_to_even(results, operands.output)]

    return replace(operator, check=check, kernel=kernel, rules=operator.rules | {Rounding.ONNX})


def _inputs(operands: Operands) -> list[TensorInfo]:
    return operands.required(range(len(operands.inputs)))


def _real(operands: Operands) -> Operands:
    return Operands(tuple(map(_float32, _inputs(operands))), (_float32(operands.output),))


def _float32(info: TensorInfo) -> TensorInfo:
    return replace(info, dtype=DataType.FLOAT32, quantization=None)
