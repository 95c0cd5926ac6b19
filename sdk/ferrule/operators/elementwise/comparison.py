# SPDX-License-Identifier: Apache-2.0
"""Comparisons, LOGICAL_AND and LOGICAL_OR, with broadcasting; the results are bool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, TensorInfo
from ferrule.operators.arithmetic.broadcast import check_broadcast, infer_broadcast
from ferrule.operators.arithmetic.fixed_point import quantize_multiplier
from ferrule.operators.elementwise.binary import sample_pair
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor, function_of_two
from ferrule.operators.elementwise.stored_binary import Term
from ferrule.operators.movement.checks import check_activations, expect_type
from ferrule.operators.operator import Arrays, Operands, Operator, required_arrays
from ferrule.operators.sample import LayerSample

LEFT_SHIFT = 8
"""Fractional bits of int8 values before they are scaled."""
_ORDERED = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64})
_BOOL = frozenset({DataType.BOOL})


@frozen
class ComparisonDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one bool output."""


@frozen
class LogicalDescriptor(ElementwiseBinaryDescriptor):
    """The descriptor of LOGICAL_AND and LOGICAL_OR; digests of networks include its name."""


def term_of(info: TensorInfo) -> Term:
    """Return the conversion of stored int8 values to values that can be compared.

    Raises:
        UnsupportedError: the scale is not below 1.
    """
    multiplier, shift = quantize_multiplier(info.scale)
    if shift > 0:
        raise UnsupportedError(
            f"tensor '{info.name}' has scale {info.scale:g}, comparisons of int8 need one below 1",
            hint="TensorFlow Lite Micro's kernel is undefined for it",
        )
    return Term(offset=-info.zero_point, left_shift=LEFT_SHIFT, multiplier=multiplier, shift=shift)


def _check(allowed: frozenset[DataType], _: Descriptor, operands: Operands) -> None:
    first, second, output = *operands.pair, operands.output
    expect_type(output, DataType.BOOL)
    alike = TensorInfo(output.name, output.shape, first.dtype)
    dtype = check_broadcast(Operands((first, second), (alike,)), allowed)
    if dtype is DataType.INT8:
        check_activations(first, second)
        for info in (first, second):
            term_of(info)


def _compute(function: Callable[[Any, Any], Any], _: Descriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    first, second = required_arrays(arrays, range(2))
    if first.dtype == np.int8:
        first, second = (
            term_of(operands.input(index)).apply(array.astype(np.int64)) for index, array in enumerate((first, second))
        )
    return [np.asarray(function(first, second), np.bool_)]


def _sample(sample: LayerSample) -> Descriptor:
    sample_pair(sample, None)
    sample.output_type = DataType.BOOL
    return ComparisonDescriptor()


_FUNCTIONS: Mapping[LayerType, tuple[Callable[[Any, Any], Any], frozenset[DataType]]] = {
    LayerType.EQUAL: (np.equal, _ORDERED | _BOOL),
    LayerType.GREATER: (np.greater, _ORDERED),
    LayerType.GREATER_EQUAL: (np.greater_equal, _ORDERED),
    LayerType.LESS: (np.less, _ORDERED),
    LayerType.LESS_EQUAL: (np.less_equal, _ORDERED),
    LayerType.NOT_EQUAL: (np.not_equal, _ORDERED | _BOOL),
}
COMPARISONS: tuple[Operator, ...] = tuple(
    Operator(
        descriptor=ComparisonDescriptor,
        type=type_,
        elementwise=True,
        shapes=infer_broadcast,
        check=partial(_check, allowed),
        kernel=partial(_compute, function),
        sample=_sample,
    )
    for type_, (function, allowed) in _FUNCTIONS.items()
)
"""The operators, sorted by name."""
LOGICAL_AND = function_of_two(LayerType.LOGICAL_AND, np.logical_and, _BOOL, descriptor=LogicalDescriptor)
LOGICAL_OR = function_of_two(LayerType.LOGICAL_OR, np.logical_or, _BOOL, descriptor=LogicalDescriptor)
