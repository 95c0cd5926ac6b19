# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of one tensor without parameters, one row per function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.arithmetic.onnx_real import tabulated
from ferrule.operators.elementwise import stored_unary
from ferrule.operators.elementwise.stored_unary import StoredFunction
from ferrule.operators.movement.checks import check_activations, check_types
from ferrule.operators.operator import Bound, Operands, Operator, of_one
from ferrule.operators.sample import sample_unary


@frozen
class ElementwiseUnaryDescriptor(Descriptor):
    """One input, one output."""


def _check(
    allowed: frozenset[DataType],
    stored: StoredFunction | None,
    _: ElementwiseUnaryDescriptor,
    operands: Operands,
) -> None:
    """Refuse every type without a kernel in TensorFlow Lite Micro, and scales that its arithmetic cannot convert."""
    check_types(operands, allowed)
    if stored is not None and operands.output.dtype.is_quantizable:
        check_activations(*operands.ends)
        stored(operands)


def _kernel(
    function: Callable[[Array], Array],
    stored: StoredFunction | None,
    _: ElementwiseUnaryDescriptor,
    operands: Operands,
    data: Array,
) -> Array:
    if stored is not None and operands.output.dtype.is_quantizable:
        return stored(operands)(data.astype(np.int64)).astype(data.dtype)
    with np.errstate(all="ignore"):
        return function(data)


def _operator(
    type_: LayerType,
    function: Callable[[Array], Array],
    allowed: frozenset[DataType] = frozenset({DataType.FLOAT32}),
    stored: StoredFunction | None = None,
    bound: Bound | None = None,
) -> Operator:
    """Return the operator row for a numpy function; `stored` is that of quantised types."""
    return Operator(
        descriptor=ElementwiseUnaryDescriptor,
        type=type_,
        elementwise=True,
        check=partial(_check, allowed, stored),
        kernel=of_one(partial(_kernel, function, stored)),
        bound=bound,
        sample=sample_unary(lambda _: ElementwiseUnaryDescriptor(), same=False),
    )


def _once(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the function computed in float64 and rounded once to float32."""
    return lambda data: np.asarray(function(data.astype(np.float64)), np.float32)


def _round(data: Array) -> Array:
    """Return the nearest whole numbers, halves to even; -0 only for -0."""
    whole = np.rint(data)
    return np.where((whole == 0) & (data != 0), np.float32(0), whole)


def _elu(data: Array) -> Array:
    return np.where(data < 0, _once(np.expm1)(np.minimum(data, 0)), data)


_QUANTIZED = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16})
ELEMENTWISE_UNARY: tuple[Operator, ...] = (
    tabulated(_operator(LayerType.ABS, np.abs, _QUANTIZED, stored_unary.absolute)),
    tabulated(_operator(LayerType.CEIL, np.ceil)),
    tabulated(_operator(LayerType.COS, _once(np.cos), bound=rounded(2, slope=1))),
    tabulated(_operator(LayerType.ELU, _elu, _QUANTIZED - {DataType.INT16}, stored_unary.elu, rounded(2))),
    tabulated(_operator(LayerType.EXP, _once(np.exp), bound=rounded(2))),
    tabulated(_operator(LayerType.FLOOR, np.floor)),
    tabulated(_operator(LayerType.LOG, _once(np.log), bound=rounded(2))),
    _operator(LayerType.LOGICAL_NOT, np.logical_not, frozenset({DataType.BOOL})),
    tabulated(_operator(LayerType.NEG, np.negative)),
    tabulated(_operator(LayerType.ROUND, _round)),
    _operator(
        LayerType.RSQRT, lambda data: np.float32(1) / np.sqrt(data), _QUANTIZED, stored_unary.inverse_root, rounded()
    ),
    tabulated(_operator(LayerType.SIGN, np.sign)),
    tabulated(_operator(LayerType.SIN, _once(np.sin), bound=rounded(2, slope=1))),
    tabulated(_operator(LayerType.SQRT, np.sqrt, bound=rounded())),
    _operator(LayerType.SQUARE, np.square, bound=rounded()),
)
"""The operators, sorted by name."""
